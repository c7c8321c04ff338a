"""serve(): runs an aggregator from its configuration, until a signal ends it."""

from __future__ import annotations

import asyncio
import os
from functools import partial

from submerge.aggregator.node import AggregatorNode
from submerge_aggregator import limits
from submerge_aggregator.admission.control import AdmissionControl, make_admission
from submerge_aggregator.audit import AuditFiles, AuditLog, audit_path
from submerge_aggregator.batch import checked
from submerge_aggregator.config import AggregatorConfig, history_path
from submerge_aggregator.downlink import Admits, Downlink
from submerge_aggregator.history.recorder import HistoryRecorder
from submerge_aggregator.jobs.board import JobBoard, jobs_path
from submerge_aggregator.jobs.runtime import JobRuntime
from submerge_aggregator.limits import MessageBudget, RateLimit
from submerge_aggregator.notify.notifier import make_notifier
from submerge_aggregator.refusals import Refusals
from submerge_aggregator.server import Server
from submerge_aggregator.storage import LastBackup
from submerge_aggregator.store import Store
from submerge_aggregator.telemetry import telemetry_of
from submerge_aggregator.worker import CommitWorker
from submerge_client import clock
from submerge_client.command import signal_actions
from submerge_client.config.sizes import GRPC_LIMIT, MQTT_LIMIT
from submerge_client.logs import say
from submerge_client.memory import SystemEntropy
from submerge_client.replies import settings_reply
from submerge_client.uplink.factory import make_uplink, warn_of_insecure
from submerge_client.uplink.tls import Credentials, Tls, served_tls, tls_of
from submerge_client.watchdog import Watchdog
from submerge_proto.implementation import check_compiled

LEAST_JOB_BYTES = 1 << 20
"""Bytes of jobs' messages that wait, however few others may: the largest piece has room."""


def serve(config: AggregatorConfig) -> None:
    """Run an aggregator until a signal ends it."""
    check_compiled()
    asyncio.run(_run(config))


def server_of(config: AggregatorConfig, *, inside: bool = False) -> Server:
    """Return an aggregator that has not started; `inside`: children reach it at memory://NAME."""
    settings, parent, uplink = config.settings, config.parent, None
    coarse = parent is not None and parent.columns == "i8"
    plans = checked(config.plans, coarse=coarse)

    def make_node() -> AggregatorNode:
        # Each machine draws its own names and waiting times.
        return AggregatorNode(settings, plans, SystemEntropy())

    if parent is not None:
        uplink = make_uplink(
            parent, parent=parent.name, node=config.node, groups=tuple(plans), kit=config.kit
        )
    ways = {"listen.grpc": config.listen.grpc, "listen.mqtt": config.listen.mqtt}
    idle = None if config.takes_kit else config.kit
    hooks = {f"alarms.webhook[{i}]": hook for i, hook in enumerate(config.alarms.webhook)}
    warn_of_insecure({**ways, "parent": parent, **hooks}, idle=idle)
    audited = audit_path(config.audit, config.store)
    audit = AuditLog(None if audited is None else AuditFiles(audited), lambda: clock.now().wall)
    refusals = Refusals(lambda: clock.now().steady, audit.record)
    admits = _pace(config)

    admission, credentials = make_admission(config), _credentials(config)
    downlinks = _downlinks(config, refusals, admits, admission)
    downlinks += _inside(config, refusals) if inside else []
    telemetry = telemetry_of(os.environ, config.node)
    notifier = make_notifier(config, clock.now, telemetry)
    # Below the root there is nothing to list: jobs are opened there, and answers are the root's.
    board = JobBoard(jobs_path(config.store)) if parent is None else None
    # Last, for it makes a file: a configuration that is refused leaves none.
    worker = CommitWorker(
        *(make_node, Store(config.store), clock.now),
        coarse=coarse,
        credentials=credentials,
        refusals=refusals,
        admission=admission,
        record=audit.record,
        settings=partial(settings_reply, config.node, "aggregator", config),
    )
    return Server(
        worker,
        downlinks=downlinks,
        uplink=uplink,
        clock=clock.now,
        watchdog=Watchdog(environ={} if inside else os.environ),  # a child inside feeds it
        admits=admits,
        notifier=notifier,
        audit=audit,
        history=_history(config),
        last_backup=LastBackup(config.store),
        board=board,
        budget=MessageBudget(_waiting_bytes(config)),
        jobs=_jobs(config, board),
        telemetry=telemetry,
    )


def _pace(config: AggregatorConfig) -> Admits:
    """Return whether a child may send one more message."""
    pace = RateLimit(config.listen.most_per_s, config.advanced.burst)

    def admits(who: str, size: int) -> bool:
        return pace.takes(who, clock.now().steady, size)

    return admits


def _jobs(config: AggregatorConfig, board: JobBoard | None) -> JobRuntime:
    """Return its part in jobs, with a pace of its own: a job takes no report's turn."""
    mqtt, held = config.listen.mqtt, max(config.listen.max_unanswered_bytes // 8, LEAST_JOB_BYTES)
    # The largest message that every way down carries.
    largest = GRPC_LIMIT if mqtt is None else mqtt.max_message_bytes or MQTT_LIMIT
    return JobRuntime(board, admits=_pace(config), budget=MessageBudget(held), largest=largest)


def _waiting_bytes(config: AggregatorConfig) -> int:
    """Return the most bytes that wait for a batch: two of the largest messages at least."""
    largest = max(config.limit("grpc"), config.limit("mqtt"))
    return max(config.listen.max_unanswered_bytes * 3 // 8, 2 * largest)


def _history(config: AggregatorConfig) -> HistoryRecorder:
    kept = config.history.max_bytes
    return HistoryRecorder(history_path(config.store) if kept else None, kept)


def _credentials(config: AggregatorConfig) -> Credentials:
    """Return its certificates as a node. The host certificates of its servers are left out."""
    links = [link for link in (config.parent, config.listen.mqtt) if link is not None]
    kit = None if config.kit is None else Tls(kit=config.kit)
    return Credentials(kit, *(tls_of(link, config.kit) for link in links), node=config.node)


async def _run(config: AggregatorConfig) -> None:
    from submerge_aggregator.http.endpoints import Endpoints  # with all that HTTP needs

    limits.limit()
    # The store's lock comes first: it keeps a second process off the operator's socket.
    server = server_of(config)
    endpoints = Endpoints(server, config)
    loop = asyncio.get_running_loop()
    for number, act in signal_actions(server.stop).items():
        loop.add_signal_handler(number, act)
    await endpoints.start()
    beside = [asyncio.create_task(limits.keep_trimmed())]
    if server.telemetry is not None:
        from submerge_aggregator.http.metrics import all_families

        sends = server.telemetry.run(partial(all_families, server))
        beside.append(asyncio.create_task(sends))
    try:
        await server.run()
    finally:
        for task in beside:
            task.cancel()
        await endpoints.stop()


def _inside(config: AggregatorConfig, refusals: Refusals) -> list[Downlink]:
    from submerge_aggregator.downlink.in_memory import InMemoryDownlink
    from submerge_client.uplink.in_memory import hub

    return [InMemoryDownlink(hub(config.node), refusals=refusals)]


def _downlinks(
    config: AggregatorConfig, refusals: Refusals, admits: Admits, admission: AdmissionControl
) -> list[Downlink]:
    """Return the configured ways down; the packages of others are not loaded."""
    downlinks: list[Downlink] = []
    grpc, mqtt = config.listen.grpc, config.listen.mqtt
    if grpc is not None:
        from submerge_aggregator.downlink.over_grpc import GrpcDownlink
        from submerge_aggregator.downlink.readings import ReadingLimits

        tls = served_tls(grpc, config.kit)
        if tls is not None and tls.kit is None and tls.ca is None:
            todo = "name ca, or leave out cert and key where there is a kit"
            say("any child may speak for any other", level="warning", link="listen.grpc", todo=todo)
        # One half is for what is being read, the other for what waits.
        room = config.listen.max_unanswered_bytes // 2
        downlinks.append(
            GrpcDownlink(
                grpc.address,
                limit=config.limit("grpc"),
                tls=tls,
                refusals=refusals,
                admits=admits,
                admission=admission,
                limits=ReadingLimits(room, grpc.max_connections, len(config.groups)),
            )
        )
    if mqtt is not None:
        from submerge_aggregator.downlink.over_mqtt import MqttDownlink
        from submerge_client.uplink.broker import broker_of

        downlinks.append(
            MqttDownlink(
                broker_of(mqtt, config.kit),
                fleet=mqtt.fleet,
                parent=config.node,
                limit=config.limit("mqtt"),
                sends=mqtt.max_message_bytes or MQTT_LIMIT,
                note=say,
                refusals=refusals,
            )
        )
    return downlinks

"""build_agent(): a client from its configuration, ready to run. Unused parts are not loaded."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from submerge import Schema
from submerge.client.node import ClientNode
from submerge_client import clock
from submerge_client.agent import Agent
from submerge_client.alarms.factory import links_of, sinks_of
from submerge_client.alarms.ndjson import write_whole
from submerge_client.checkpoint import CheckpointFile, RecordStore
from submerge_client.config.client_config import ClientConfig
from submerge_client.jobs import ClientJobs, HeldSample, KeptClusters, SharedPoints
from submerge_client.logs import say
from submerge_client.memory import SystemEntropy
from submerge_client.replies import ClientReplies
from submerge_client.score_outputs.lines import ScoreLines, ScoreOutput, ScoreOutputs, ScoreWriter
from submerge_client.sensors import Sensor, open_sensor
from submerge_client.sensors.gather import Lags
from submerge_client.sensors.tally import SensorLog, no_log
from submerge_client.uplink.factory import make_uplink, warn_of_insecure
from submerge_client.uplink.tls import Credentials, password_of, tls_of
from submerge_client.watchdog import Watchdog

if TYPE_CHECKING:
    from submerge_client.sensors.influx.outlet import MetricOutlet


def build_agent(config: ClientConfig, *, stdout: BinaryIO | None = None) -> Agent:
    """Return an agent that has not started yet."""
    tls = tls_of(config.uplink, config.kit)
    credentials = Credentials(tls, node=config.node)
    schema = config.built_schema
    habits = config.state.with_name(f"{config.state.name}.habits")
    out = sys.stdout.buffer if stdout is None else stdout
    outlet = _outlet(config, out)
    sensor = _sensor(config, say, habits, outlet)
    # Unseeded: incarnations and waits must differ from those of other nodes.
    node = ClientNode(config.settings, schema, config.summaries, SystemEntropy())
    scores = config.scores_link if config.scores.to == "mqtt" else None
    links = {"uplink": config.uplink, "scores": scores, "sensor": config.sensor.link}
    warn_of_insecure({**links, **links_of(config)}, idle=None if config.takes_kit else config.kit)
    uplink = make_uplink(
        config.uplink,
        parent=config.parent,
        node=config.node,
        groups=(config.group,),
        kit=config.kit,
    )
    if config.share_points:
        say("readings may leave this client as they are", in_24_hours=config.share_points)
    rng = SystemEntropy()
    clusters = KeptClusters(config.group, config.state.with_name(f"{config.state.name}.clusters"))
    jobs = ClientJobs(
        *(config.node, config.group, config.parent, HeldSample(config.job_rows, rng)),
        share_points=config.share_points,
        shared=SharedPoints(config.state.with_name(f"{config.state.name}.shared")),
        send=partial(uplink.send, "job", config.group),
        clock=clock.now,
        rng=rng,
        ended=clusters.take,
        tls=tls,
        masked=config.privacy.masked,
    )
    return Agent(
        node,
        uplink=uplink,
        sensor=sensor,
        disk=_disk(config),
        lags=Lags(config.schema.lags, len(config.schema.sensed)),
        scores=_scores(config, schema, out, outlet, clusters),
        sinks=sinks_of(config, out),
        clock=clock.now,
        coarse=config.uplink.columns == "i8",
        credentials=credentials,
        gather_s=config.timing.gather_s,
        watchdog=Watchdog(config.silence_s, alive=config.watch.alive, environ=os.environ),
        replies=ClientReplies(config),
        jobs=jobs,
    )


def check_outside(config: ClientConfig) -> None:
    """Refuse a sensor that cannot be opened, or a missing password, before any file is made."""
    _sensor(config, no_log, None)
    for link in (config.alarms_link, config.scores_link if config.scores.to == "mqtt" else None):
        if link is not None:
            password_of(link)


def _sensor(
    config: ClientConfig, note: SensorLog, habits: Path | None, outlet: MetricOutlet | None = None
) -> Sensor:
    names = [channel.name for channel in config.schema.sensed]
    gather_s = config.timing.gather_s
    return open_sensor(
        config.sensor, names, note=note, gather_s=gather_s, habits=habits, outlet=outlet
    )


def _outlet(config: ClientConfig, stdout: BinaryIO) -> MetricOutlet | None:
    if not config.sensor.passes_on:
        return None
    from submerge_client.sensors.influx.outlet import MetricOutlet

    return MetricOutlet(stdout.fileno())


def _scores(
    config: ClientConfig,
    schema: Schema,
    stdout: BinaryIO,
    outlet: MetricOutlet | None,
    clusters: KeptClusters,
) -> ScoreOutput | None:
    outputs = list[ScoreOutput]()
    if config.scores.to != "none":
        writer = _score_writer(config, stdout)
        contributions = config.scores.contributions
        outputs.append(
            ScoreLines(schema, contributions=contributions, out=writer, clusters=clusters.of_block)
        )
    if outlet is not None:
        from submerge_client.score_outputs.metrics import ScoreMetrics

        outputs.append(
            ScoreMetrics(
                schema,
                node=config.node,
                group=config.group,
                outlet=outlet,
                sends=config.alarms.sends,
            )
        )
    return ScoreOutputs(outputs) if outputs else None


def _disk(config: ClientConfig) -> RecordStore:
    """Return the checkpoint. A broken disk does not stop the measurements."""
    try:
        return RecordStore(CheckpointFile(config.state))
    except OSError as error:
        say("no checkpoint: a restart begins from zero", level="error", why=str(error))
        return RecordStore(None)


def _score_writer(config: ClientConfig, stdout: BinaryIO) -> ScoreWriter:
    if config.scores.to == "mqtt":
        from submerge_client.score_outputs.publisher import Publisher

        return Publisher(config.scores_link, config.node, config.kit).publish

    closed = False

    def write(lines: bytes) -> None:
        nonlocal closed
        if closed:
            return
        try:
            write_whole(stdout, lines)
        except OSError as error:
            # The reader is gone. The node still learns and reports.
            closed = True
            say("scores no longer written", level="warning", why=str(error))

    return write

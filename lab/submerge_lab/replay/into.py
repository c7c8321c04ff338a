"""Files sent to a running fleet: each leaf is a client with an uplink of its own.

It does what `submerge client` does, except for the disk: rows go through the same agent and node,
which report to the named aggregator. At its end a replay has reported all rows, or says how many
it could not report.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge import Array, Schema, UsageError
from submerge.client.incarnation import ClientIncarnation
from submerge.features import FeatureMap, Identity
from submerge.headings import channels_of
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Center
from submerge_client import clock
from submerge_client.agent import Agent
from submerge_client.config.links import UplinkConfig
from submerge_client.config.summary import SummaryConfig
from submerge_client.datasets import Table
from submerge_client.disk import RecordStore
from submerge_client.sensors.lags import Lags
from submerge_client.uplink.factory import make_uplink
from submerge_files.console.progress import advancing
from submerge_lab.replay.dealt import Dealt, ReplayNode

LOOK_S = 0.2
"""Seconds between two looks at the progress."""


@dataclass(frozen=True, slots=True)
class Target:
    """The parent and group that a replay reports to.

    speed : rows a second and leaf; 0: as fast as nodes take them
    """

    link: UplinkConfig
    parent: str
    group: str
    node: str
    speed: float


@dataclass(frozen=True, slots=True)
class IntoResult:
    """Counts of a replay.

    rows : in the files
    acknowledged : held by the parent, `withheld` ones included; not equal to `rows`: it failed
    lost : read in an incarnation that the parent did not accept, or that only measured gamma;
        those rows were read again
    """

    rows: int
    acknowledged: int
    withheld: int
    lost: int
    bytes: int
    seconds: float
    nodes: tuple[str, ...]

    def figures(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def replay_into(
    target: Target,
    table: Table,
    leaves: Sequence[Array],
    *,
    rank: int | None,
    oversample: int,
    fill: bool,
    features: FeatureMap | None = None,
    center: Center,
) -> IntoResult:
    """Send rows through one client each, until their parent holds them.

    `features`: the map of a kernel group; without a gamma it takes the fleet's. `center`: as in
    the fleet's schema.

    Raises
    ------
    UsageError
        If the rank does not fit, the report would be too large, or the fleet does not settle
        its gamma.
    """
    schema = Schema(
        channels_of(table.names),
        features=Identity() if features is None else features,
        center=center,
    )
    if rank is not None and rank > schema.dim:
        what = "columns" if schema.linear else "features"
        raise UsageError(f"--rank must be at most the {schema.dim} {what}, got {rank}")
    kept = SummaryConfig(rank="auto" if rank is None else rank, oversample=oversample)
    names = [f"{target.node}-{i + 1}" for i in range(len(leaves))]
    if len(leaves) == 1:
        names = [target.node]
    agents = [
        _agent(target, name, schema, rows, kept.summaries, fill)
        for name, rows in zip(names, leaves, strict=True)
    ]
    began = time.monotonic()
    _run(agents, names, sum(map(len, leaves)))
    incarnations = _check_joins(agents, target)
    lost = sum(current.counts.lost for current in incarnations)
    return IntoResult(
        rows=sum(map(len, leaves)),
        # A declared loss is delivered as well, but is no row.
        acknowledged=max(0, sum(current.delivered for current in incarnations) - lost),
        withheld=sum(current.counts.withheld for current in incarnations),
        lost=lost,
        bytes=sum(agent.sent_bytes for agent in agents),
        seconds=time.monotonic() - began,
        nodes=tuple(names),
    )


def _check_joins(agents: Sequence[Agent], target: Target) -> list[ClientIncarnation]:
    """Return each agent's incarnation; refuse a replay that could not join or settle gamma."""
    refusals = [agent.refusal for agent in agents if agent.refusal]
    if refusals:
        message = f"--into: {target.parent} does not let {target.node} join: {refusals[0]}"
        hint = "; choose it with --center" if "center: " in message else ""
        raise UsageError(message + hint)
    incarnations = [agent.node.current for agent in agents]
    joined = all(current.pin is not None for current in incarnations)
    if joined and not all(current.learns for current in incarnations):
        raise UsageError(
            "the fleet has not settled its gamma: these rows have only measured for it;"
            " send more, or give both a gamma"
        )
    return incarnations


def _run(agents: Sequence[Agent], names: Sequence[str], rows: int) -> None:
    """Run each agent in a thread until all rows are delivered, or it is stopped."""
    threads = [
        threading.Thread(target=agent.run, name=name)
        for agent, name in zip(agents, names, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        with advancing("replay", rows) as advance:
            shown = 0
            while any(thread.is_alive() for thread in threads):
                threads[0].join(LOOK_S)
                done = sum(agent.delivered for agent in agents)
                advance(done - shown)
                shown = done
    finally:
        for agent in agents:
            agent.stop()
        for thread in threads:
            thread.join()


def _agent(
    target: Target, name: str, schema: Schema, rows: Array, summaries: Subspaces, fill: bool
) -> Agent:
    settings = ClientSettings(
        name,
        target.group,
        target.parent,
        report_every_s=5.0,
        checkpoint_every_s=3600.0,
        patience_s=2.0,
        cap_s=10.0,
        fills_gaps=fill,
        # Rows that a person sends are to be learnt, however anomalous they are.
        alarms=None,
    )
    sensor = Dealt(rows, target.speed)
    node = ReplayNode(settings, schema, summaries, np.random.default_rng(), sensor)
    uplink = make_uplink(target.link, parent=target.parent, node=name, groups=(target.group,))
    agent = Agent(
        node,
        uplink=uplink,
        sensor=sensor,
        disk=RecordStore(None),
        lags=Lags(1, schema.width),
        scores=None,
        clock=clock.now,
        coarse=target.link.columns == "i8",
        linger_s=30.0,
    )
    sensor.refused = lambda: agent.refusal
    return agent

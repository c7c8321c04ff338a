"""Files into a running fleet: each leaf is a client of its own, with an uplink of its own.

What `submerge client` does, but for its disk: rows go through the same agent and node, and
are reported to the aggregator that is named. A replay that ends has told everything, or
says how much it could not tell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge import Array, Channel, Schema, UsageError
from submerge.features import FeatureMap, Identity
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Center
from submerge_client import clock
from submerge_client.agent import Agent
from submerge_client.config.links import UplinkConfig
from submerge_client.datasets import Table
from submerge_client.disk import RecordStore
from submerge_client.sensors.lags import Lags
from submerge_client.uplink.factory import make_uplink
from submerge_fleet.console.progress import advancing
from submerge_fleet.replay.dealt import Dealt, ReplayNode

LOOK_S = 0.2
"""Between two looks at how far everybody is."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a replay goes.

    speed : rows a second and leaf; 0 is as fast as they are taken
    """

    link: UplinkConfig
    parent: str
    group: str
    node: str
    speed: float


@dataclass(frozen=True, slots=True)
class IntoResult:
    """What came of it.

    rows : of the files
    acknowledged : that the parent holds, `withheld` ones among them; as many, or it has failed
    lost : read, and gone with a life that the parent did not take, or that only measured what
        gamma is settled by: those were read again
    """

    rows: int
    acknowledged: int
    withheld: int
    lost: int
    bytes: int
    seconds: float
    nodes: tuple[str, ...]

    def figures(self) -> dict[str, Any]:
        """Return all, ready for JSON."""
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

    `features`: of a kernel group; with a gamma left open they take the fleet's. `center`: as
    the fleet's schema has it.

    Raises
    ------
    UsageError
        If the rank does not fit, the report would be too large, or the fleet does not settle
        its gamma.
    """
    schema = Schema(
        tuple(Channel(name) for name in table.names),
        features=Identity() if features is None else features,
        center=center,
    )
    if rank is not None and rank > schema.dim:
        what = "columns" if schema.linear else "features"
        raise UsageError(f"--rank must be at most the {schema.dim} {what}, got {rank}")
    rank = min(8, schema.dim) if rank is None else rank
    names = _names(target.node, len(leaves))
    agents = [
        _agent(target, name, schema, rows, rank, oversample, fill)
        for name, rows in zip(names, leaves, strict=True)
    ]
    began = time.monotonic()
    _run(agents, names, sum(map(len, leaves)))
    refusals = [agent.refusal for agent in agents if agent.refusal]
    if refusals:
        message = f"--into: {target.parent} does not let {target.node} join: {refusals[0]}"
        hint = "; --center says it" if "center: " in message else ""
        raise UsageError(message + hint)
    incarnations = [agent.node.current for agent in agents]
    if all(current.pin is not None for current in incarnations) and not all(
        current.learns for current in incarnations
    ):
        raise UsageError(
            "the fleet has not settled its gamma: these rows have only measured for it;"
            " send more, or give both a gamma"
        )
    lost = sum(current.counts.lost for current in incarnations)
    return IntoResult(
        rows=sum(map(len, leaves)),
        # A loss that was declared is delivered as well, and no row.
        acknowledged=max(0, sum(current.delivered for current in incarnations) - lost),
        withheld=sum(current.counts.withheld for current in incarnations),
        lost=lost,
        bytes=sum(agent.sent_bytes for agent in agents),
        seconds=time.monotonic() - began,
        nodes=tuple(names),
    )


def _names(node: str, leaves: int) -> list[str]:
    return [node] if leaves == 1 else [f"{node}-{i + 1}" for i in range(leaves)]


def _run(agents: Sequence[Agent], names: Sequence[str], rows: int) -> None:
    """Run each agent in a thread of its own until all rows are delivered, or it is stopped."""
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
    target: Target, name: str, schema: Schema, rows: Array, rank: int, oversample: int, fill: bool
) -> Agent:
    settings = ClientSettings(
        name,
        target.group,
        target.parent,
        report_every_s=5.0,
        checkpoint_every_s=3600.0,
        min_rows=1,
        patience_s=2.0,
        cap_s=10.0,
        fills_gaps=fill,
        # What somebody feeds in by hand is to be learnt, however odd it is.
        alarms=None,
    )
    sensor = Dealt(rows, target.speed)
    summaries = Subspaces(rank, oversample=oversample)
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

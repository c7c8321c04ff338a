"""Files into a running fleet: each leaf is a client of its own, with an uplink of its own.

What `submerge client` does, but for its disk: rows go through the same agent and node, and
are reported to the aggregator that is named. A replay that ends has told everything, or
says how much it could not tell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge import Array, Channel, Schema, UsageError
from submerge.client_node import ClientNode
from submerge.settings import ClientSettings
from submerge.summaries import Subspaces
from submerge_client import clock
from submerge_client.agent import Agent
from submerge_client.datasets import Table
from submerge_client.disk import Disk
from submerge_client.links import UplinkConfig
from submerge_client.sensors.lags import Lags
from submerge_client.uplink.chosen import chosen
from submerge_fleet.progress import advancing

BLOCK = 64
"""Rows that are handed on at once, where nobody waits for them."""

JOIN_S = 30.0
"""How long it waits for its parent to let it in."""

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
class Told:
    """What came of it.

    rows : of the files
    acknowledged : that the parent holds, `withheld` ones among them
    lost : read, and gone with a life that the parent did not take
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


class Dealt:
    """A sensor that has all of its rows, and waits with them until its node has joined.

    What is read before may belong to a life that ends with the join, because the fleet has a
    scaling of its own: then it would be lost.
    """

    counts: dict[str, int]

    def __init__(self, rows: Array, speed: float) -> None:
        self.counts = {}
        self.joined: Callable[[], bool] = lambda: True
        self.refused: Callable[[], str | None] = lambda: None
        self._rows, self._speed = rows, speed

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows, at the speed that is asked for."""
        until = time.monotonic() + JOIN_S
        while not self.joined() and not stop.wait(0.02):
            if self.refused() or time.monotonic() > until:
                return
        block = BLOCK if not self._speed else max(1, min(BLOCK, int(self._speed / 4)))
        began = time.monotonic()
        for first in range(0, len(self._rows), block):
            if self._speed:
                stop.wait(max(0.0, began + first / self._speed - time.monotonic()))
            if stop.is_set():
                return
            hand(self._rows[first : first + block])


def replay_into(
    target: Target,
    table: Table,
    leaves: Sequence[Array],
    *,
    rank: int | None,
    oversample: int,
    fill: bool,
) -> Told:
    """Send rows through one client each, until their parent holds them.

    Raises
    ------
    UsageError
        If the rank does not fit, or the report would be too large.
    """
    schema = Schema(tuple(Channel(name) for name in table.names))
    if rank is not None and rank > schema.dim:
        raise UsageError(f"--rank must be at most the {schema.dim} columns, got {rank}")
    rank = min(8, schema.dim) if rank is None else rank
    names = (
        [target.node]
        if len(leaves) == 1
        else [f"{target.node}-{i + 1}" for i in range(len(leaves))]
    )
    agents = [
        _agent(target, name, schema, rows, rank, oversample, fill)
        for name, rows in zip(names, leaves, strict=True)
    ]
    threads = [
        threading.Thread(target=agent.run, name=name)
        for agent, name in zip(agents, names, strict=True)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    try:
        with advancing("replay", sum(map(len, leaves))) as advance:
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
    refusals = [agent.refusal for agent in agents if agent.refusal]
    if refusals:
        raise UsageError(f"--into: {target.parent} does not let {target.node} join: {refusals[0]}")
    lives = [agent.node.life for agent in agents]
    lost = sum(life.counts.lost for life in lives)
    return Told(
        rows=sum(map(len, leaves)),
        # A loss that was declared is delivered as well, and no row.
        acknowledged=max(0, sum(life.delivered for life in lives) - lost),
        withheld=sum(life.counts.withheld for life in lives),
        lost=lost,
        bytes=sum(agent.sent_bytes for agent in agents),
        seconds=time.monotonic() - began,
        nodes=tuple(names),
    )


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
    )
    node = ClientNode(
        settings, schema, Subspaces(rank, oversample=oversample), np.random.default_rng()
    )
    uplink = chosen(target.link, parent=target.parent, node=name, groups=(target.group,))
    sensor = Dealt(rows, target.speed)
    agent = Agent(
        node,
        uplink=uplink,
        sensor=sensor,
        disk=Disk(None),
        lags=Lags(1, schema.width),
        scores=None,
        clock=clock.now,
        coarse=target.link.columns == "i8",
        linger_s=30.0,
    )
    sensor.joined = lambda: node.life.pin is not None
    sensor.refused = lambda: agent.refusal
    return agent

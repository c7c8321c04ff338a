"""Crowd: many clients in one process, fed in real time until somebody ends them.

They share a clock, the rooms that they read, and a few lines of facts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from submerge import UsageError
from submerge_fleet.crowd.member import CrowdMember, CrowdPlan, member
from submerge_fleet.crowd.motes import NODES, Building
from submerge_fleet.crowd.pace import Paced, RealTimePace, Rows

LOOK_S = 2.0
"""Between two looks whether everybody reads on."""


class Crowd:
    """Clients that run until they are stopped.

    Raises
    ------
    UsageError
        If a kit is missing or another's, or something else cannot be used.
    """

    def __init__(self, plan: CrowdPlan) -> None:
        buildings = [
            Building(
                plan.seed + number,
                sorted(p - first for p in plan.anomalous_places if first <= p < first + NODES),
                plan.anomalous_after,
            )
            for number, first in enumerate(range(0, len(plan.nodes), NODES))
        ]
        pace = RealTimePace(plan.rate)
        self.members: list[CrowdMember] = [
            member(plan, name, Paced(_rows(buildings[place // NODES], place % NODES), pace))
            for place, name in enumerate(plan.nodes)
        ]

    def run(
        self,
        stop: threading.Event,
        tell: Callable[[], None],
        every_s: float,
        alive: Path | None = None,
    ) -> None:
        """Run until `stop` is set, or a node ends by itself; then end all, gracefully.

        `tell` is called every so many seconds, and once when all have ended; `alive`, a file,
        is touched as long as every node reads on.
        """
        tell_at, seen = time.monotonic() + every_s, [0] * len(self.members)
        try:
            for member in self.members:
                member.start(stop)
            while not stop.wait(min(LOOK_S, max(0.0, tell_at - time.monotonic()))):
                if time.monotonic() >= tell_at:
                    tell()
                    tell_at += every_s
                read = [member.agent.rows for member in self.members]
                if alive is not None and all(
                    now > then for now, then in zip(read, seen, strict=True)
                ):
                    _touch(alive)
                    seen = read
        finally:
            for member in self.members:
                member.end()
            for member in self.members:
                if member.thread is not None:
                    member.thread.join()
        tell()

    @property
    def errors(self) -> dict[str, str]:
        """Nodes that have ended by themselves, and why."""
        return {member.name: member.error for member in self.members if member.error}

    @property
    def facts(self) -> dict[str, Any]:
        """Return how far they are, ready for JSON; from any thread.

        `rows` were read; of the lives that run, `delivered` are known to be with the parent
        (of these `withheld` and `lost` only counted), and `untold` are not.
        """
        agents = [member.agent for member in self.members]
        incarnations = [agent.node.current for agent in agents if hasattr(agent.node, "current")]
        return {
            "nodes": len(agents),
            "joined": sum(current.pin is not None for current in incarnations),
            "scoring": sum(member.ear.spe is not None for member in self.members),
            "rows": sum(agent.rows for agent in agents),
            "delivered": sum(current.delivered for current in incarnations),
            "unreported": sum(
                current.counts.generated - current.delivered for current in incarnations
            ),
            "withheld": sum(current.counts.withheld for current in incarnations),
            "lost": sum(current.counts.lost for current in incarnations),
            "skipped": sum(member.sensor.counts["skipped"] for member in self.members),
            "sent_bytes": sum(agent.sent_bytes for agent in agents),
            "heard_bytes": sum(agent.heard_bytes for agent in agents),
            "most_anomalous": self._most_anomalous,
        }

    @property
    def _most_anomalous(self) -> str | None:
        """The node that is the farthest from the middle one, whatever that means: no alarm."""
        ears = [(m.name, m.ear.spe, m.ear.t2) for m in self.members]
        known = [(name, spe, t2) for name, spe, t2 in ears if spe is not None and t2 is not None]
        if not known:
            return None
        # No 0 below the line: SPE is 0 where nothing is left over.
        far = max(median(spe for _, spe, _ in known), 1e-12)
        out = max(median(t2 for _, _, t2 in known), 1e-12)
        return max(known, key=lambda each: each[1] / far + each[2] / out)[0]


def _touch(alive: Path) -> None:
    try:
        alive.touch()
    except OSError as error:
        raise UsageError(
            f"--alive: expected a file that can be touched, got {alive}: {error.strerror}"
        ) from error


def _rows(building: Building, place: int) -> Rows:
    return lambda start, stop: building.rows(start, stop, place)


def names(prefix: str, nodes: int) -> Sequence[str]:
    """Return the nodes' names, from 1."""
    return tuple(f"{prefix}{number + 1}" for number in range(nodes))

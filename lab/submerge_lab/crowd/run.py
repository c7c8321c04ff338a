"""Many clients in one process, fed in real time until they are stopped. They share a clock, the
rooms that they read, and a few lines of facts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from submerge import UsageError
from submerge_lab.crowd.member import (
    CrowdMember,
    CrowdPlan,
    PacedSensor,
    RealTimePace,
    make_member,
)
from submerge_lab.crowd.motes import NODES, Building

LOOK_S = 2.0
"""Seconds between two checks that every node reads rows."""


class Crowd:
    """Clients that run until they are stopped."""

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
        rows = [
            partial(buildings[i // NODES].rows, place=i % NODES) for i in range(len(plan.nodes))
        ]
        self.members: list[CrowdMember] = [
            make_member(plan, name, PacedSensor(own, pace))
            for name, own in zip(plan.nodes, rows, strict=True)
        ]

    def run(
        self,
        stop: threading.Event,
        report: Callable[[], None],
        every_s: float,
        alive: Path | None = None,
    ) -> None:
        """Run until `stop` is set, or a node ends by itself; then end all, gracefully."""
        # `report` is called every `every_s` seconds, and once when all have ended; the file `alive`
        # is touched as long as every node reads rows.
        report_at, seen = time.monotonic() + every_s, [0] * len(self.members)
        try:
            for member in self.members:
                member.start(stop)
            while not stop.wait(min(LOOK_S, max(0.0, report_at - time.monotonic()))):
                if time.monotonic() >= report_at:
                    report()
                    report_at += every_s
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
        report()

    @property
    def errors(self) -> dict[str, str]:
        """Nodes that ended by themselves, with the reason."""
        return {member.name: member.error for member in self.members if member.error}

    @property
    def facts(self) -> dict[str, Any]:
        """Return the progress of all nodes for JSON; callable from any thread."""
        # `rows` were read. Of the running incarnations, the parent has acknowledged `delivered`
        # rows (`withheld` and `lost` ones are only counted), and not the `unreported` ones.
        agents = [member.agent for member in self.members]
        incarnations = [agent.node.current for agent in agents if hasattr(agent.node, "current")]
        return {
            "nodes": len(agents),
            "joined": sum(current.pin is not None for current in incarnations),
            "scoring": sum(member.scores.spe is not None for member in self.members),
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
        """The node whose mean scores are highest relative to the median node; this is no alarm."""
        means = [(m.name, m.scores.spe, m.scores.t2) for m in self.members]
        known = [(name, spe, t2) for name, spe, t2 in means if spe is not None and t2 is not None]
        if not known:
            return None
        # At least 1e-12, as SPE is 0 for rows within the subspace.
        middle_spe = max(median(spe for _, spe, _ in known), 1e-12)
        middle_t2 = max(median(t2 for _, _, t2 in known), 1e-12)
        return max(known, key=lambda each: each[1] / middle_spe + each[2] / middle_t2)[0]


def _touch(alive: Path) -> None:
    try:
        alive.touch()
    except OSError as error:
        raise UsageError(
            f"--alive: expected a file that can be touched, got {alive}: {error.strerror}"
        ) from error


def names(prefix: str, nodes: int) -> Sequence[str]:
    """Return the nodes' names, from 1."""
    return tuple(f"{prefix}{number + 1}" for number in range(nodes))

"""Judging: what the stores of a fleet that has stopped hold, against what it was fed and told.

Sums, not sets: a summary's mean and weight are exact whatever was merged, so weight times
mean is the sum of the readings that it holds, and energy gives the sum of their squares. All
are sums of whole numbers. In float64 they come back within 1e-3 of them (means are updated
some ten thousand times, each time to one part in 1e16), so what is off by HALF or more is off
by a reading. The sum of squares is too large for that: it has to agree to one part in 1e9,
which is less than one reading with an id above a few thousand adds to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Subspace
from submerge.aggregator.rows.pool import Row, Sealed
from submerge_aggregator.store import Store
from submerge_proto.kept import records
from support.kills.feeding import MARKS, Fed, sums
from support.kills.plan import PARENTS, ROOT
from support.programs import Program

HALF = 0.5
SQUARES = 1e-9

Verdict = list[str]

ALARMING = {
    "lost",
    "new store",
    *("message refused", "message of the parent refused", "report refused", "join refused"),
    *("message too large", "report too large"),
}
"""What no log of a fleet says whose disks are whole."""


@dataclass
class Held:
    """What a node's rows, or some nodes', come to.

    n : readings, as the reports count them
    total : (channels,), the sum of all readings
    squares : the sum of all squares
    """

    n: int
    total: np.ndarray
    squares: float

    @classmethod
    def of(cls, parts: Iterable[Row | Sealed], width: int) -> Held:
        held = cls(0, np.zeros(width), 0.0)
        for part in parts:
            report = part.report if isinstance(part, Row) else part
            held = held + cls.seen(report.counts.learnt, report.summary, width)
        return held

    @classmethod
    def seen(cls, n: int, summary: Subspace | None, width: int) -> Held:
        """Read one summary."""
        if summary is None:
            return cls(n, np.zeros(width), 0.0)
        total = summary.weight * summary.mean
        return cls(n, total, float(summary.energy + total @ summary.mean))

    @property
    def by_life(self) -> np.ndarray:
        """(lives,), readings of each life."""
        return self.total[MARKS:]

    def __add__(self, other: Held) -> Held:
        return Held(self.n + other.n, self.total + other.total, self.squares + other.squares)

    def differs(self, other: Held) -> str:
        """Say where two that should be the same are not; "" where they agree."""
        changed = np.abs(self.total - other.total)
        if self.n != other.n or changed.max() >= HALF:
            ids, marks, incarnations = (
                self.total[0],
                self.total[1],
                np.flatnonzero(changed[MARKS:] >= HALF),
            )
            return (
                f"{self.n} readings with ids {ids:.3f}, marks {marks:.3f}; expected {other.n},"
                f" {other.total[0]:.0f}, {other.total[1]:.0f};"
                f" incarnations that differ: {incarnations.tolist()}"
            )
        if abs(self.squares - other.squares) > SQUARES * max(1.0, other.squares):
            return f"squares sum to {self.squares:.6g}, expected {other.squares:.6g}"
        return ""


@dataclass
class ClientIncarnation:
    """What is known of one life of a client, beside what the stores hold.

    kept : readings in a checkpoint that its disk held when it died
    """

    fed: Fed
    kept: int = 0

    @property
    def acknowledged(self) -> int:
        """Readings that its parent has acknowledged, by its log."""
        reported = [line.facts for line in self.fed.program.said("acknowledged")]
        return max((each["readings"] - each["lost"] for each in reported), default=0)


@dataclass
class Findings:
    """What a run has shown; each list is of sentences, and should be empty.

    Attributes
    ----------
    missing : list of str
        Acknowledged, and not counted.
    twice : list of str
        Counted, and not once: what is held is not the sum of what was read.
    other : list of str
        Anything else that should not have happened.
    counted, acknowledged, fed : int
        Readings; of fed ones, some died with their process.
    """

    missing: Verdict = field(default_factory=list)
    twice: Verdict = field(default_factory=list)
    other: Verdict = field(default_factory=list)
    fed: int = 0
    acknowledged: int = 0
    counted: int = 0

    @property
    def all(self) -> Verdict:
        return self.missing + self.twice + self.other


def judge(
    stores: Mapping[str, Path], incarnations: list[ClientIncarnation], most_lives: int
) -> Findings:
    """Read the stores of a fleet that has stopped, and say what is wrong with them.

    Parameters
    ----------
    stores : mapping of str to Path
        Of the root, and of aggregators below it.
    lives : list of Life
        Of all clients, in order.
    most_lives : int
        Channels for the lives of each client.
    """
    findings, width = Findings(), MARKS + most_lives
    held = {node: holdings(path, width) for node, path in stores.items()}
    nothing = Held.of((), width)
    for node in stores.keys() - {ROOT}:
        there, here = held[ROOT].get(node, nothing), sum(held[node].values(), nothing)
        wrong = there.differs(here)
        if wrong:
            verdict = findings.missing if there.n < here.n else findings.twice
            verdict.append(f"of {node} the root holds {wrong}")
    for client in sorted({current.fed.client for current in incarnations}):
        own = [current for current in incarnations if current.fed.client == client]
        judge_client(client, own, held[PARENTS[client]].get(client, nothing), findings)
    findings.counted = sum(held[ROOT].values(), nothing).n
    return findings


def judge_client(
    client: str, incarnations: list[ClientIncarnation], held: Held, findings: Findings
) -> None:
    """Compare what is held of a client with what its lives read and were told."""
    expected = Held.of((), len(held.total))
    for current in incarnations:
        fed, number = current.fed.ids, current.fed.number
        n = round(float(held.by_life[number]))
        name = f"life {number} of {client}"
        findings.fed += len(fed)
        acknowledged = current.acknowledged
        findings.acknowledged += acknowledged
        if n < acknowledged:
            findings.missing.append(f"{name}: {acknowledged} were acknowledged, {n} are held")
        if n < current.kept:
            findings.other.append(f"{name}: its checkpoint had {current.kept}, {n} are held")
        if n > len(fed):
            findings.twice.append(f"{name}: it read {len(fed)} at most, {n} are held")
        expected += Held(n, *sums(fed[:n], number, len(held.by_life)))
    wrong = held.differs(expected)
    if wrong:
        findings.twice.append(f"{client} is held as {wrong}")


def holdings(path: Path, width: int) -> dict[str, Held]:
    """Return what a store holds, by node: rows and sealed ones together."""
    parts: dict[str, list[Any]] = defaultdict(list)
    store = Store(path)
    try:
        kept = records.unpack_all(store.load())
    finally:
        store.close()
    for key, record in kept.items():
        if key[0] in ("row", "sealed"):
            parts[key[2]].append(record)
    return {node: Held.of(each, width) for node, each in parts.items()}


def complaints(ran: list[tuple[str, Program]]) -> Verdict:
    """Return what the logs of a fleet say, and should not: none of its disks was lost.

    A client that died before it had ever met its parent has lost what it had read, and says
    so; so does an aggregator that begins its first store.
    """
    verdict, met = Verdict(), set[str]()
    for node, program in ran:
        for line in list(program.lines):
            why = line.facts.get("why")
            early = why == "kept before a join" or (why == "there was none" and node not in met)
            if line.level in ("", "error") or (line.what in ALARMING and not early):
                verdict.append(f"{node} says: {line.what} {line.facts}")
        met.add(node)
    return verdict

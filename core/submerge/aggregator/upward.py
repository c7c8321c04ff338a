"""Upward: an aggregator's tether, for one group, and what its children hear of the root.

An aggregator is a client of its parent, with one difference: its state lives in a database,
which may be copied or restored behind its back. So each process draws a *fence*, and the
parent lets only the newest heir of a line speak.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

import numpy as np

from submerge.protocol.messages import Answer, Incarnation, Left, Report
from submerge.protocol.session import ParentSession

FENCES = 64
"""Fences remembered: the parent may be restored from a backup of that many starts ago."""

MARKS = 8
"""Reports on the way whose contents are remembered, for saying what the root holds."""

Child = tuple[str, Incarnation]


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a store keeps of its speaking: committed with the rows that it speaks of.

    seq : of the newest report
    fence : this process's
    past : those of processes before it, the newest last, and the seq that each was left at
    admitted : the one that the parent let in last; it knows no later one
    """

    seq: int = 0
    fence: bytes = b""
    past: tuple[Left, ...] = ()
    admitted: bytes = b""

    def drawn(self, fence: bytes) -> Lineage:
        """Return the line under another fence."""
        past = (*self.past, Left(self.fence, self.seq)) if self.fence else self.past
        if len(past) > FENCES:
            # However many starts ago it was, the one that the parent holds stays.
            spared = 1 if past[0].fence == self.admitted else 0
            past = past[:spared] + past[spared + 1 :]
        return replace(self, fence=fence, past=past)


class Upward:
    """One group's way up.

    Attributes
    ----------
    tether : Tether
    line : Line
    changed : bool
        The rows say more than the newest report.
    root, durable : Incarnation or None, int
        The root's incarnation, and the newest report of ours that it holds.
    """

    def __init__(self, session: ParentSession, line: Lineage) -> None:
        self.session, self.line = session, line
        self.changed = False
        self.root: Incarnation | None = None
        self.durable = 0
        self._marks: dict[Child, list[tuple[int, int]]] = {}
        self._held: dict[Child, int] = {}

    @property
    def due_at(self) -> float:
        """When something is to be sent, if nothing else happens."""
        return self.session.due_at(news=self.changed)

    def draw_fence(self, rng: np.random.Generator) -> None:
        """Claim the line for this process, and ask to join under it."""
        self.line = self.line.drawn(rng.bytes(16))
        self.session.join.now()

    def queue_report(self, report: Report, steady: float, rng: np.random.Generator) -> None:
        """Take a new report; its number is committed before it is sent."""
        self.line = replace(self.line, seq=report.stamp.seq)
        self.changed = False
        self.session.queue_report(report, steady, rng)

    def acknowledged(self, answer: Answer) -> None:
        """The parent holds a report; maybe the root does, too."""
        self.session.confirmed(answer.newest)
        if answer.root is None:
            return
        if answer.root != self.root:
            # Another root holds nothing for certain until it says so.
            self._held.clear()
            self.durable = 0
        # An older answer may come later.
        self.root, self.durable = answer.root, max(self.durable, answer.durable)

    # -- what the root holds of a child ------------------------------------------

    def mark(self, child: Child, seq: int) -> None:
        """The next report is the first to hold a child's `seq`."""
        marks = self._marks.setdefault(child, [])
        following = self.line.seq + 1
        if marks and marks[-1][1] == following:
            marks.pop()
        marks.append((seq, following))
        # From the middle: the oldest is the first that the root can confirm.
        del marks[1 : len(marks) - MARKS + 1]

    def held(self, child: Child) -> int:
        """Return the newest seq of a child that the root holds for certain."""
        marks = self._marks.get(child, [])
        while marks and marks[0][1] <= self.durable:
            self._held[child] = marks.pop(0)[0]
        return self._held.get(child, 0)

    def only(self, children: Container[Child]) -> None:
        """Forget what is remembered of others: their rows are gone."""
        for known in (self._marks, self._held):
            for child in [child for child in known if child not in children]:
                del known[child]

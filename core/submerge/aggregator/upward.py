"""Upward: an aggregator's session with its parent, for one group, and what the root holds.

Its state is in a database that may be copied or restored without its knowledge. So each process
draws a *fence*; the parent lets only the newest process of a lineage report.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from submerge.protocol.messages import Answer, Incarnation, Left, Report
from submerge.protocol.names import RandomSource
from submerge.protocol.session import ParentSession

FENCES = 64  # fences remembered: the parent may be restored from a backup that many starts old
MARKS = 8  # reports on the way that are remembered, to know what the root holds

Child = tuple[str, Incarnation]


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a store keeps of its reports: committed with the rows that they contain."""

    seq: int = 0
    fence: bytes = b""
    past: tuple[Left, ...] = ()  # of earlier processes: fence and last seq, the newest last
    admitted: bytes = b""  # the fence that the parent accepted last

    def with_fence(self, fence: bytes) -> Lineage:
        past = (*self.past, Left(self.fence, self.seq)) if self.fence else self.past
        if len(past) > FENCES:
            # The fence that the parent holds stays, however many starts ago it was.
            spared = 1 if past[0].fence == self.admitted else 0
            past = past[:spared] + past[spared + 1 :]
        return replace(self, fence=fence, past=past)


class Upward:
    """One group's way to the parent: whether rows `changed` since the newest report."""

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

    def draw_fence(self, rng: RandomSource) -> None:
        """Claim the lineage for this process, and join under it."""
        self.line = self.line.with_fence(rng.bytes(16))
        self.session.join.now()

    def queue_report(self, report: Report, steady: float, rng: RandomSource) -> None:
        """Take a new report; its number is committed before it is sent."""
        self.line = replace(self.line, seq=report.stamp.seq)
        self.changed = False
        self.session.queue_report(report, steady, rng)

    def take_acknowledgement(self, answer: Answer) -> None:
        """Take the parent's acknowledgement of a report, and what the root holds."""
        self.session.confirm(answer.newest)
        if answer.root is None:
            return
        if answer.root != self.root:
            # Nothing is known of another root until it reports what it holds.
            self._held.clear()
            self.durable = 0
        # An older answer may arrive later.
        self.root, self.durable = answer.root, max(self.durable, answer.durable)

    def mark(self, child: Child, seq: int) -> None:
        """Note that the next report is the first with a child's `seq`."""
        marks = self._marks.setdefault(child, [])
        following = self.line.seq + 1
        if marks and marks[-1][1] == following:
            marks.pop()
        marks.append((seq, following))
        # From the middle: the oldest is the first that the root can confirm.
        del marks[1 : len(marks) - MARKS + 1]

    def postpone(self, seq: int) -> None:
        """Note that the report of that number has the rows of the one before."""
        for marks in self._marks.values():
            if marks and marks[-1][1] == seq:
                marks[-1] = marks[-1][0], seq + 1

    def held(self, child: Child) -> int:
        """Return the newest seq of a child that the root surely holds."""
        marks = self._marks.get(child, [])
        while marks and marks[0][1] <= self.durable:
            self._held[child] = marks.pop(0)[0]
        return self._held.get(child, 0)

    def only(self, children: Container[Child]) -> None:
        """Forget all other children: their rows are gone."""
        for known in (self._marks, self._held):
            for child in [child for child in known if child not in children]:
                del known[child]

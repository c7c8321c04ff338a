"""Who gets the next snapshot: clients in turn, none more than it takes.

1. A snapshot goes to the next client in turn that has room; a client that is dead, or not
   back yet, has none: what it would have been dealt goes to the others.
2. A client that has not scored a row yet is on trial: a few rows, then one now and then.
   At first all are, until each has its first model: what gaps are filled with before,
   nobody hears of, so that it should be little.
3. Any other is given at most `AHEAD` rows that it has not scored: nobody is fed faster
   than it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

KNOCKS = 80.0
"""Rows a second that the whole fleet is given then, after the first few."""

AHEAD = 12
"""Rows that a client may have in front of it. What is taken out of service is still read for as
long as there are rows on their way: with 32 of them false alarms were eight times as many."""

BURST_S = 0.25
"""What could not be dealt in time is made up for by so much at most."""


class Trial(NamedTuple):
    """What a client is given before it has scored a row: a few, then one now and then."""

    rows: int
    knock_s: float


@dataclass(slots=True, eq=False)
class Stint:
    """One client process from its start to its end, as those see it who feed it.

    Attributes
    ----------
    node : str
    snapshots : list of int
        Which snapshot each of its rows was.
    scored : int
        Rows of it that are scored, or never will be.
    told : int
        Readings of it that its parent has acknowledged.
    lives : set of str
        Incarnations that it has spoken under.
    reading : bool
        It has said that it reads; then until its end.
    killed, ended : bool
    """

    node: str
    snapshots: list[int] = field(default_factory=list)
    scored: int = 0
    acknowledged: int = 0
    incarnations: set[str] = field(default_factory=set)
    reading: bool = False
    killed: bool = False
    ended: bool = False
    _given_at: float = 0.0

    @property
    def given(self) -> int:
        """Rows that were written to it."""
        return len(self.snapshots)

    @property
    def known(self) -> bool:
        """Whether it has scored a row."""
        return self.scored > 0

    def has_room(self, now: float, trial: Trial | None) -> bool:
        """Whether it may be given a row, on trial or not."""
        if not self.reading or self.killed or self.ended:
            return False
        if trial is not None:
            return self.given < trial.rows or now - self._given_at >= trial.knock_s
        # What its parent has acknowledged it has read, scored or not.
        return self.given - max(self.scored, min(self.acknowledged, self.given)) < AHEAD

    def give(self, snapshot: int, now: float) -> None:
        """Note that it is given a snapshot."""
        self.snapshots.append(snapshot)
        self._given_at = now


class Dealer:
    """Deals snapshots out, in order.

    Parameters
    ----------
    total : int
        Snapshots that there are.
    trial : Trial

    Attributes
    ----------
    dealt : int
    """

    def __init__(self, total: int, trial: Trial) -> None:
        self.dealt, self.total = 0, total
        self._trial = trial
        self._credit, self._turn = 0.0, 0
        self._at: float | None = None

    @property
    def done(self) -> bool:
        """Whether there are no more."""
        return self.dealt >= self.total

    def deal(self, stints: Sequence[Stint], now: float, *, rate: float) -> list[tuple[int, Stint]]:
        """Deal what is due at so many a second among those that have room."""
        due = min(self.total, self.dealt + self._due(stints, now, rate))
        dealt = []
        while self.dealt < due:
            stint = self._next(stints, now)
            if stint is None:
                break
            stint.give(self.dealt, now)
            dealt.append((self.dealt, stint))
            self.dealt += 1
        self._credit = max(0.0, self._credit - len(dealt))
        return dealt

    def _due(self, stints: Sequence[Stint], now: float, rate: float) -> int:
        """Return how many may go out: at first, as many as those on trial take."""
        if self._at is None and not all(stint.known for stint in stints):
            return self.total
        since = 0.0 if self._at is None else now - self._at
        self._at = now
        self._credit = min(self._credit + rate * since, max(1.0, rate * BURST_S))
        return int(self._credit)

    def _next(self, stints: Sequence[Stint], now: float) -> Stint | None:
        for i in range(len(stints)):
            stint = stints[(self._turn + i) % len(stints)]
            on_trial = self._at is None or not stint.known
            if stint.has_room(now, self._trial if on_trial else None):
                self._turn = (self._turn + i + 1) % len(stints)
                return stint
        return None

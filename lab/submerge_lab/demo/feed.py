"""Which client gets the next snapshot: they take turns, and none gets more than it can take.

1. A snapshot goes to the next client in turn that has room. A client that is down, or not back
   yet, has none: the others get its share.
2. A client that has not scored a row yet is on trial: it gets a few rows, then one now and then.
   At first all are on trial, until each has its first model: rows before it are not judged, so
   they should be few.
3. Any other client has at most `AHEAD` rows that it has not scored: no client is fed faster than
   it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

KNOCKS = 80.0
"""Rows a second for the whole fleet while it is on trial, after the first few."""

AHEAD = 12
"""Unscored rows that a client may have. A mote that is taken out of service is still read until
the rows on their way are scored: with 32 of them there were eight times as many false alarms."""

BURST_S = 0.25
"""Seconds' worth of snapshots that are dealt at once, at most, to catch up."""


class Trial(NamedTuple):
    """What a client gets before it has scored a row: `rows` rows, then one every `knock_s`."""

    rows: int
    knock_s: float


@dataclass(slots=True, eq=False)
class Stint:
    """One client process from its start to its end, as the demo that feeds it sees it.

    scored : Rows that are scored, or never will be.
    """

    node: str
    given: int = 0
    snapshots: list[int] = field(default_factory=list)
    scored: int = 0
    acknowledged: int = 0
    incarnations: set[str] = field(default_factory=set)
    reading: bool = False
    killed: bool = False
    ended: bool = False
    _given_at: float = 0.0

    @property
    def has_scored(self) -> bool:
        """Return whether it has scored a row."""
        return self.scored > 0

    def has_room(self, now: float, trial: Trial | None) -> bool:
        """Return whether it may get a row; `trial` is its allowance while on trial."""
        if not self.reading or self.killed or self.ended:
            return False
        if trial is not None:
            return self.given < trial.rows or now - self._given_at >= trial.knock_s
        # It has read what its parent has acknowledged, scored or not.
        return self.given - max(self.scored, min(self.acknowledged, self.given)) < AHEAD

    def give(self, now: float) -> None:
        """Note that it gets a row."""
        self.given += 1
        self._given_at = now


class Dealer:
    """Deals `total` snapshots out, in order; `dealt` is how many so far."""

    def __init__(self, total: int, trial: Trial) -> None:
        self.dealt, self.total = 0, total
        self._trial = trial
        self._credit, self._turn = 0.0, 0
        self._at: float | None = None

    @property
    def done(self) -> bool:
        """Return whether all are dealt."""
        return self.dealt >= self.total

    def deal(self, stints: Sequence[Stint], now: float, *, rate: float) -> list[tuple[int, Stint]]:
        """Deal what is due at `rate` snapshots a second to clients that have room."""
        due = min(self.total, self.dealt + self._due(stints, now, rate))
        dealt = []
        while self.dealt < due:
            stint = self._next(stints, now)
            if stint is None:
                break
            stint.give(now)
            dealt.append((self.dealt, stint))
            self.dealt += 1
        self._credit = max(0.0, self._credit - len(dealt))
        return dealt

    def _due(self, stints: Sequence[Stint], now: float, rate: float) -> int:
        """Return how many may go out: at first, as many as clients on trial take."""
        if self._at is None and not all(stint.has_scored for stint in stints):
            return self.total
        since = 0.0 if self._at is None else now - self._at
        self._at = now
        self._credit = min(self._credit + rate * since, max(1.0, rate * BURST_S))
        return int(self._credit)

    def _next(self, stints: Sequence[Stint], now: float) -> Stint | None:
        for i in range(len(stints)):
            stint = stints[(self._turn + i) % len(stints)]
            on_trial = self._at is None or not stint.has_scored
            if stint.has_room(now, self._trial if on_trial else None):
                self._turn = (self._turn + i + 1) % len(stints)
                return stint
        return None

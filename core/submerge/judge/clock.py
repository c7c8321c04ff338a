"""RowClock: how much time rows stand for. Each block carries its own time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from submerge.stats.block_maxima import HOUR_S


class RowTime(NamedTuple):
    """The time that some rows stand for.

    period_s : of each row; 0 goes by the clock
    since_s : seconds since the rows before, by the clock; 0 for the first rows of a process
    """

    period_s: float = 0.0
    since_s: float = 0.0

    def elapsed_s(self, rows: int) -> float:
        """Return by how much `rows` rows are later than the rows before."""
        return rows * self.period_s if self.period_s else self.since_s

    def seen_s(self, rows: int) -> float:
        """Return the time that `rows` rows have seen.

        A sensor that was silent for a day has not seen a day.
        """
        return rows * self.period_s if self.period_s else min(self.since_s, HOUR_S)


@dataclass(frozen=True, slots=True)
class RowClock:
    """When rows arrived last.

    period_s : Time that a row stands for; 0 goes by the clock.
    last_s : Steady time of the newest rows; None before the first.
    """

    period_s: float = 0.0
    last_s: float | None = None

    def read(self, steady_s: float) -> tuple[RowClock, RowTime]:
        """Return the clock after rows at a steady time, and the time that they stand for."""
        since_s = 0.0 if self.last_s is None else steady_s - self.last_s
        return replace(self, last_s=steady_s), RowTime(self.period_s, since_s)

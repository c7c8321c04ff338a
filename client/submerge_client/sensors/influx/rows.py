"""TimedRows: a row is put together from readings of one timestamp.

Pure: the steady clock is an argument, and times are integers in the stream's unit.

1. A row is open from its first reading on. It closes when each channel has a value, when it has
   been open for `wait_s`, or when more than `most` rows are open and it is the oldest. Channels
   without a value are gaps.
2. Rows are given out in the order of their times: a row that closes closes all earlier ones first.
   A row that begins before one that was given out is "out_of_order", and a row all the same.
3. A reading for a row that was closed lately (`REMEMBERED`) is "late" and dropped. Of two readings
   of a channel in a row, the later to arrive counts; the other one is "repeated".
4. Readings without a time belong to a row of their own: that of the first one's arrival, which
   closes as the others do.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

MOST_OPEN = 64
REMEMBERED = 256


class TimedRow(NamedTuple):
    """A row, with NaN for gaps, and its time."""

    time: int
    values: list[float]


class _OpenRow:
    """A row that is being put together."""

    __slots__ = ("begun", "missing", "values")

    def __init__(self, channels: int, begun: float) -> None:
        self.values = [math.nan] * channels
        self.missing, self.begun = channels, begun


class TimedRows:
    """Puts rows together.

    wait_s : How long a row waits for its readings. Raising it catches slower devices, and scores
        later.
    most : Rows that may be open.

    counts : Readings "late" and "repeated", rows "out_of_order", and "crowded": those that had to
        close because too many were open.
    """

    def __init__(self, channels: int, wait_s: float, *, most: int = MOST_OPEN) -> None:
        self._channels, self._wait_s, self._most = channels, wait_s, most
        self._open: dict[int, _OpenRow] = {}
        self._ready: list[TimedRow] = []
        self._closed: deque[int] = deque(maxlen=REMEMBERED)
        self._are_closed: set[int] = set()
        self._newest: int | None = None
        self._arrived: int | None = None
        self.counts = dict.fromkeys(("late", "repeated", "out_of_order", "crowded"), 0)

    def put(self, time: int, channel: int, value: float, now: float) -> None:
        """Add a finite reading; `now` on a steady clock, in seconds."""
        row = self._open.get(time)
        if row is None:
            if time in self._are_closed:
                self.counts["late"] += 1
                return
            row = self._begin(time, now)
        if math.isnan(row.values[channel]):
            row.missing -= 1
        else:
            self.counts["repeated"] += 1
        row.values[channel] = value
        if not row.missing:
            self._close_until(time)

    def arrival(self, time: int) -> int:
        """Return the time of readings that have none and arrive at `time`."""
        if self._arrived not in self._open:
            while time in self._are_closed or time in self._open:
                time += 1  # in a coarse unit, two rows may arrive at one time
            self._arrived = time
        return time if self._arrived is None else self._arrived

    def take(self, now: float, *, all_of_them: bool = False) -> list[TimedRow]:
        """Return the rows that have closed, in the order in which they are to be read."""
        due = [
            time
            for time, row in self._open.items()
            if all_of_them or now - row.begun >= self._wait_s
        ]
        if due:
            self._close_until(max(due))
        ready, self._ready = self._ready, []
        return ready

    @property
    def due_at(self) -> float:
        """When the next row closes, on the clock of `put`; infinity while none is open."""
        # Rows are kept in the order in which they began.
        return next((row.begun + self._wait_s for row in self._open.values()), math.inf)

    def _begin(self, time: int, now: float) -> _OpenRow:
        if len(self._open) >= self._most:
            self.counts["crowded"] += 1
            self._close_until(min(self._open))
        if self._newest is not None and time < self._newest:
            self.counts["out_of_order"] += 1
        row = self._open[time] = _OpenRow(self._channels, now)
        return row

    def _close_until(self, last: int) -> None:
        for time in sorted(time for time in self._open if time <= last):
            self._ready.append(TimedRow(time, self._open.pop(time).values))
            if len(self._closed) == REMEMBERED:
                self._are_closed.discard(self._closed[0])
            self._closed.append(time)
            self._are_closed.add(time)
            self._newest = time if self._newest is None else max(time, self._newest)

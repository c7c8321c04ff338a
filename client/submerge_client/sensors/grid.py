"""Grid: makes rows of readings that arrive one by one, each channel at its own times.

Pure: time is an argument. The points of the grid are the multiples of `period_s`.

1. A reading belongs to the first point that is not before it: point p has the readings after
   p - period_s, up to p. Of two readings of a channel at one time, the later to arrive counts.
2. A point is given out once, when now >= p + lateness_s, and points in their order. A
   reading whose point has been given out is late: it is counted and dropped.
3. "hold": a channel's value at p is its newest reading, if that is no older than
   max_age_s at p; without max_age_s, no older than usual for the channel (`Silences`).
   "mean": the mean of the readings that belong to p; if none do, as "hold". "drop": as "hold",
   but a row with any gap is counted ("incomplete") and left out. A row of gaps is left out.
4. Of many points due at once, the newest 256 are given out: a clock that leaps ahead makes no
   flood of rows. A reading whose point lies more than lateness_s and a period ahead is dropped.
5. A clock set back by more than that begins the grid again there ("turned_back"): otherwise nothing
   would be given out until it has caught up. The first `rows(now)` sets where the grid begins.
6. A reading without a value ends what is held of its channel: it is a gap until the next one.
7. `held` says which numbers of the last rows are of earlier points: from the rows alone, a device
   that speaks seldom looks like a sensor that is stuck.

The order of arrival does not change a bit of the rows, as long as no reading is late, repeated
or crowded out. Each reading is one of `waiting`, or counted once, and so is each passed point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from submerge import Array, UsageError
from submerge.errors import whole
from submerge.judge.decision import Mask
from submerge.pca.subspace import LARGEST
from submerge_client.files import atomic_write
from submerge_client.sensors.tally import SensorLog

FIRST_S = 3600.0
TIMES = 3.0
LEAST_ROWS = 30
MOST_S = 25 * 3600.0  # a battery sensor counts as away after that in Zigbee2MQTT, too

HALF_LIFE_S = 7 * 86400.0


class Silences:
    """The usual silences of channels, (channels,), 0 if unknown; how old a held value may be."""

    def __init__(self, channels: int, period_s: float) -> None:
        self._least_s = LEAST_ROWS * period_s
        self.longest_s: Array = np.zeros(channels)
        self.ages_s: Array = np.full(channels, max(FIRST_S, self._least_s))

    def end(self, channel: int, seconds: float) -> None:
        faded = self.longest_s[channel] * 2.0 ** -(seconds / HALF_LIFE_S)
        self.recall(channel, max(min(seconds, self.ages_s[channel]), faded))

    def recall(self, channel: int, longest_s: float) -> None:
        """Take the longest usual silence of a channel, as it was known."""
        self.longest_s[channel] = longest_s
        self.ages_s[channel] = max(min(TIMES * longest_s, MOST_S), self._least_s)


Missing = Literal["hold", "mean", "drop"]

SHORTEST_S = 0.001
LATEST_S = 1e12  # later times, after the year 33658, are unusable
MOST_ROWS = 256
MOST_WAITING = 1 << 16


class Grid:
    """Aligns readings of several channels, a row each `period_s`; more: fewer, of more readings.

    max_age_s : Of held readings. Longer: fewer gaps and staler values; None: by usual silences.
    lateness_s : Longer: fewer late readings, and later rows.
    most : Readings that may wait, over all channels.
    held, absent : Of the last rows, (n, channels) of an earlier point; (channels,) without value.
    """

    def __init__(
        self,
        channels: int,
        *,
        period_s: float,
        max_age_s: float | None,
        lateness_s: float,
        missing: Missing = "hold",
        most: int = MOST_WAITING,
    ) -> None:
        self.channels = whole("channels", channels, least=1)
        if not SHORTEST_S <= period_s < math.inf:
            raise UsageError(f"period_s must be at least {SHORTEST_S} seconds, got {period_s}")
        for name, seconds in (("max_age_s", max_age_s), ("lateness_s", lateness_s)):
            if seconds is not None and not 0 <= seconds < math.inf:
                raise UsageError(f"{name} must be a time in seconds, at least 0, got {seconds}")
        if missing not in get_args(Missing):
            raise UsageError(f'missing must be "hold", "mean" or "drop", got {missing!r}')
        self._period = period_s
        # The ages follow what the channels do, where none is set.
        self.silences = Silences(channels, period_s) if max_age_s is None else None
        ages = None if self.silences is None else self.silences.ages_s
        self._ages: Array = np.full(channels, max_age_s) if ages is None else ages
        self._lateness = lateness_s
        self._missing = missing
        self._most = whole("most", most, least=1)
        self.held: Mask = np.zeros((0, channels), dtype=bool)
        self.absent: Mask = np.ones(channels, dtype=bool)
        self._begun = False
        self._next = 0
        self._now = -math.inf
        # Point, channel, time: value.
        self._waiting: dict[int, dict[int, dict[float, float]]] = {}
        self.waiting = 0
        self._times = np.full(channels, -math.inf)
        self._values = np.full(channels, math.nan)
        self.counts = dict.fromkeys(
            (
                *("taken", "late", "early", "repeated", "crowded", "unusable"),
                *("rows", "empty", "incomplete", "skipped", "turned_back"),
            ),
            0,
        )

    def put(self, channel: int, time: float, value: float | None) -> None:
        """Add a reading, by the clock of `rows`; a value of None says that there is none."""
        # This form is false for NaN, too.
        if not (abs(time) <= LATEST_S and (value is None or abs(value) <= LARGEST)):
            self.counts["unusable"] += 1
            return
        point = math.ceil(time / self._period)
        if self._begun and point < self._next:
            self.counts["late"] += 1
        elif self.waiting >= self._most:
            self.counts["crowded"] += 1
        else:
            readings = self._waiting.setdefault(point, {}).setdefault(channel, {})
            if time in readings:
                self.counts["repeated"] += 1
            else:
                self.waiting += 1
            readings[time] = math.nan if value is None else value

    def rows(self, now: float) -> Array:
        """Return the rows of all points that are due, (n, channels), oldest first."""
        due = math.floor((now - self._lateness) / self._period)
        last = math.ceil((now + self._lateness) / self._period) + 1
        for point in [point for point in self._waiting if point > last]:
            self.counts["early"] += self._count_out(self._waiting.pop(point))
        if not self._begun or now < self._now - self._lateness - self._period:
            self._begin_after(due, now)
        self._now = max(now, self._now)
        self.held = np.zeros((0, self.channels), dtype=bool)
        if due < self._next:
            return np.empty((0, self.channels))
        first = max(self._next, due - MOST_ROWS + 1)
        self.counts["skipped"] += first - self._next
        self._remember_until(first - 1)
        rows = np.empty((due + 1 - first, self.channels))
        held = np.empty(rows.shape, dtype=bool)
        for i, point in enumerate(range(first, due + 1)):
            rows[i] = self._row(point)
            held[i] = self._times <= (point - 1) * self._period
        self._next = due + 1
        self.absent = np.isnan(rows[-1])
        kept = self._kept(rows)
        self.held = held[kept] & ~np.isnan(rows[kept])
        return np.asarray(rows[kept])

    def _begin_after(self, due: int, now: float) -> None:
        """Begin the grid, for the first time or because the clock was set back."""
        if self._begun:
            self.counts["turned_back"] += 1
            # Readings from a wrong future would be the newest for ever.
            self._times[self._times > now + self._lateness] = -math.inf
        self._remember_until(due)
        self._begun = True
        self._next = due + 1
        self._now = now

    def _remember_until(self, last: int) -> None:
        """Take the readings of points that are not given out."""
        for point in sorted(point for point in self._waiting if point <= last):
            self._take(point)

    def _take(self, point: int) -> dict[int, dict[float, float]]:
        """Take the readings of a point, and hold each channel's newest one."""
        bucket = self._waiting.pop(point, {})
        self.counts["taken"] += self._count_out(bucket)
        for channel, readings in bucket.items():
            time = max(readings)
            if self.silences is not None:
                self._end_silences(self.silences, channel, readings)
            self._times[channel] = time
            self._values[channel] = readings[time]
        return bucket

    def _end_silences(self, silences: Silences, channel: int, readings: dict[float, float]) -> None:
        before, value = float(self._times[channel]), float(self._values[channel])
        for time in sorted(readings):
            # While it says that it is away, a device has no habits.
            if before > -math.inf and not math.isnan(value + readings[time]):
                silences.end(channel, time - before)
            before, value = time, readings[time]

    def _row(self, point: int) -> Array:
        bucket = self._take(point)
        fresh = self._times >= point * self._period - self._ages
        row: Array = np.where(fresh, self._values, math.nan)
        if self._missing == "mean":
            for channel, readings in bucket.items():
                # fsum rounds once, so the order of arrival leaves no trace.
                numbers = [value for value in readings.values() if not math.isnan(value)]
                if numbers:
                    row[channel] = math.fsum(numbers) / len(numbers)
        return row

    def _kept(self, rows: Array) -> Mask:
        """Return which rows (n,) are neither empty nor left out as incomplete."""
        gaps = np.isnan(rows)
        empty = gaps.all(axis=1)
        left_out = gaps.any(axis=1) if self._missing == "drop" else empty
        self.counts["empty"] += int(np.count_nonzero(empty))
        self.counts["incomplete"] += int(np.count_nonzero(left_out & ~empty))
        self.counts["rows"] += int(np.count_nonzero(~left_out))
        return np.asarray(~left_out)

    def _count_out(self, bucket: dict[int, dict[float, float]]) -> int:
        """Return how many readings a point has, and count them out of `waiting`."""
        number = sum(map(len, bucket.values()))
        self.waiting -= number
        return number


WRITE_S = 6 * 3600.0

MOST_BYTES = 1 << 20  # bytes; a longer file is not ours


class KeptSilences:
    """Silences that outlive the process, in a file; without a path nothing is kept."""

    def __init__(
        self,
        path: Path | None,
        channels: Sequence[str],
        silences: Silences,
        *,
        note: SensorLog,
        now: float,
    ) -> None:
        self._path, self._channels, self._silences = path, tuple(channels), silences
        self._note, self._due_at, self._failed = note, now + WRITE_S, False
        known = {} if path is None else _read(path)
        for place, name in enumerate(channels):
            seconds = known.get(name)
            if isinstance(seconds, float | int) and 0 < seconds <= MOST_S:
                silences.recall(place, float(seconds))
        self._written = silences.longest_s.copy()

    def write(self, now: float = math.inf) -> None:
        """Write the file if it is due, and anything has changed; without `now`, it is due."""
        if self._path is None or now < self._due_at:
            return
        self._due_at = now + WRITE_S
        longest = self._silences.longest_s
        if (longest == self._written).all():
            return
        known = {name: s for name, s in zip(self._channels, longest.tolist(), strict=True) if s > 0}
        try:
            atomic_write(
                self._path, json.dumps({"form": 1, "longest_s": known}).encode(), mode=0o600
            )
        except OSError as error:
            if not self._failed:
                self._note("silences not written", path=str(self._path), why=str(error))
            self._failed = True
            return
        self._written, self._failed = longest.copy(), False


def _read(path: Path) -> dict[str, object]:
    """Return the silences in a file by name; {} if it is not such a file."""
    try:
        with path.open("rb") as file:
            content = msgspec.json.decode(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict) or content.get("form") != 1:
        return {}
    known = content.get("longest_s")
    return known if isinstance(known, dict) else {}

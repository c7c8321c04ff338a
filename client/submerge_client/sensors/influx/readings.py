"""InfluxReadings: metrics of Telegraf on standard input, as rows (docs/decisions/0056)."""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np

from submerge import UsageError
from submerge.pca.subspace import LARGEST
from submerge_client.config.sensors import DEVICE, FIELD, MEASUREMENT, PLACE, InfluxSensor
from submerge_client.sensors.gather import BLOCK, Hand
from submerge_client.sensors.influx.line_protocol import (
    MalformedLine,
    cut,
    fields_of,
    series_of,
    value_of,
)
from submerge_client.sensors.influx.outlet import MetricOutlet
from submerge_client.sensors.lines import LineReader
from submerge_client.sensors.mqtt.decoder import as_number
from submerge_client.sensors.ndjson import CHUNK, PATIENCE_MS, readable
from submerge_client.sensors.tally import ProblemTally, SensorLog, UnlistedNames, no_log

MOST_OPEN = 64
REMEMBERED = 256


class TimedRow(NamedTuple):
    time: int
    values: list[float]


class _OpenRow:
    __slots__ = ("begun", "missing", "values")

    def __init__(self, channels: int, begun: float) -> None:
        self.values = [math.nan] * channels
        self.missing, self.begun = channels, begun


class TimedRows:
    """Puts rows together, of which `most` may be open; a longer `wait_s` catches slower devices."""

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
            each_time
            for each_time, row in self._open.items()
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
        for each_time in sorted(each_time for each_time in self._open if each_time <= last):
            self._ready.append(TimedRow(each_time, self._open.pop(each_time).values))
            if len(self._closed) == REMEMBERED:
                self._are_closed.discard(self._closed[0])
            self._closed.append(each_time)
            self._are_closed.add(each_time)
            self._newest = each_time if self._newest is None else max(each_time, self._newest)


MOST_SERIES = 4096


class Series(NamedTuple):
    """What the fields of a series are: each one's channel, if any, and what its name is made of."""

    places: dict[str, int]
    before: str | None
    behind: str

    def name_of(self, field: str) -> str | None:
        return None if self.before is None else f"{self.before}{field}{self.behind}"


class SeriesNames:
    """Finds the channels of series; `ignored` tags are no part of a device."""

    def __init__(
        self, channels: Sequence[str], *, template: str, ignored: Collection[str] = ()
    ) -> None:
        self._channels = tuple(channels)
        # Text and places take turns, text first.
        self._parts = PLACE.split(template)
        named = self._parts[1::2]
        self._apart = set(ignored) | (set(named) - {FIELD, DEVICE, MEASUREMENT})
        self._known: dict[str, Series] = {}

    def find(self, series: str) -> tuple[Series, bool]:
        """Return a series by its text in a line, and whether it is new here."""
        known = self._known.get(series)
        if known is not None:
            return known, False
        if len(self._known) >= MOST_SERIES:
            self._known.clear()
        known = self._known[series] = self._resolved(*series_of(series))
        return known, True

    def _resolved(self, measurement: str, tags: dict[str, str]) -> Series:
        device = [measurement, *(tags[key] for key in sorted(tags) if key not in self._apart)]
        # The words come last: a tag may have the key of one.
        values = tags | {DEVICE: ".".join(device), MEASUREMENT: measurement, FIELD: ""}
        sides = [""]
        for i, part in enumerate(self._parts):
            if i % 2 and part not in values:
                return Series({}, None, "")
            if i % 2 and part == FIELD:
                sides.append("")
            else:
                sides[-1] += values[part] if i % 2 else part
        before, behind = sides
        end = len(before) + len(behind)
        return Series(
            {
                name[len(before) : len(name) - len(behind)]: place
                for place, name in enumerate(self._channels)
                if len(name) > end and name.startswith(before) and name.endswith(behind)
            },
            before,
            behind,
        )


KINDS = ("malformed", "too_long", "unusable", "unknown")

UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

MOST_NAMES = 1000  # unknown names that wait for the log


class MetricDecoder:
    def __init__(
        self, channels: Sequence[str], config: InfluxSensor, rows: TimedRows, tally: ProblemTally
    ) -> None:
        self._names = SeriesNames(channels, template=config.name, ignored=config.ignored_tags)
        self._states, self._unit_ns = config.states, UNITS_NS[config.precision]
        self._rows, self._tally = rows, tally
        self._unlisted: dict[str, None] = {}

    def take(self, number: int, line: bytes | None, now: float) -> None:
        """Read a line; None is one that is too long."""
        if line is None:
            self._tally.add("too_long", "line too long", line=number)
            return
        try:
            parts = cut(line)
        except MalformedLine as error:
            self._tally.add(
                "malformed", "malformed line", level="warning", line=number, error=str(error)
            )
            return
        if parts is None:
            return
        series, is_new = self._names.find(parts.series)
        if is_new:
            self._count_unknown(series, parts.fields)
        if not series.places:
            return
        at = parts.time
        for field, text in fields_of(parts.fields):
            channel = series.places.get(field)
            value = None if channel is None else as_number(value_of(text), self._states)
            if channel is None or value is None:
                continue
            if abs(value) > LARGEST:
                self._tally.add("unusable", "number too large", line=number, field=field)
                continue
            if at is None:
                at = self._rows.arrival(time.time_ns() // self._unit_ns)
            self._rows.put(at, channel, value, now)

    def take_unlisted(self) -> list[str]:
        """Return the names without a channel that were new since the last call."""
        names, self._unlisted = list(self._unlisted), {}
        return names

    def _count_unknown(self, series: Series, fields: str) -> None:
        for field, text in fields_of(fields):
            value = value_of(text)
            if field not in series.places and as_number(value, self._states) is not None:
                self._tally.add("unknown")
                name = series.name_of(field)
                if name is not None and len(self._unlisted) < MOST_NAMES:
                    self._unlisted[name] = None


LAST_BYTES = 1 << 16  # what a pipe holds: so much is read after the sensor is stopped


class InfluxReadings:
    """Rows from metrics of a stream; all bytes go on to an outlet, if any; rows wait `gather_s`."""

    def __init__(
        self,
        channels: Sequence[str],
        config: InfluxSensor,
        *,
        stream: BinaryIO | None = None,
        outlet: MetricOutlet | None = None,
        note: SensorLog = no_log,
        gather_s: float = 0.0,
    ) -> None:
        self._stream = readable(stream, "metrics in line protocol")
        self._outlet, self._note = outlet, note
        self._tally = ProblemTally(note, *KINDS)
        self._rows = TimedRows(len(channels), gather_s)
        self._decoder = MetricDecoder(channels, config, self._rows, self._tally)
        self._lines = LineReader()
        self._unlisted = UnlistedNames(note, time.monotonic())

    @property
    def counts(self) -> dict[str, int]:
        """Lines and readings left out by reason, rows out of order, and the outlet's counts."""
        passed = {} if self._outlet is None else self._outlet.counts
        return {**self._tally.counts, **self._rows.counts, **passed}

    def read(self, hand: Hand, stop: threading.Event) -> None:
        has_ended = False
        while not (has_ended or stop.is_set() or self._is_gone):
            if self._wait():
                has_ended = not self._read_once()
            self._hand(self._rows.take(time.monotonic()), hand)
            if self._unlisted.is_due(time.monotonic()):
                self._unlisted.write(self._decoder.take_unlisted())
        left = 0 if has_ended or self._is_gone else LAST_BYTES
        while left > 0 and self._has_input() and (size := self._read_once(left)):
            left -= size
        for number, line in self._lines.last():
            self._decoder.take(number, line, time.monotonic())
        self._hand(self._rows.take(time.monotonic(), all_of_them=True), hand)
        self._unlisted.write(self._decoder.take_unlisted())
        # The reader may still go on: it has time until a signal.
        while self._outlet is not None and self._outlet.is_waiting and not stop.is_set():
            self._wait()
        if self._outlet is not None and self._outlet.gone:
            raise UsageError(
                f"expected a reader of standard output, got: {self._outlet.gone};"
                " start what reads it again, and then this program"
            )

    @property
    def _is_gone(self) -> bool:
        return self._outlet is not None and bool(self._outlet.gone)

    def _wait(self) -> bool:
        """Wait a little for input, or for the reader; return whether there is input to read."""
        wait_s = self._rows.due_at - time.monotonic()
        wait_ms = max(0.0, min(PATIENCE_MS, 1000.0 * wait_s))
        poll, outlet = select.poll(), self._outlet
        if outlet is None:
            poll.register(self._stream, select.POLLIN)
            return bool(poll.poll(wait_ms))
        poll.register(outlet.waker, select.POLLIN)
        # Of a pipe without a reader, poll says so whatever it is asked.
        poll.register(outlet, select.POLLOUT if outlet.is_waiting else 0)
        if not outlet.is_waiting:
            poll.register(self._stream, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(wait_ms)}
        outlet.waker.hush()
        outlet.write()
        if not outlet.is_waiting:
            outlet.look()
        return self._stream.fileno() in ready and not outlet.is_waiting

    def _has_input(self) -> bool:
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        return bool(poll.poll(0))

    def _read_once(self, most: int = CHUNK) -> int:
        """Read what there is; let it go on, and put its lines into rows. Return the bytes."""
        try:
            chunk = os.read(self._stream.fileno(), min(most, CHUNK))
        except BlockingIOError:
            return 1
        except OSError as error:
            self._note("input broke off", error=str(error))
            chunk = b""
        if chunk and self._outlet is not None:
            self._outlet.pass_on(chunk)
        now = time.monotonic()
        for number, line in self._lines.cut(chunk) if chunk else ():
            self._decoder.take(number, line, now)
        return len(chunk)

    def _hand(self, rows: Sequence[TimedRow], hand: Hand) -> None:
        for begin in range(0, len(rows), BLOCK):
            block = rows[begin : begin + BLOCK]
            if self._outlet is not None:
                self._outlet.times.add([row.time for row in block])
            # They have waited for their lines; scores are to follow soon.
            hand(np.array([row.values for row in block], dtype=np.float64), waited=True)

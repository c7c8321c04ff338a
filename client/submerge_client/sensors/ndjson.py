"""NdjsonReadings: one JSON value a line, from standard input or any pipe.

    [21.5, null, 1013.2]
    {"temp": 21.5, "pressure": 1013.2, "time": "2026-05-04T12:00:00Z"}

1. An array has a number for each channel, in the schema's order. A missing channel is a gap, and so
   are null and NaN; infinity is a reading that is too large.
2. Names that are no channel are ignored; but for "t" and "time" they are counted and logged once.
3. Rows are handed on at once, in blocks of at most 64. After slow rows the pipe is left alone for
   a moment (`ReadPace`); what it then holds has waited (`Hand`). Nothing is read ahead while the
   node is behind: the pipe fills, and its writer waits.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from functools import partial
from itertools import chain, islice
from typing import BinaryIO, cast

import msgspec
import numpy as np

from submerge import Array, UsageError
from submerge_client.sensors.gather import BLOCK, Hand
from submerge_client.sensors.lines import LineReader, ReadPace
from submerge_client.sensors.tally import ProblemTally, SensorLog, no_log

CHUNK = 1 << 15  # bytes read at once: less than what the allocator gives pages of its own
PATIENCE_MS = 250  # how long a silent pipe is polled before `stop` is checked

TIMES = ("t", "time")
MOST_NAMES = 1000  # most unknown names remembered, so that made-up names cannot fill the memory

Values = list[float | None]


class NdjsonReadings:
    """Rows from lines of JSON; if `zero`, rows are sparse: a channel that is not named is zero."""

    def __init__(
        self,
        channels: Sequence[str],
        *,
        stream: BinaryIO | None = None,
        note: SensorLog = no_log,
        zero: bool = False,
        pause_s: float = 0.0,
    ) -> None:
        self._channels, self._absent = tuple(channels), 0.0 if zero else None
        self._stream = readable(stream, "lines of JSON")
        self._note, self._pause_s = note, pause_s
        self._tally = ProblemTally(note, "malformed", "too_long", "empty", "unknown")
        self._wanted = frozenset(channels)
        self._known = {*channels, *TIMES}
        self._decode = msgspec.json.Decoder(Values | dict[str, float | str | None]).decode
        self.counts = self._tally.counts

    def read(self, hand: Hand, stop: threading.Event) -> None:
        lines, pace = LineReader(), ReadPace(self._pause_s)
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        take: Callable[[Array], None] = hand
        while not stop.is_set():
            if not poll.poll(PATIENCE_MS):
                continue
            rows, size = self._read_once(lines, take, stop)
            if not size:
                return
            pause_s = pace.pause_after(rows, size)
            if pause_s and stop.wait(pause_s) and poll.poll(0):
                # What has come in the pause is read before the end.
                self._read_once(lines, hand, threading.Event())
            if pause_s:
                take = partial(hand, waited=True)
            elif size < CHUNK:
                take = hand  # the pipe was empty: what it holds next has just come

    def _read_once(
        self, lines: LineReader, take: Callable[[Array], None], stop: threading.Event
    ) -> tuple[int, int]:
        """Hand over the rows of what can be read; return how many, and the bytes; 0 at the end."""
        try:
            chunk = os.read(self._stream.fileno(), CHUNK)
        except BlockingIOError:
            return 0, 1
        except OSError as error:
            # A terminal that was closed: the input ends here.
            self._note("input broke off", error=str(error))
            chunk = b""
        cut = lines.cut(chunk) if chunk else lines.last()
        rows = chain.from_iterable(self._rows(number, line) for number, line in cut)
        handed = 0
        while not stop.is_set() and (block := list(islice(rows, BLOCK))):
            take(np.array(block, dtype=np.float64))  # NumPy reads None as NaN
            handed += len(block)
        return handed, len(chunk)

    def _rows(self, number: int, line: bytes | None) -> Iterator[Values]:
        if line is None:
            self._tally.add("too_long", "line too long", line=number)
        elif line and not line.isspace():
            try:
                row = self._row(number, line)
            except (ValueError, OverflowError, RecursionError) as error:
                self._tally.add(
                    "malformed", "malformed line", level="warning", line=number, error=str(error)
                )
            else:
                if row is not None:
                    yield row

    def _row(self, number: int, line: bytes) -> Values | None:
        try:
            values = self._decode(line)
        except ValueError:
            # NaN, which JSON does not have, or a nested value under an unknown name.
            values = self._decode_slowly(line)
        if isinstance(values, list):
            if len(values) != len(self._channels):
                raise ValueError(f"expected {len(self._channels)} values, got {len(values)}")
            return values
        if not values.keys() <= self._known:
            self._count_unknown(number, values.keys() - self._known)
        nothing = self._wanted.isdisjoint(values)
        if nothing and (self._absent is None or not values.keys() <= set(TIMES)):
            self._tally.add(
                "empty",
                "object without a channel",
                level="warning",
                line=number,
                names=_some(values),
            )
            return None
        absent = self._absent
        row = [values.get(name, absent) for name in self._channels]
        # Only a time, or an ignored name, may have text.
        if str in set(map(type, row)):
            raise ValueError("expected a number or null, got str")
        return cast("Values", row)

    def _decode_slowly(self, line: bytes) -> Values | dict[str, float | str | None]:
        """Decode a line with NaN, or with any value under other names than channels."""
        values = json.loads(line)
        if isinstance(values, list):
            return [_number(value) for value in values]
        if isinstance(values, dict):
            wanted = self._wanted
            return {name: _number(values[name]) if name in wanted else None for name in values}
        raise ValueError(f"expected an array or an object, got {type(values).__name__}")

    def _count_unknown(self, number: int, names: Set[str]) -> None:
        """Count and log names that are no channels, once each."""
        if len(self._known) - len(self._wanted) < MOST_NAMES:
            self._known |= names
            self.counts["unknown"] += len(names)
            self._note("no channels of the schema, ignored", names=_some(names), line=number)


def _some(names: Collection[str]) -> str:
    return ", ".join(sorted(names)[:10]) + ", …" * (len(names) > 10)


def _number(value: object) -> float | None:
    if value is None:
        return None
    if type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"expected a number or null, got {type(value).__name__}")


def readable(stream: BinaryIO | None, what: str) -> BinaryIO:
    """Return a stream that `poll` can watch, standard input by default; UsageError if it can't."""
    if stream is None:
        stream = getattr(sys.stdin, "buffer", None)
    if stream is None or not _watchable(stream):
        raise UsageError(
            f"expected {what} on standard input, got none that can be read:"
            " pipe them in, or choose another sensor"
        )
    return stream


def _watchable(stream: BinaryIO) -> bool:
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):  # in memory; closed
        return False

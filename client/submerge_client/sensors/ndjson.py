"""JsonLines: one JSON value a line, from standard input or any pipe.

    [21.5, null, 1013.2]
    {"temp": 21.5, "pressure": 1013.2, "time": "2026-05-04T12:00:00Z"}

1. An array has a number for each channel, in the schema's order. An object names its
   channels; what it does not name is a gap, and so are null, NaN and infinity.
2. "t" and "time" are passed over, unless they are channels. Any other name that is no
   channel is counted and noted once, and passed over.
3. A line that is neither costs that line; so does one over 1 MiB, or an object that
   names no channel at all. An empty line is nothing.
4. What has come in is handed on at once, in blocks of at most 64 rows. Nothing is read
   ahead while the node is behind: the pipe fills, and its writer waits.

A reading has no time but that of its arrival.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain, islice
from typing import BinaryIO, cast

import msgspec
import numpy as np

from submerge import Array, UsageError
from submerge_client.sensors.lines import LineReader
from submerge_client.sensors.tally import ProblemTally, SensorLog, unheard

BLOCK = 64
CHUNK = 1 << 16
PATIENCE_MS = 250
"""How long a silent pipe is listened to before `stop` is looked at."""

TIMES = ("t", "time")
MOST_NAMES = 1000
"""Unknown names that are told apart; a sender that makes up names fills no memory."""

Values = list[float | None]


class NdjsonReadings:
    """Rows from lines of JSON.

    Parameters
    ----------
    channels : sequence of str
        The schema's names, in its order.
    stream : BinaryIO, optional
        A pipe, file or terminal; left out, standard input.
    note : Note
        Takes remarks for the log.

    Attributes
    ----------
    counts : dict of str to int
        Lines "malformed", "too_long" or "empty" (an object without a channel); names
        "unknown".

    Raises
    ------
    UsageError
        If there is nothing to read from.
    """

    def __init__(
        self, channels: Sequence[str], *, stream: BinaryIO | None = None, note: SensorLog = unheard
    ) -> None:
        self._channels = tuple(channels)
        self._stream = _readable(stream)
        self._note = note
        self._tally = ProblemTally(note, "malformed", "too_long", "empty", "unknown")
        self._wanted = frozenset(channels)
        self._known = {*channels, *TIMES}
        self._decode = msgspec.json.Decoder(Values | dict[str, float | str | None]).decode
        self.counts = self._tally.counts

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows until the stream ends or `stop` is set."""
        lines = LineReader()
        poll = select.poll()
        poll.register(self._stream, select.POLLIN)
        while not stop.is_set():
            if not poll.poll(PATIENCE_MS):
                continue
            try:
                chunk = os.read(self._stream.fileno(), CHUNK)
            except BlockingIOError:
                continue
            except OSError as error:
                # A terminal that went away: there is no more, as at any other end.
                self._note("input broke off", error=str(error))
                chunk = b""
            cut = lines.cut(chunk) if chunk else lines.last()
            rows = chain.from_iterable(self._rows(number, line) for number, line in cut)
            while not stop.is_set() and (block := list(islice(rows, BLOCK))):
                # NumPy reads None as NaN.
                values = np.array(block, dtype=np.float64)
                values[np.isinf(values)] = np.nan
                hand(values)
            if not chunk:
                return

    def _rows(self, number: int, line: bytes | None) -> Iterator[Values]:
        """Yield the row that a line says, if it says one."""
        if line is None:
            self._tally.add("too_long", "line too long", line=number)
        elif line and not line.isspace():
            try:
                row = self._row(number, line)
            except (ValueError, OverflowError, RecursionError) as error:
                self._tally.add("malformed", "malformed line", line=number, error=str(error))
            else:
                if row is not None:
                    yield row

    def _row(self, number: int, line: bytes) -> Values | None:
        try:
            said = self._decode(line)
        except ValueError:
            # NaN, which JSON does not have, or something nested under another name.
            said = self._with_care(line)
        if isinstance(said, list):
            if len(said) != len(self._channels):
                raise ValueError(f"expected {len(self._channels)} values, got {len(said)}")
            return said
        if not said.keys() <= self._known:
            self._meet(number, said.keys() - self._known)
        if self._wanted.isdisjoint(said):
            self._tally.add("empty", "object without a channel", line=number)
            return None
        row = [said.get(name) for name in self._channels]
        # Only a time, or what is passed over, may be text.
        if str in set(map(type, row)):
            raise ValueError("expected a number or null, got str")
        return cast("Values", row)

    def _with_care(self, line: bytes) -> Values | dict[str, float | str | None]:
        """Read what is not only numbers and null: NaN, and anything under other names."""
        said = json.loads(line)
        if isinstance(said, list):
            return [_number(value) for value in said]
        if isinstance(said, dict):
            wanted = self._wanted
            return {name: _number(said[name]) if name in wanted else None for name in said}
        raise ValueError(f"expected an array or an object, got {type(said).__name__}")

    def _meet(self, number: int, names: Set[str]) -> None:
        """Count names that are no channels, and note them, once each."""
        if len(self._known) - len(self._wanted) < MOST_NAMES:
            self._known |= names
            self.counts["unknown"] += len(names)
            some = ", ".join(sorted(names)[:10]) + ", …" * (len(names) > 10)
            self._note("no channels of the schema, passed over", names=some, line=number)


def _number(value: object) -> float | None:
    if value is None:
        return None
    if type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"expected a number or null, got {type(value).__name__}")


def _readable(stream: BinaryIO | None) -> BinaryIO:
    """Return a stream that the system can watch, standard input by default, or refuse it."""
    if stream is None:
        stream = getattr(sys.stdin, "buffer", None)
    if stream is None or not _watchable(stream):
        raise UsageError(
            "expected lines of JSON on standard input, got none that can be read:"
            " pipe them in, or choose another sensor"
        )
    return stream


def _watchable(stream: BinaryIO) -> bool:
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):  # in memory; closed
        return False

"""FileReading: one file's rows with the columns that were chosen, as spans of rows and times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge import Array
from submerge.condition import InState
from submerge_client.datasets.source import refusal
from submerge_files.reader.clock_column import ClockColumn
from submerge_files.reader.formats.tables import TableFile, words

Indices = npt.NDArray[np.intp]
Names = npt.NDArray[np.object_]


class Span(NamedTuple):
    """Rows (n, channels) of a file that follow one another."""

    rows: Array
    times: Array | None  # (n,), since 1970
    machines: Names | None  # None for one
    keys: Names | None  # of channels, in a long table
    numbers: Indices  # in the file, from 1
    texts: Names | None = None  # (n, columns)

    def only(self, chosen: Indices | slice) -> Span:
        """Return some of the rows, by their indices."""
        parts: Iterator[Any] = (None if part is None else part[chosen] for part in self)
        return Span(*parts)


def joined(spans: Sequence[Span]) -> Span:
    """Return the rows of all spans as one."""
    columns: Iterator[Any] = zip(*spans, strict=True)
    parts: Iterator[Any] = (None if part[0] is None else np.concatenate(part) for part in columns)
    return Span(*parts)


@dataclass(frozen=True)
class FileReading:
    """How one file is read: places of columns that name machines or, in a long table, channels."""

    file: TableFile
    channels: tuple[int, ...]
    clock: ClockColumn | None = None
    machine: int | None = None
    key: int | None = None
    missing: tuple[float, ...] = ()  # numbers that are gaps
    states: tuple[tuple[int, InState], ...] = ()  # only rows in these
    carried: tuple[int, ...] = ()  # columns that come along as text
    begin: int = 0  # from 0, up to before `end`
    end: int | None = None

    def spans(self) -> Iterator[Span]:
        """Read the rows from the start."""
        clock, n = self.clock, self.begin
        numbers, texts = list(self.channels), list[int]()
        if clock is not None:
            (numbers if clock.form.numeric else texts).extend(clock.places)
        texts += [place for place in (self.machine, self.key) if place is not None]
        texts += [*(place for place, _ in self.states), *self.carried]
        for raw in self.file.blocks(numbers, texts, self.begin):
            if self.end is not None and n + len(raw.numbers) > self.end:
                raw = raw.first(self.end - n)
            fields = list(raw.texts)
            carried = [_names(fields.pop()) for _ in self.carried]
            holds = [each.holds(words(fields.pop())) for _, each in reversed(self.states)]
            keys = _names(fields.pop()) if self.key is not None else None
            machines = _names(fields.pop()) if self.machine is not None else None
            times = None
            if clock is not None:
                at = raw.numbers[:, -1] if clock.form.numeric else None
                times = clock.seconds(self.file, raw, n + 1, at)
            rows = self.readings(raw.numbers[:, : len(self.channels)], n + 1)
            numbered = np.arange(n + 1, n + 1 + len(rows))
            beside = np.stack(carried[::-1], axis=1) if carried else None
            span = Span(rows, times, machines, keys, numbered, beside)
            yield span.only(np.flatnonzero(np.logical_and.reduce(holds))) if holds else span
            n += len(rows)
            if n == self.end:
                return

    def without_rows(self) -> FileReading:
        """Return the reading of times and machines alone."""
        return replace(self, channels=())

    def digest(self) -> bytes:
        """Return a hash of the parsed rows: the same for any format, packed or not."""
        # A hash for each part: where a block ends depends on the format.
        parts = [hashlib.sha256() for _ in range(4)]
        for span in self.spans():
            parts[0].update(np.ascontiguousarray(span.rows).tobytes())
            parts[1].update(b"" if span.times is None else span.times.tobytes())
            for part, names in zip(parts[2:], (span.machines, span.keys), strict=True):
                part.update(
                    "".join(f"{name}\0" for name in (() if names is None else names)).encode()
                )
        return b"".join(part.digest() for part in parts)

    def readings(self, values: Array, first: int) -> Array:
        """Return values as readings: one NaN, no negative zero, no infinity."""
        rows = values + 0.0
        for mark in self.missing:
            rows[rows == mark] = np.nan
        if np.isfinite(rows).all():
            return rows
        infinite = np.argwhere(np.isinf(rows))
        if len(infinite):
            row, channel = map(int, infinite[0])
            name = self.file.columns[self.channels[channel]].name
            raise refusal(
                f"{self.file.path}, {self.file.at(first + row)}, column {name}",
                expected="a finite number",
                got=str(rows[row, channel]),
                hint="infinity is no reading: leave a gap for a missing value",
            )
        rows[np.isnan(rows)] = np.nan
        return rows


def _names(texts: Any) -> Names:
    return np.array(words(texts), dtype=object)

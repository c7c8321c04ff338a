"""Recordings: the rows of files, machine by machine and in the order of time.

1. Files without times are independent pieces in the order of a hash of their rows: the order of
   arguments does not matter. Two files of the same rows are read once; a note says so.
2. Rows that go back in time are refused, or sorted on request (`time_order`).
3. Memory does not grow with the number of rows, but for `sort`, `.npy` and logs. With a column of
   machines, files are read once to find them, and once for all that can be held at a time.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from submerge import Array, Channel, UsageError
from submerge.condition import Condition
from submerge.headings import called, channels_of
from submerge.history.recording import Recorded
from submerge.judge.decision import Mask
from submerge_files.reader.column_ranges import ColumnRanges
from submerge_files.reader.file_rows import FileReading, Span
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.tables import TableFile, names_of
from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.parts import MachinePart, parts_of
from submerge_files.reader.paths import files_of
from submerge_files.reader.plan import planned, widened
from submerge_files.reader.time_order import TimeOrder, sorted_spans
from submerge_files.workers import HERE, Workers

# glibc gives freed memory back to the system where more of it is free than twice the largest
# block that was freed so far. Blocks of rows come and go: each of them would be made of fresh
# pages, which takes as long as unpacking it.

BYTES = 1 << 23
"""The block that is freed: some blocks of rows (`tables.block_rows`) of a hundred columns."""

CURES = ("--na '{}' makes gaps of it", "leave these rows out (--when of fit, detect and score)")
"""What notes on values name."""

Item = TypeVar("Item")


def ahead(items: Generator[Item, None, None]) -> Iterator[Item]:
    """Yield the same items, read ahead."""
    end: Any = object()
    # The thread ends before the reader is closed: what runs cannot be.
    with closing(items), ThreadPoolExecutor(1, "ahead") as pool:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield item


class Recordings:
    """Files that were opened to be read together, by `parts` in their order."""

    def __init__(
        self,
        headings: tuple[str, ...],
        parts: Sequence[MachinePart],
        notes: tuple[str, ...],
        options: ReadingOptions,
    ) -> None:
        self.headings, self.channels = headings, channels_of(headings)
        self.timed = parts[0].first is not None
        self.files = tuple(dict.fromkeys(part.reading.file.path for part in parts))
        self.columns = names_of(parts[0].reading.file)
        self.parts, self.options = tuple(parts), options
        self._notes = notes
        self._found: tuple[str, ...] = ()
        self._ranged: tuple[str, ...] | None = None
        self._counted: Callable[[Array], Mask] | None = None
        self._read, self._order = headings, list(range(len(headings)))

    def ordered(self, channels: Sequence[Channel], whose: object = "the model") -> Recordings:
        """Return the same rows with the columns of channels, in the order of these."""
        other, names = copy(self), called(channels, self._read)
        lacking = [channel.name for channel in channels if channel.name not in names]
        if lacking:
            near = difflib.get_close_matches(lacking[0], names, n=1)
            hint = f"is it {near[0]}?" if near else "leave --columns and --skip out"
            raise UsageError(f"expected the channels of {whose}, got none for {lacking[0]}: {hint}")
        other._order = [names.index(channel.name) for channel in channels]
        other.headings = tuple(self._read[place] for place in other._order)
        other.channels = tuple(channels)
        return other

    def of(self, parts: Sequence[MachinePart]) -> Recordings:
        """Return some of the rows, which another process may read; they have no notes on values."""
        other = copy(self)
        other.parts, other._ranged, other._counted = tuple(parts), (), None
        return other

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.machine for part in self.parts))

    def say(self, note: str) -> None:
        self._notes = (*self._notes, note)

    def note_only(self, counted: Callable[[Array], Mask]) -> None:
        """Have notes on values tell of some rows alone."""
        self._counted = counted

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(channel.name for channel in self.channels)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: what was left out or guessed; after a whole `rows()`, what it found too."""
        return (*self._notes, *self._found, *(self._ranged or ()))

    def rows(self) -> Iterator[Recorded]:
        """Read all rows from the start, in blocks; the next is read while one is in use."""
        # Its pages are never touched, and so never made.
        np.empty(BYTES, dtype=np.uint8)
        return ahead(self._rows())

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Read the times of all rows, and of their channels those of a condition."""
        # Rows are (n, 0), or of all channels with NaN for those that the condition does not name.
        if self.options.sort or self.options.long:
            # Which rows there are shows when all of them are there.
            yield from self._rows()
            return
        reader = RowsByMachine(self.parts, partial(self._only, when))
        for machine, parts in self._by_machine():
            for span, file in ((s, p.reading.file) for p in parts for s in reader.spans(p)):
                rows = np.empty((len(span.numbers), 0))
                if when is not None:
                    rows = np.full((len(span.numbers), len(self.headings)), np.nan)
                    rows[:, self._asked(when)] = span.rows
                if len(rows):
                    yield Recorded(machine, rows, span.times, str(file.path), int(span.numbers[0]))

    def _asked(self, when: Condition | None) -> list[int]:
        relations = () if when is None else when.comparisons
        return sorted({relation.column for relation in relations})

    def _only(self, when: Condition | None, reading: FileReading) -> FileReading:
        places = [reading.channels[self._order[i]] for i in self._asked(when)]
        return replace(reading, channels=tuple(places))

    def _rows(self) -> Generator[Recorded, None, None]:
        ranges = None if self._ranged is not None else ColumnRanges(self.names, *CURES)
        said, order, reader = list[str](), TimeOrder(), RowsByMachine(self.parts)
        for machine, parts in self._by_machine():
            for span, file in self._in_order(machine, parts, reader, said.append):
                rows = span.rows if self.headings == self._read else span.rows[:, self._order]
                if ranges is not None:
                    ranges.add(rows if self._counted is None else rows[self._counted(rows)])
                first, numbers = int(span.numbers[0]), span.numbers
                apart = None if (np.diff(numbers) == 1).all() else numbers
                path = str(file.path)
                recorded = Recorded(machine, rows, span.times, path, first, apart, span.texts)
                if self.timed:
                    order.check(recorded, file.at)
                yield recorded
        if ranges is not None:
            self._ranged = tuple(ranges.notes())
        self._found = tuple(said)

    def _by_machine(self) -> Iterator[tuple[str, list[MachinePart]]]:
        parts: dict[str, list[MachinePart]] = {}
        for part in self.parts:
            parts.setdefault(part.machine, []).append(part)
        return iter(parts.items())

    def _in_order(
        self,
        machine: str,
        parts: Sequence[MachinePart],
        reader: RowsByMachine,
        note: Callable[[str], None],
    ) -> Iterator[tuple[Span, TableFile]]:
        spans: Iterator[tuple[Span, TableFile]]
        spans = ((span, part.reading.file) for part in parts for span in reader.spans(part))
        if self.options.sort and self.timed:
            spans = sorted_spans(spans, machine, note)
        if self.options.long:
            # After sorting: values of one time may be far apart.
            spans = widened(spans, self._read)
        return ((span, file) for span, file in spans if len(span.rows))


def open_recordings(
    paths: Sequence[Path], options: ReadingOptions, workers: Workers | None = None
) -> Recordings:
    """Open files, folders and globs to read their rows together."""
    found = files_of(paths)
    plan = planned(
        [open_file(path, options.missing, options.quantity) for path in found.files], options
    )
    parts, notes = parts_of(plan.readings, options, workers or HERE)
    return Recordings(plan.names, parts, (*found.notes, *plan.notes, *notes), options)


MOST_HELD = 1 << 22  # numbers of rows that are held, so that a file is read once for many machines


class RowsByMachine:
    """Reads parts in their order; of a file that names machines, one pass holds the next ones."""

    def __init__(
        self,
        parts: Sequence[MachinePart],
        changed: Callable[[FileReading], FileReading] = lambda each: each,
    ) -> None:
        self._changed = changed
        self._next: dict[int, list[MachinePart]] = {}
        for part in parts:
            if not part.whole:
                self._next.setdefault(id(part.reading), []).append(part)
        self._held: dict[int, dict[str, list[Span]]] = {}

    def spans(self, part: MachinePart) -> Iterator[Span]:
        """Read the rows of a part; each is read once, in the order of all."""
        key, reading = id(part.reading), self._changed(part.reading)
        held = self._held.get(key, {})
        if part.whole:
            yield from reading.spans()
        elif part.machine in held:
            yield from held.pop(part.machine)
        else:
            some = self._some(key, len(reading.channels) + 2)
            if len(some) < 2:
                for span in reading.spans():
                    yield from by_machine(span, {part.machine}).values()
                return
            self._held[key] = held = {name: [] for name in some}
            for span in reading.spans():
                for name, rows in by_machine(span, held).items():
                    held[name].append(rows)
            yield from held.pop(part.machine)

    def _some(self, key: int, width: int) -> list[str]:
        """Take the machines that are next, as many as can be held."""
        waiting, most, some = self._next[key], MOST_HELD // len(self._next), list[str]()
        while waiting and (not some or waiting[0].rows * width <= most):
            most -= waiting[0].rows * width
            some.append(waiting.pop(0).machine)
        return some


def by_machine(span: Span, wanted: Collection[str]) -> dict[str, Span]:
    """Return the rows of some of a span's machines, in their order."""
    if span.machines is None:
        return dict.fromkeys(wanted, span)
    names, which = np.unique(span.machines, return_inverse=True)
    order, ends = np.argsort(which, kind="stable"), np.bincount(which).cumsum()
    parts = np.split(order, ends[:-1])
    return {
        name: span.only(rows)
        for name, rows in zip(names.tolist(), parts, strict=True)
        if name in wanted
    }

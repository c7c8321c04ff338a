"""Recordings: the rows of files, machine by machine and in the order of time.

1. A machine's files are in the order of their first times. Files without times are independent
   pieces in the order of a hash of their rows: the order of arguments does not matter.
2. Two files of the same rows are read once, whatever their names and formats; a note says so.
3. Rows that go back in time are refused, or sorted on request (`time_order`).
4. Memory does not grow with the number of rows, but for `sort`, `.npy` and logs.
5. With a column of machines, files are read once to find them and once for each.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from submerge import Array, Channel
from submerge.condition import Condition
from submerge.headings import called, channels_of
from submerge.history.recording import Recorded
from submerge.judge.decision import Mask
from submerge_files.reader.column_ranges import ColumnRanges
from submerge_files.reader.file_rows import FileReading, Span
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.tables import TableFile, names_of
from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.parts import Digests, MachinePart, digests_here, parts_of
from submerge_files.reader.paths import files_of
from submerge_files.reader.plan import planned, widened
from submerge_files.reader.time_order import TimeOrder, sorted_spans

# glibc gives freed memory back to the system where more of it is free than twice the largest
# block that was freed so far. Blocks of rows come and go: each of them would be made of fresh
# pages, which takes as long as unpacking it.


BYTES = 1 << 23
"""The block that is freed: some blocks of rows (`tables.block_rows`) of a hundred columns."""


def keep_freed_memory() -> None:
    """Free a block: from now on, memory of that size waits for the next."""
    # Its pages are never touched, and so never made.
    np.empty(BYTES, dtype=np.uint8)


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
    """Files that were opened to be read together.

    parts : Which rows of which file are which machine's, in the order in which they are read.
    options : What was asked for.
    """

    def __init__(
        self,
        headings: tuple[str, ...],
        parts: Sequence[MachinePart],
        notes: tuple[str, ...],
        options: ReadingOptions,
    ) -> None:
        self.headings, self.channels = headings, channels_of(headings)
        self.timed = parts[0].first is not None
        self.machines = tuple(dict.fromkeys(part.machine for part in parts))
        self.files = tuple(dict.fromkeys(part.reading.file.path for part in parts))
        self.columns = names_of(parts[0].reading.file)
        self.parts, self.options = tuple(parts), options
        self._notes = notes
        self._found: tuple[str, ...] = ()
        self._ranged: tuple[str, ...] | None = None
        self._counted: Callable[[Array], Mask] | None = None
        self._read, self._order = headings, list(range(len(headings)))

    def ordered(self, channels: Sequence[Channel]) -> Recordings:
        """Return the same rows with the columns of channels, in the order of these."""
        other, names = copy(self), called(channels, self._read)
        other._order = [names.index(channel.name) for channel in channels]
        other.headings = tuple(self._read[place] for place in other._order)
        other.channels = tuple(channels)
        return other

    @property
    def order(self) -> tuple[int, ...]:
        """The places of the channels among those that the parts read."""
        return tuple(self._order)

    def say(self, note: str) -> None:
        """Add a sentence to the notes."""
        self._notes = (*self._notes, note)

    def note_only(self, counted: Callable[[Array], Mask]) -> None:
        """Have notes on values tell of some rows alone."""
        self._counted = counted

    @property
    def names(self) -> tuple[str, ...]:
        """The channels' names."""
        return tuple(channel.name for channel in self.channels)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: what was left out or guessed; after a whole `rows()`, what it found too."""
        return (*self._notes, *self._found, *(self._ranged or ()))

    def rows(self) -> Iterator[Recorded]:
        """Read all rows from the start, in blocks; the next is read while one is in use."""
        keep_freed_memory()
        return ahead(self._rows())

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Read the times of all rows, and of their channels those of a condition."""
        # Rows are (n, 0), or of all channels with NaN for those that the condition does not name.
        if self.options.sort or self.options.long:
            # Which rows there are shows when all of them are there.
            yield from self._rows()
            return
        for machine in self.machines:
            parts = [part for part in self.parts if part.machine == machine]
            for span, file in spans_of(parts, partial(self._only, when)):
                rows = np.empty((len(span.numbers), 0))
                if when is not None:
                    rows = np.full((len(span.numbers), len(self.headings)), np.nan)
                    rows[:, self._asked(when)] = span.rows
                if len(rows):
                    yield Recorded(machine, rows, span.times, str(file.path), int(span.numbers[0]))

    def _asked(self, when: Condition | None) -> list[int]:
        """Return the places of a condition's channels."""
        relations = () if when is None else when.comparisons
        return sorted({relation.column for relation in relations})

    def _only(self, when: Condition | None, reading: FileReading) -> FileReading:
        """Return the reading of a condition's channels alone."""
        places = [reading.channels[self._order[i]] for i in self._asked(when)]
        return replace(reading, channels=tuple(places))

    def _rows(self) -> Generator[Recorded, None, None]:
        ranges = None if self._ranged is not None else ColumnRanges(self.names, *CURES)
        said = list[str]()
        for machine in self.machines:
            parts = [part for part in self.parts if part.machine == machine]
            for span, file in self._in_order(machine, parts, said.append):
                rows = span.rows if self.headings == self._read else span.rows[:, self._order]
                if ranges is not None:
                    ranges.add(rows if self._counted is None else rows[self._counted(rows)])
                first, numbers = int(span.numbers[0]), span.numbers
                apart = None if (np.diff(numbers) == 1).all() else numbers
                yield Recorded(machine, rows, span.times, str(file.path), first, apart)
        if ranges is not None:
            self._ranged = tuple(ranges.notes())
        self._found = tuple(said)

    def _in_order(
        self, machine: str, parts: Sequence[MachinePart], note: Callable[[str], None]
    ) -> Iterator[tuple[Span, TableFile]]:
        spans = spans_of(parts)
        if self.options.sort and self.timed:
            spans = sorted_spans(spans, machine, note)
        if self.options.long:
            # After sorting: values of one time may be far apart.
            spans = widened(spans, self._read)
        order = TimeOrder()
        for span, file in spans:
            if len(span.rows) == 0:
                continue
            if self.timed:
                order.check(span, file)
            yield span, file


def open_recordings(
    paths: Sequence[Path], options: ReadingOptions, digests: Digests = digests_here
) -> Recordings:
    """Open files, folders and globs to read their rows together."""
    found = files_of(paths)
    plan = planned([open_file(path, options.missing) for path in found.files], options)
    parts, notes = parts_of(plan.readings, options, digests)
    return Recordings(plan.names, parts, (*found.notes, *plan.notes, *notes), options)


def spans_of(
    parts: Sequence[MachinePart], changed: Callable[[FileReading], FileReading] = lambda each: each
) -> Iterator[tuple[Span, TableFile]]:
    """Yield the rows of parts of one machine, in their order."""
    for part in parts:
        for span in changed(part.reading).spans():
            if span.machines is None or part.whole:
                yield span, part.reading.file
            elif len(chosen := np.flatnonzero(span.machines == part.machine)):
                yield span.only(chosen), part.reading.file

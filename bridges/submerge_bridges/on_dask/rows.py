"""Where the rows of a history are, for tasks to read: stretches of files, or partitions of a Dask
collection. The driver's plan names columns by places, so that all workers read alike.

A stretch begins at a whole number of chunks (`history.chunk_keys`), so that keys are the same.
Parquet is read from its row group; other files, and those with a column of machines, are one
stretch each. Dask is not imported: a collection is known by what it can do.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from submerge import UsageError
from submerge.condition import Condition
from submerge.history.chunk_keys import ROWS
from submerge.history.recording import Recorded
from submerge_files.python.frame_rows import FrameRows
from submerge_files.python.frames import frame_of
from submerge_files.reader import ReadingOptions, Recordings
from submerge_files.reader.clock_column import clock_of
from submerge_files.reader.file_rows import FileReading, Span
from submerge_files.reader.formats.arrow_file import ArrowFile
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.remote_path import path_of
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.reader.time_order import TimeOrder

MOST_ROWS = 16 * ROWS
"""Rows of a stretch, where a file can be read from its middle."""


class Stretch(NamedTuple):
    """Rows of one machine in one file that follow one another.

    column : place of the column that names machines, if there is one
    order : whether days come first in slashed dates, where the files say it together
    whole : whether all rows of the file are this machine's
    begin, end : rows of the file, from 0; `end` is -1 for its end
    """

    machine: str
    path: str
    channels: tuple[int, ...]
    column: int | None
    timed: bool
    order: bool | None
    whole: bool
    begin: int = 0
    end: int = -1

    @classmethod
    def of(cls, machine: str, reading: FileReading, *, whole: bool) -> Stretch:
        """Return a file's rows of a machine in one go."""
        clock, path = reading.clock, str(reading.file.path)
        order = None if clock is None else clock.order
        return cls(
            machine, path, reading.channels, reading.machine, clock is not None, order, whole
        )


class Partition(NamedTuple):
    """A partition of a Dask collection, by its number; tasks have it as an argument."""

    machine: str
    number: int

    @property
    def place(self) -> str:
        """How people find it."""
        return f"the frame, part {self.number}"


AnyStretch = Stretch | Partition


@dataclass(frozen=True)
class RowReader:
    """How all stretches are read: places of channels, and partitions by number."""

    names: tuple[str, ...]
    order: tuple[int, ...]
    options: ReadingOptions
    frames: Mapping[int, Any] = field(default_factory=dict)
    _opened: dict[str, FileReading] = field(default_factory=dict, init=False)

    def on(self, frames: Mapping[int, Any]) -> RowReader:
        """Return what a task reads by: threads share no open file."""
        return replace(self, frames=frames)

    def rows(self, stretch: AnyStretch, order: TimeOrder) -> Iterator[Recorded]:
        """Read the rows of a stretch; `order` refuses times that go back."""
        if isinstance(stretch, Partition):
            yield from self._frame(stretch)
            return
        moved, reading = self.order != tuple(range(len(self.order))), self.file(stretch)
        for span in _spans(stretch, reading):
            if span.times is not None:
                order.check(span, reading.file)
            rows = span.rows[:, list(self.order)] if moved else span.rows
            first, numbers = int(span.numbers[0]), span.numbers
            apart = None if (np.diff(numbers) == 1).all() else numbers
            yield Recorded(stretch.machine, rows, span.times, stretch.path, first, apart)

    def looks(self, stretch: AnyStretch, when: Condition | None) -> Iterator[Recorded]:
        """Read the times of a stretch, and the channels of a condition; as `Recordings.looks`."""
        if isinstance(stretch, Partition):
            yield from self._frame(stretch)
            return
        asked = sorted({each.column for each in when.comparisons}) if when is not None else []
        reading = self.file(stretch)
        reading = replace(reading, channels=tuple(reading.channels[self.order[i]] for i in asked))
        for span in _spans(stretch, reading):
            rows = np.empty((len(span.numbers), 0))
            if when is not None:
                rows = np.full((len(span.numbers), len(self.names)), np.nan)
                rows[:, asked] = span.rows
            yield Recorded(stretch.machine, rows, span.times, stretch.path, int(span.numbers[0]))

    def file(self, stretch: Stretch) -> FileReading:
        """Open the file of a stretch, to be read as the plan says; the newest one stays open."""
        path = stretch.path
        if path not in self._opened:
            file, clock = open_file(path_of(path)), None
            if stretch.timed:
                clock = clock_of(file, self.options).clock
                if clock is not None and stretch.order is not None:
                    clock = clock.in_order(stretch.order)
            channels, zero = stretch.channels, self.options.zero_is_missing
            self._opened.clear()
            self._opened[path] = FileReading(
                file, channels, clock, stretch.column, zero_is_missing=zero
            )
        return self._opened[path]

    def _frame(self, stretch: Partition) -> Iterator[Recorded]:
        table = table_of(self.frames[stretch.number])
        yield from frame_rows(table, self.names, self.options, stretch)


def _spans(stretch: Stretch, reading: FileReading) -> Iterator[Span]:
    """Yield the rows of a stretch."""
    at, end = stretch.begin, stretch.end
    for span in reading.spans(at):
        n = len(span.numbers)
        if 0 <= end < at + n:
            span = span.only(slice(0, end - at))
        at += n
        if span.machines is not None and not stretch.whole:
            span = span.only(np.flatnonzero(span.machines == stretch.machine))
        if len(span.numbers):
            yield span
        if 0 <= end <= at:
            return


@dataclass(frozen=True)
class ClusterRows:
    """Rows that workers read: stretches machine by machine, in order; and partitions by number."""

    reader: RowReader
    stretches: Sequence[AnyStretch]
    partitions: Sequence[Any] = ()

    @classmethod
    def of_files(cls, recordings: object, *, cut: bool = True) -> ClusterRows:
        """Return the rows of files that were opened here; not `cut`, each file is one stretch."""
        # Rows that have to be sorted, or put together, are refused: that needs all of them in one
        # place.
        if not isinstance(recordings, Recordings):
            raise UsageError(f"expected files for workers to read, got {type(recordings).__name__}")
        options = recordings.options
        for wanted, name in ((options.sort, "--sort"), (options.long, "--long")):
            if wanted:
                raise UsageError(
                    f"expected rows in the order of time, one for each time, got {name}: workers"
                    " read files apart; write them so before, or leave --dask out"
                )
        stretches = list[AnyStretch]()
        for machine in recordings.machines:
            for part in recordings.parts:
                if part.machine == machine:
                    one = Stretch.of(machine, part.reading, whole=part.whole)
                    stretches += _cut(one, part.reading) if cut else [one]
        return cls(RowReader(recordings.names, recordings.order, options), stretches)

    @classmethod
    def of_collection(cls, found: Collection) -> ClusterRows:
        """Return the rows of a Dask collection, whose partitions workers compute."""
        machine, order = found.head.machine, tuple(range(len(found.names)))
        stretches = [Partition(machine, number) for number in range(len(found.partitions))]
        return cls(RowReader(found.names, order, found.options), stretches, found.partitions)


def _cut(stretch: Stretch, reading: FileReading) -> Iterator[Stretch]:
    """Yield a stretch in pieces, where its file can be read from the middle."""
    file = reading.file
    rows = file.rows if isinstance(file, ArrowFile) and reading.machine is None else 0
    if rows <= MOST_ROWS:
        yield stretch
        return
    for at in range(0, rows, MOST_ROWS):
        yield stretch._replace(begin=at, end=min(at + MOST_ROWS, rows))


class Collection(NamedTuple):
    """A Dask collection of rows of one machine, in the order of time, and its columns."""

    partitions: list[Any]
    head: FrameRows
    options: ReadingOptions

    @property
    def names(self) -> tuple[str, ...]:
        """Of the channels."""
        return self.head.names


def is_collection(rows: Any) -> bool:
    """Return whether rows are a Dask collection."""
    return hasattr(rows, "__dask_graph__") and hasattr(rows, "to_delayed")


def collection_of(
    rows: Any,
    columns: Sequence[str] | None,
    time: str | None,
    names: Sequence[str] | None,
    machine: str = ONLY_MACHINE,
) -> Collection:
    """Return a Dask collection as partitions; options as in `submerge.dask.fit`."""
    if hasattr(rows, "_meta") and hasattr(rows, "columns"):
        partitions, table = list(rows.to_delayed()), rows._meta
    elif hasattr(rows, "chunks"):
        if rows.ndim != 2:
            raise UsageError(f"expected an array (n, channels), got {rows.ndim} dimensions")
        partitions = list(rows.rechunk({1: -1}).to_delayed().ravel())
        table = np.zeros((0, rows.shape[1]))
        names = list(names or (f"x{i}" for i in range(rows.shape[1])))
    elif hasattr(rows, "take"):
        partitions = list(rows.to_delayed())
        table = table_of(list(rows.take(1, npartitions=-1, warn=False)))
    else:
        raise UsageError(
            f"expected a frame, an array or a bag of Dask, got {type(rows).__name__}: name files"
            " by their paths"
        )
    head = FrameRows(frame_of(table, names), columns, time, machine)
    return Collection(partitions, head, ReadingOptions(tuple(head.headings), time=time or ""))


def frame_rows(
    table: Any, names: Sequence[str], options: ReadingOptions, partition: Partition
) -> Iterator[Recorded]:
    """Yield the rows of a partition that was computed, and made a table."""
    if not len(table):
        return
    frame = frame_of(table, list(names) if isinstance(table, np.ndarray) else None)
    read = FrameRows(frame, options.columns or None, options.time or None, partition.machine)
    for recorded in read.rows():
        yield replace(recorded, file=partition.place)


def table_of(partition: Any) -> Any:
    """Return a partition as a frame or an array; one of a bag is a list of mappings."""
    if not isinstance(partition, list | tuple):
        return partition
    try:
        pandas: Any = importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise UsageError(
            "a bag of mappings needs pandas, which is not installed: pip install pandas"
        ) from error
    return pandas.DataFrame.from_records(list(partition))

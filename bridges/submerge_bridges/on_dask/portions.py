"""Portions: which rows a task reads, and how a worker reads them. A portion is some stretches of
one machine, in order. A worker opens a file by itself, and reads it as the driver's plan says: the
plan names columns by their places, so that all workers read alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from submerge.condition import Condition
from submerge.history.layout import Cell
from submerge.history.recording import Recorded
from submerge_bridges.on_dask.stretch import Stretch, spans_in
from submerge_bridges.on_dask.tables import table_of
from submerge_files.python.frame_rows import FrameRows
from submerge_files.python.frames import frame_of
from submerge_files.reader.clock_column import clock_of
from submerge_files.reader.file_rows import FileReading
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.remote_path import path_of
from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.parts import MachinePart
from submerge_files.reader.time_order import TimeOrder


class FileStretch(NamedTuple):
    """A stretch of a file, in plain values: a worker opens the file by itself."""

    path: str
    channels: tuple[int, ...]
    machine: int | None
    timed: bool
    order: bool | None
    whole: bool
    begin: int
    end: int

    @classmethod
    def of(cls, stretch: Stretch) -> FileStretch:
        """Return a stretch of a file that was opened here."""
        part, begin, end = stretch
        read, clock = part.reading, part.reading.clock
        order = None if clock is None else clock.order
        of_file = str(read.file.path), read.channels, read.machine
        return cls(*of_file, clock is not None, order, part.whole, begin, end)


class Partition(NamedTuple):
    """A partition of a Dask collection, which the task has as an argument."""

    number: int
    place: str


AnyStretch = FileStretch | Partition


class Portion(NamedTuple):
    """Stretches of one machine.

    own : So many are this portion's; those after them are read on into, to the end of a cell.
    before : Cell of the row before the first, whose rows are another portion's.
    begin : Of a span that is judged, the first row that counts, by its number in the machine.
    skip : Rows before the span's lead.
    """

    machine: str
    stretches: Sequence[AnyStretch]
    own: int
    before: Cell | None = None
    begin: int = 0
    skip: int = 0


@dataclass(frozen=True)
class PortionReading:
    """How all stretches are read; `order`: their places among the columns that are read."""

    names: tuple[str, ...]
    order: tuple[int, ...]
    options: ReadingOptions
    frames: Sequence[Any] = ()
    _opened: dict[str, FileReading] = field(default_factory=dict, init=False)

    def on(self, frames: Sequence[Any]) -> PortionReading:
        """Return what a task reads by: threads share no open file."""
        return replace(self, frames=frames)

    def rows(self, machine: str, stretch: AnyStretch, order: TimeOrder) -> Iterator[Recorded]:
        """Read the rows of a stretch; `order` refuses times that go back."""
        if isinstance(stretch, Partition):
            yield from self._frame(machine, stretch)
            return
        moved = self.order != tuple(range(len(self.order)))
        for span, file in spans_in(self._stretch(machine, stretch)):
            if span.times is not None:
                order.check(span, file)
            rows = span.rows[:, list(self.order)] if moved else span.rows
            first, numbers = int(span.numbers[0]), span.numbers
            apart = None if (np.diff(numbers) == 1).all() else numbers
            yield Recorded(machine, rows, span.times, str(file.path), first, apart)

    def looks(
        self, machine: str, stretch: AnyStretch, when: Condition | None
    ) -> Iterator[Recorded]:
        """Read the times of a stretch, and the channels of a condition; as `Recordings.looks`."""
        if isinstance(stretch, Partition):
            yield from self._frame(machine, stretch)
            return
        asked = sorted({each.column for each in when.comparisons}) if when is not None else []

        def only(reading: FileReading) -> FileReading:
            return replace(reading, channels=tuple(reading.channels[self.order[i]] for i in asked))

        for span, file in spans_in(self._stretch(machine, stretch), only):
            rows = np.empty((len(span.numbers), 0))
            if when is not None:
                rows = np.full((len(span.numbers), len(self.names)), np.nan)
                rows[:, asked] = span.rows
            yield Recorded(machine, rows, span.times, str(file.path), int(span.numbers[0]))

    def file(self, stretch: FileStretch) -> FileReading:
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
                file, channels, clock, stretch.machine, zero_is_missing=zero
            )
        return self._opened[path]

    def _stretch(self, machine: str, stretch: FileStretch) -> Stretch:
        part = MachinePart(machine, self.file(stretch), None, stretch.whole)
        return Stretch(part, stretch.begin, stretch.end)

    def _frame(self, machine: str, stretch: Partition) -> Iterator[Recorded]:
        partition, options = table_of(self.frames[stretch.number]), self.options
        names = list(self.names) if isinstance(partition, np.ndarray) else None
        if not len(partition):
            return
        frame, columns = frame_of(partition, names), options.columns or None
        read = FrameRows(frame, columns, options.time or None, machine)
        for recorded in read.rows():
            yield replace(recorded, file=stretch.place)

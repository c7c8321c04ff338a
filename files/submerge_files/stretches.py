"""Stretches: the rows of opened files in pieces that other processes can read, each by itself.

A piece says by places of columns what is read, so that all processes read alike; its file is opened
where it is read. It begins at a whole number of chunks (`history.chunk_keys`), so that keys are the
same. Parquet is read from its row group; other files, and those with a column of machines, are one
piece each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from submerge import UsageError
from submerge.condition import Condition
from submerge.history.chunk_keys import ROWS
from submerge.history.recording import Recorded
from submerge_client.datasets.source import refusal
from submerge_files.reader import ReadingOptions, Recordings
from submerge_files.reader.clock_column import clock_of
from submerge_files.reader.file_rows import FileReading, Span
from submerge_files.reader.formats.arrow_file import ArrowFile
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.remote_path import path_of
from submerge_files.reader.parts import Digests, MachinePart, digests_here
from submerge_files.reader.time_order import iso
from submerge_files.workers import Task, Workers

MOST_ROWS = 16 * ROWS
"""Rows of a stretch, where a file can be read from its middle."""


@dataclass(frozen=True)
class PlannedFile:
    """How a file is read, as a value; pieces of it share what was opened in a process.

    channels : places of columns, in the order in which rows have them
    column : place of the column that names machines, if there is one
    order : whether days come first in slashed dates, where the files say it together
    """

    path: str
    options: ReadingOptions
    channels: tuple[int, ...]
    column: int | None
    timed: bool
    order: bool | None

    @classmethod
    def of(cls, reading: FileReading, options: ReadingOptions) -> PlannedFile:
        """Return what is known of a file that was opened here."""
        clock, path = reading.clock, str(reading.file.path)
        order = None if clock is None else clock.order
        return cls(path, options, reading.channels, reading.machine, clock is not None, order)

    def __reduce__(self) -> tuple[object, ...]:
        # Without the open file.
        fields = (self.path, self.options, self.channels, self.column, self.timed, self.order)
        return PlannedFile, fields

    @cached_property
    def reading(self) -> FileReading:
        """The file, opened."""
        file, clock = open_file(path_of(self.path), self.options.missing), None
        if self.timed:
            clock = clock_of(file, self.options).clock
            if clock is not None and self.order is not None:
                clock = clock.in_order(self.order)
        missing = self.options.missing_numbers
        return FileReading(file, self.channels, clock, self.column, missing=missing)

    def digest(self) -> bytes:
        """Return the hash of its rows."""
        return self.reading.digest()


@dataclass(frozen=True)
class SomeRows(FileReading):
    """Reads rows of a file from one to before another, counted from 0; to the end for None."""

    begin: int = 0
    end: int | None = None

    def spans(self, begin: int = 0) -> Iterator[Span]:
        """Read them; `begin` counts from the first of them."""
        at = self.begin + begin
        for span in super().spans(at):
            rest = len(span.numbers) if self.end is None else self.end - at
            if rest <= 0:
                return
            yield span.only(slice(0, rest)) if rest < len(span.numbers) else span
            at += len(span.numbers)


class _PieceOfRecordings(Recordings):
    """Reads without a thread of its own, and says nothing of values: it sees some of them alone."""

    def __init__(self, headings: tuple[str, ...], part: MachinePart, of: ReadingOptions) -> None:
        super().__init__(headings, [part], (), of)
        self._ranged = ()

    def rows(self) -> Iterator[Recorded]:
        return self._rows()


@dataclass(frozen=True)
class Stretch:
    """Rows of one machine in one file that follow one another; `whole`: all in it are its own."""

    headings: tuple[str, ...]
    machine: str
    file: PlannedFile
    whole: bool
    begin: int = 0
    end: int | None = None

    def rows(self) -> Iterator[Recorded]:
        """Read them."""
        return self._opened.rows()

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Read their times, and the channels of a condition; as `Recordings.looks`."""
        return self._opened.looks(when)

    @property
    def _opened(self) -> Recordings:
        one = self.file.reading
        known = one.file, one.channels, one.clock, one.machine, one.key, one.missing, one.states
        reading = SomeRows(*known, self.begin, self.end)
        part = MachinePart(self.machine, reading, 0.0 if self.file.timed else None, self.whole)
        return _PieceOfRecordings(self.headings, part, self.file.options)


@dataclass
class RowOrder:
    """Refuses rows of a machine that go back in time, or come again in another file.

    coarse : Machines with rows of equal times.
    """

    first: Recorded | None = None
    last: Recorded | None = None
    coarse: set[str] = field(default_factory=set)

    def add(self, recorded: Recorded) -> None:
        """Take rows that follow those before, which are in order."""
        n, times = len(recorded.rows), recorded.times
        equal = times is not None and bool((np.diff(times) == 0).any())
        self.follow(
            RowOrder(
                recorded.part(0, 1),
                recorded.part(n - 1, n),
                {recorded.machine} if equal else set(),
            )
        )

    def follow(self, later: RowOrder) -> None:
        """Take in rows that come after these."""
        before, after = self.last, later.first
        if before is not None and after is not None and before.machine == after.machine:
            self._compare(before, after)
        self.first, self.last = self.first or after, later.last or before
        self.coarse |= later.coarse

    def _compare(self, before: Recorded, after: Recorded) -> None:
        if before.times is None or after.times is None:
            return
        row, last = f"{after.file}, row {after.first}", f"row {before.first} of {before.file}"
        time, previous = float(after.times[0]), float(before.times[0])
        if time < previous:
            raise refusal(
                row,
                expected=f"no time before {iso(previous)} ({last})",
                got=iso(time),
                hint="the files overlap: each is a machine (--node-by file), or sort them before",
            )
        if time > previous:
            return
        same = np.array_equal(before.rows, after.rows, equal_nan=True)
        if same and before.file != after.file and after.machine not in self.coarse:
            raise refusal(
                row,
                expected="each row once",
                got=f"that of {iso(time)} again ({last})",
                hint="leave one of them out",
            )
        self.coarse.add(after.machine)


def stretches_of(recordings: object, *, cut: bool = True) -> list[Stretch]:
    """Return the rows of files that were opened here, machine by machine and in order.

    Not `cut`, each file is one stretch. Rows that have to be sorted or put together are refused:
    that needs all of them in one place.
    """
    if not isinstance(recordings, Recordings):
        raise UsageError(f"expected files for workers to read, got {type(recordings).__name__}")
    options, order, headings = recordings.options, recordings.order, recordings.headings
    apart = (options.sort, "--sort"), (options.long, "--long"), (options.states, "a state")
    for wanted, name in apart:
        if wanted:
            raise UsageError(
                f"expected rows in the order of time, one for each time, got {name}: workers"
                " read files apart; write them so before, or leave --dask out"
            )
    planned: dict[int, PlannedFile] = {}
    found: list[Stretch] = []
    for part in recordings.parts:
        reading = part.reading
        if id(reading) not in planned:
            chosen = tuple(reading.channels[place] for place in order)
            planned[id(reading)] = PlannedFile.of(replace(reading, channels=chosen), options)
        one = Stretch(headings, part.machine, planned[id(reading)], part.whole)
        found += _pieces(one, reading) if cut else [one]
    return found


def _pieces(whole: Stretch, reading: FileReading) -> Iterator[Stretch]:
    """Yield a stretch in pieces, where its file can be read from the middle."""
    file = reading.file
    rows = file.rows if isinstance(file, ArrowFile) and reading.machine is None else 0
    if rows <= MOST_ROWS:
        yield whole
        return
    for at in range(0, rows, MOST_ROWS):
        yield replace(whole, begin=at, end=min(at + MOST_ROWS, rows))


def digests_on(workers: Workers | None, options: ReadingOptions) -> Digests:
    """Return what reads files for their hashes: workers, or this program."""
    if workers is None:
        return digests_here

    def digests(readings: Sequence[FileReading]) -> list[bytes]:
        tasks = [Task((PlannedFile.of(each, options),)) for each in readings]
        return list(workers.map(PlannedFile.digest, tasks))

    return digests

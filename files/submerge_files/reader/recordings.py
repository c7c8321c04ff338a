"""Recordings: the rows of files, machine by machine and in the order of time.

1. Files without times are independent pieces in the order of a hash of their rows: the order of
   arguments does not matter. Two files of the same rows are read once; a note says so.
2. Rows of a machine that go back in time are refused, or sorted on request. Equal times inside a
   file are accepted: clocks may be coarser than the rows. The last row of one file and the first
   of the next, of the same time and values, are one row that was exported twice: refused, unless
   the clock is coarse.
3. Memory does not grow with the number of rows, but for `sort`, `.npy` and logs. With a column of
   machines, files are read once to find them, and once for all that can be held at a time.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from submerge import Array, Channel, UsageError
from submerge.condition import Condition
from submerge.headings import called, channels_of
from submerge.history.fit import CHUNK
from submerge.history.recording import Recorded
from submerge.judge.decision import Mask
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.reader.column_ranges import ColumnRanges
from submerge_files.reader.formats.arrow_file import ArrowFile
from submerge_files.reader.formats.readers import open_file
from submerge_files.reader.formats.tables import BLOCK_ROWS, TableFile, names_of
from submerge_files.reader.options import ONLY_MACHINE, ReadingOptions
from submerge_files.reader.paths import files_of
from submerge_files.reader.plan import (
    FileReading,
    Indices,
    MachinePart,
    Span,
    joined,
    parts_of,
    planned,
    widened,
)
from submerge_files.reader.time_form import MACHINES
from submerge_files.workers import HERE, Workers

SORT_BYTES = 512 << 20  # most bytes of one machine's rows and times that are sorted


HOUR_S = 3600.0  # how far clocks are set back in autumn


def row_of(number: int) -> str:
    """Return how errors name a row of any format."""
    return f"row {number}"


@dataclass
class TimeOrder:
    """Refuses rows of a machine that go back in time, or come again in another file."""

    at: Callable[[int], str] = row_of  # says where a row is in the file of these, by its number
    # the first and the last row so far
    first: Recorded | None = None
    last: Recorded | None = None
    coarse: set[str] = field(default_factory=set)  # machines with rows of equal times

    def check(self, recorded: Recorded, at: Callable[[int], str] = row_of) -> None:
        """Take rows that follow those before."""
        n, times = len(recorded.rows), recorded.times
        if times is None or not n:
            return
        steps = np.diff(times)
        equal = {recorded.machine} if (steps == 0).any() else set[str]()
        self.follow(TimeOrder(at, recorded.part(0, 1), recorded.part(n - 1, n), equal))
        if (steps < 0).any():
            i = int(np.flatnonzero(steps < 0)[0])
            raise _back(recorded.part(i, i + 1), at, recorded.part(i + 1, i + 2), at)

    def follow(self, later: TimeOrder) -> None:
        """Take in rows that come after these."""
        before, after = self.last, later.first
        if after is None:
            return
        if before is not None and before.machine == after.machine:
            self._compare(before, after, later.at)
        self.first, self.last, self.at = self.first or after, later.last, later.at
        self.coarse |= later.coarse

    def _compare(self, before: Recorded, after: Recorded, at: Callable[[int], str]) -> None:
        time, previous = _time(after), _time(before)
        if time < previous:
            raise _back(before, self.at, after, at)
        if time > previous:
            return
        same = np.array_equal(before.rows, after.rows, equal_nan=True)
        if same and before.file != after.file and after.machine not in self.coarse:
            raise refusal(
                f"{after.file}, {at(after.first)}",
                expected="each row once",
                got=f"that of {iso(time)} again ({self.at(before.first)} of {before.file})",
                hint="leave one of them out, or let --sort do it",
            )
        self.coarse.add(after.machine)


def _time(row: Recorded) -> float:
    return float(np.asarray(row.times)[0])


def _back(
    before: Recorded, was_at: Callable[[int], str], after: Recorded, at: Callable[[int], str]
) -> UsageError:
    """Return the error for a row with an earlier time than the one before it."""
    time, previous, last = _time(after), _time(before), was_at(before.first)
    hint = "the files overlap: merge them (--sort), or each is a machine (--node-by file)"
    if after.file == before.file:
        hint = "sort the rows, or ask for it (--sort)"
        if after.machine == ONLY_MACHINE:
            hint = f"{MACHINES}; else {hint}"
        if HOUR_S / 2 <= previous - time <= HOUR_S:
            hint += "; if clocks were set back then, write times in UTC or with their zone"
    else:
        last += f" of {before.file}"
    return refusal(
        f"{after.file}, {at(after.first)}",
        expected=f"no time before {iso(previous)} ({last})",
        got=iso(time),
        hint=hint,
    )


def sorted_spans(
    spans: Iterable[tuple[Span, TableFile]], machine: str, note: Callable[[str], None]
) -> Iterator[tuple[Span, TableFile]]:
    """Yield all rows of a machine by time, each once, in spans of one file."""
    parts, files, size = [], [], 0
    for span, file in spans:
        size += span.rows.nbytes + 8 * len(span.rows)
        if size > SORT_BYTES:
            raise UsageError(
                f"machine {machine!r}: expected at most {SORT_BYTES >> 20} MiB of rows to sort,"
                " got more; sort the files before, or name fewer at a time"
            )
        parts.append(span)
        files.append(file)
    if not parts:
        return
    owner = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
    whole = joined(parts)
    parts.clear()
    order = np.argsort(np.asarray(whole.times), kind="stable")
    known: dict[int, int] = {}
    origin = np.array([known.setdefault(id(file), i) for i, file in enumerate(files)])[owner]
    stays = _once(whole, origin, order)
    if not stays.all():
        many = counted(int(np.count_nonzero(~stays)), "row")
        note(f"{many} found in two files, and read once")
    order = order[stays]
    cuts = np.flatnonzero(np.diff(origin[order])) + 1
    for run in np.split(order, cuts):
        for begin in range(0, len(run), BLOCK_ROWS):
            some = run[begin : begin + BLOCK_ROWS]
            yield whole.only(some), files[origin[some[0]]]


def _once(whole: Span, origin: Indices, order: Indices) -> npt.NDArray[np.bool_]:
    """Return which rows stay, in order of time: those that no other file has at that time."""
    times = np.asarray(whole.times)[order]
    stays = np.ones(len(order), dtype=bool)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(times)) + 1, [len(times)]])
    for group in np.flatnonzero(np.diff(edges) > 1):
        seen: dict[tuple[bytes, str], int] = {}
        for i in range(edges[group], edges[group + 1]):
            at = int(order[i])
            key = "" if whole.keys is None else whole.keys[at]
            owner = int(origin[at])
            stays[i] = seen.setdefault((whole.rows[at].tobytes(), key), owner) == owner
    return stays


def iso(seconds: float) -> str:
    """Return a time as text in UTC, such as 2026-11-23T10:00:00Z."""
    try:
        when = datetime.fromtimestamp(float(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"
    return when.replace(tzinfo=None).isoformat() + "Z"


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

    def pieces(self) -> list[Recordings]:
        """Return the rows in order, in pieces of one machine and file that each can be read."""
        self.check_apart()
        parts = (replace(p, reading=piece) for p in self.parts for piece in _pieces(p.reading))
        return [self.of([part]) for part in parts]

    def check_apart(self) -> None:
        """Refuse rows that have to be sorted or put together: that needs all in one place."""
        for wanted, name in (self.options.sort, "--sort"), (self.options.long, "--long"):
            if wanted:
                raise UsageError(
                    f"expected rows in the order of time, one for each time, got {name}: workers"
                    " read files apart; write them so before, or leave --dask out"
                )

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
        for machine, parts in groupby(self.parts, lambda part: part.machine):
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
        for machine, parts in groupby(self.parts, lambda part: part.machine):
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

    def _in_order(
        self,
        machine: str,
        parts: Iterable[MachinePart],
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


MOST_PIECE = 16 * CHUNK
"""Rows of a piece, where a file can be read from its middle: whole chunks, for the same keys."""


def _pieces(whole: FileReading) -> Iterator[FileReading]:
    """Yield a file in pieces, if it can be read from the middle."""
    file = whole.file
    apart = isinstance(file, ArrowFile) and whole.machine is None and not whole.states
    rows = file.rows if apart and isinstance(file, ArrowFile) else 0
    if rows <= MOST_PIECE:
        yield whole
        return
    for at in range(0, rows, MOST_PIECE):
        yield replace(whole, begin=at, end=min(at + MOST_PIECE, rows))


def open_recordings(
    paths: Sequence[Path], options: ReadingOptions, workers: Workers | None = None
) -> Recordings:
    """Open files, folders and globs to read their rows together."""
    files, notes = files_of(paths)
    opened = [open_file(path, options.missing, options.quantity) for path in files]
    names, readings, planned_notes = planned(opened, options)
    parts, said = parts_of(readings, options, workers or HERE)
    return Recordings(names, parts, (*notes, *planned_notes, *said), options)


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

"""Plan: which columns of files are read, which rows are which machine's, and in which order.

1. What a file lacks is no gap: it is an error that names the file and the column.
2. Machines are in the order of their names, and one's files in that of their first times.
3. Files that begin alike, or have no times, are compared by a hash of their rows: the same rows are
   read once.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge.condition import InState
from submerge_client.datasets.fields import is_number
from submerge_client.datasets.source import refusal, shown
from submerge_client.datasets.table import counted
from submerge_files.reader.formats.tables import Kind, TableFile, names_of, words
from submerge_files.reader.options import BY_FILE, ONLY_MACHINE, ReadingOptions
from submerge_files.reader.selection import (
    ClockColumn,
    OneColumn,
    channels_of,
    check_numbers,
    clock_of,
    matching,
    place_of,
    some,
    unknown,
)
from submerge_files.reader.time_form import either_order, is_time, shared_times
from submerge_files.workers import Task, Workers

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
            times = None if clock is None else clock.seconds(self.file, raw, n + 1)
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


MOST_CHANNELS = 10_000  # more names than this are no channels: the columns are the wrong way round


def channels_in(readings: Sequence[FileReading], options: ReadingOptions) -> tuple[str, ...]:
    """Read the names of channels in all files, and return those that are wanted."""
    found: set[str] = set()
    for reading in readings:
        for span in reading.without_rows().spans():
            found.update(() if span.keys is None else span.keys)
            if len(found) > MOST_CHANNELS:
                raise refusal(
                    reading.file.path,
                    expected=f"at most {MOST_CHANNELS} names of channels",
                    got="more",
                    hint="name the channel's column first: --long CHANNEL,VALUE",
                )
    found.discard("")
    names, path = tuple(sorted(found)), readings[0].file.path
    skipped = {*matching(path, names, options.skip, "--skip")}
    chosen = matching(path, names, options.columns or names, "--columns")
    return tuple(names[i] for i in chosen if i not in skipped)


def widened(
    spans: Iterable[tuple[Span, TableFile]], names: Sequence[str]
) -> Iterator[tuple[Span, TableFile]]:
    """Yield spans of a row a time and a column a channel; a time may go on in the next span."""
    places = {name: i for i, name in enumerate(names)}
    held: list[tuple[Span, TableFile]] = []
    for span, file in spans:
        part = span.only(np.flatnonzero([key in places for key in _keys(span)]))
        changes = np.flatnonzero(np.diff(_times(part))) + 1
        # Its first time may go on from before, and its last one in the next span.
        cuts = changes[[0, -1]] if len(changes) else changes
        for chosen in filter(len, np.split(np.arange(len(part.rows)), cuts)):
            if held and _times(held[-1][0])[-1] != _times(part)[chosen[0]]:
                yield _wide(held, places), held[0][1]
                held = []
            held.append((part.only(chosen), file))
    if held:
        yield _wide(held, places), held[0][1]


def _wide(held: Sequence[tuple[Span, TableFile]], places: dict[str, int]) -> Span:
    span = joined([part for part, _ in held])
    times = _times(span)
    fresh = np.concatenate([[True], np.diff(times) != 0])
    starts, row = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    column = np.array([places[key] for key in _keys(span)])
    cells, first = np.unique(row * len(places) + column, return_index=True)
    if len(cells) < len(row):
        again = int(np.setdiff1d(np.arange(len(row)), first)[0])
        file = held[-1][1]
        raise refusal(
            f"{file.path}, {file.at(int(span.numbers[again]))}",
            expected="one value of a channel at a time",
            got=f"{_keys(span)[again]!r} again",
            hint="leave one out, or name the machine's column (--node-by)",
        )
    rows = np.full((len(starts), len(places)), np.nan)
    rows[row, column] = span.rows[:, 0]
    return Span(rows, times[starts], None, None, span.numbers[starts])


def _times(span: Span) -> Array:
    return np.asarray(span.times)


def _keys(span: Span) -> Names:
    return np.asarray(span.keys, dtype=object)


def planned(
    files: Sequence[TableFile], options: ReadingOptions
) -> tuple[tuple[str, ...], list[FileReading], tuple[str, ...]]:
    """Choose the columns of all files: their names, how each file is read, and notes."""
    notes: dict[str, list[Path]] = {}
    readings, chosen = [], []
    for file in files:
        _check_upright(file)
        _check_headings(file, options)
        try:
            reading, places, remarks = _alone(file, options)
        except OneColumn as error:
            read = _as_another(file, files, options)
            if read is None:
                raise _of_one_each(files, options) or error from None
            reading, places, remarks = read
        readings.append(reading)
        chosen.append(places)
        for remark in remarks:
            notes.setdefault(remark, []).append(file.path)
    readings = _with_orders(readings)
    _check_times(readings)
    if options.long:
        names = channels_in(readings, options)
    else:
        names = _common(files, chosen)
        readings = [_with_channels(reading, names) for reading in readings]
    _check_shape(files, names, long=bool(options.long))
    said = tuple(f"{note} ({_where(paths)})" for note, paths in notes.items())
    return names, readings, (*said, *time_sharing(readings))


def _check_headings(file: TableFile, options: ReadingOptions) -> None:
    """Refuse a file without headings, if columns are asked for by names."""
    names = names_of(file)
    if options.columns and not (file.named or options.long or {*options.columns} & {*names}):
        raise refusal(
            file.path,
            expected=f"headings with {some(options.columns)} ({options.columns_are})",
            got=f"none, and columns {some(names)}",
            hint="write the channels' names above the first row",
        )


def _as_another(
    file: TableFile, files: Sequence[TableFile], options: ReadingOptions
) -> tuple[FileReading, list[int], list[str]] | None:
    """Return how a file is read whose columns have values in another alone; None without one."""
    for other in files:
        with suppress(UsageError):
            names = tuple(other.columns[i].name for i in _alone(other, options)[1])
            begun = replace(file, whole=False)  # what has no value here may have one further on
            reading, places, notes = _alone(begun, replace(options, columns=names))
            return replace(reading, file=file), places, notes
    return None


def _of_one_each(files: Sequence[TableFile], options: ReadingOptions) -> UsageError | None:
    """Return the error for several files of one column each; None if any has more."""
    for file in files:
        try:
            _alone(file, options)
        except OneColumn:
            continue
        except UsageError:
            pass
        return None
    if len(files) < 2:
        return None
    return refusal(
        f"{len(files)} files",
        expected="a column for each sensor in each file",
        got=f"a file for each sensor ({files[0].path.name} has {', '.join(names_of(files[0]))})",
        hint="join them by their times into one table, or write their rows below one another with"
        " the sensor's name beside the value (--long sensor,value --sort)",
    )


def _alone(file: TableFile, options: ReadingOptions) -> tuple[FileReading, list[int], list[str]]:
    """Return how one file would be read, its channels and notes."""
    clock, remarks, others = clock_of(file, options)
    machine = None
    if options.node_by not in ("", BY_FILE):
        machine = place_of(file, options.node_by, "--node-by")
    states = tuple((state_of(file, each), each) for each in options.states)
    reading = FileReading(file, (), clock, machine, None, options.missing_numbers, states)
    notes = [*file.notes, *remarks]
    if options.long:
        if clock is None:
            raise refusal(
                file.path,
                expected="a column of times, as a long table needs",
                got="none that is found",
                hint="name it (--time)",
            )
        key, value = (place_of(file, name, "--long") for name in options.long)
        check_numbers(file, value)
        return replace(reading, channels=(value,), key=key), [value], notes
    taken = {*(clock.places if clock else ()), *([] if machine is None else [machine])}
    taken |= {place for place, _ in states}
    if not options.columns:
        taken |= {i for i in others if file.columns[i].kind == Kind.NUMBERS}
    channels, left_out = channels_of(file, options, taken)
    return reading, channels, [*notes, *left_out]


def state_of(file: TableFile, state: InState) -> int:
    """Return the place of a column of states, or refuse one of numbers, or without that state."""
    place = place_of(file, state.column, "--when")
    column = file.columns[place]
    if column.kind in (Kind.NUMBERS, Kind.TIMES, Kind.OTHER):
        raise refusal(
            file.place(place),
            expected=f"a column of text, to compare it with {shown(state.word)} (--when)",
            got=column.kind.value,
            hint="compare numbers with a number",
        )
    if file.whole and not state.holds(column.full).any():
        raise refusal(
            file.place(place),
            expected=f"rows where {state} (--when)",
            got=f"none: it has {some(sorted({*column.full}))}",
            hint="write the state as it stands there",
        )
    return place


def _common(files: Sequence[TableFile], chosen: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """Return the channels of all files; each must be in each."""
    wanted: dict[str, TableFile] = {}
    for file, places in zip(files, chosen, strict=True):
        for place in places:
            wanted.setdefault(file.columns[place].name, file)
    for name, other in wanted.items():
        for file in files:
            names = names_of(file)
            if name not in names:
                raise unknown(file.path, name, names, f"as in {other.path}")
            check_numbers(file, names.index(name), empty=True)
    # Whatever the order of the files is: the order of columns must not depend on it.
    return min(tuple(name for name in names_of(file) if name in wanted) for file in files)


def _with_channels(reading: FileReading, names: Sequence[str]) -> FileReading:
    places = {name: i for i, name in enumerate(names_of(reading.file))}
    return replace(reading, channels=tuple(places[name] for name in names))


def _with_orders(readings: Sequence[FileReading]) -> list[FileReading]:
    """Return readings whose slashed dates are in one order: a file may say it for another."""
    orders = {r.clock.order for r in readings if r.clock and r.clock.order is not None}
    decided = []
    for reading in readings:
        clock = reading.clock
        if clock is not None and clock.either:
            if len(orders) != 1:
                raise either_order(reading.file, clock.places, clock.either)
            reading = replace(reading, clock=clock.in_order(*orders))
        decided.append(reading)
    return decided


def _check_times(readings: Sequence[FileReading]) -> None:
    """Refuse files with times beside files without."""
    timed = [reading.clock is not None for reading in readings]
    if any(timed) and not all(timed):
        raise refusal(
            readings[timed.index(False)].file.path,
            expected=f"a column of times as in {readings[timed.index(True)].file.path}",
            got="none that is found",
            hint="name it (--time), or read all files without times (--time none)",
        )


def time_sharing(readings: Sequence[FileReading]) -> tuple[str, ...]:
    """Return a note if the first rows of files, machine by machine, share their times."""
    rows = times = most = 0
    for reading in readings:
        if reading.clock is not None:
            beside = [place for place in (reading.machine, reading.key) if place is not None]
            places = (*reading.clock.places, *beside)
            counts = Counter(zip(*(reading.file.columns[i].values for i in places), strict=True))
            rows, times = rows + counts.total(), times + len(counts)
            most = max(most, *counts.values())
    return shared_times("the first ", rows, times, most)


def _check_upright(file: TableFile) -> None:
    """Refuse a table whose headings are numbers or times beside a first column of names."""
    first, *others = file.columns
    named = first.kind == Kind.TEXT and len({*first.full}) == len(first.values) > 1
    headings = [is_time(c.name) or is_number(c.name) for c in others]
    if named and file.named and len(others) > 1 and 5 * sum(headings) >= 4 * len(headings):
        raise refusal(
            file.path,
            expected="a column for each channel",
            got=f"a row for each ({first.full[0]!r}, ...) and headings such as {others[0].name!r}",
            hint="the table lies on its side: transpose it",
        )


def _check_shape(files: Sequence[TableFile], names: Sequence[str], *, long: bool) -> None:
    """Refuse one row, and fewer rows than channels."""
    rows = sum(file.head for file in files)
    where = files[0].path if len(files) == 1 else f"{len(files)} files"
    if len(names) < 2:
        raise refusal(
            where,
            expected="at least two channels to compare",
            got=", ".join(names) or "none",
            hint="name more (--columns)",
        )
    if long or not all(file.whole for file in files):
        return
    if rows < 2:
        raise refusal(where, expected="rows over time", got="one row", hint="name longer files")
    if rows < len(names):
        raise refusal(
            where,
            expected="more rows than columns",
            got=f"{counted(rows, 'row')} of {counted(len(names), 'column')}",
            hint="transpose it if it lies on its side, or name fewer columns (--columns)",
        )


def _where(paths: Sequence[Path]) -> str:
    return paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"


MOST_MACHINES = 10_000

FEW_MACHINES, FEWEST_ROWS = 100, 10
"""With more machines than this, and fewer rows of each, a column does not name machines."""


@dataclass(frozen=True)
class MachinePart:
    """One file's rows of one machine from a first time on, if any: all (`whole`), or so many."""

    machine: str
    reading: FileReading
    first: float | None
    whole: bool
    rows: int = 0


def parts_of(
    readings: Sequence[FileReading], options: ReadingOptions, workers: Workers
) -> tuple[list[MachinePart], list[str]]:
    """Return the parts of all files, in the order in which they are read, and notes."""
    named = zip(readings, _machines(readings, options), strict=True)
    parts = [part for reading, name in named for part in _parts(reading, name, options)]
    # Files that begin as another does are read once for a hash, and no others.
    begins = {id(part.reading): part.first for part in parts}
    of_files = Counter(begins.values())
    of_machines = Counter((part.machine, part.first) for part in parts)
    asked = {
        id(part.reading): part.reading
        for part in parts
        if of_machines[part.machine, part.first] > 1 or of_files[begins[id(part.reading)]] > 1
    }
    tasks = [Task((reading,)) for reading in asked.values()]
    hashes = dict(zip(asked, workers.map(FileReading.digest, tasks), strict=True))
    once, left, notes = dict[bytes, FileReading](), set[int](), list[str]()
    for key in (key for key, first in begins.items() if of_files[first] > 1):
        reading, other = asked[key], once.setdefault(hashes[key], asked[key])
        if other is not reading:
            left.add(key)
            names = f"{reading.file.path.name} has the rows of {other.file.path.name}"
            notes.append(f"{names}: they are read once")

    def place(part: MachinePart) -> tuple[str, float, bytes]:
        return part.machine, part.first or 0.0, hashes.get(id(part.reading), b"")

    return sorted((part for part in parts if id(part.reading) not in left), key=place), notes


def _machines(readings: Sequence[FileReading], options: ReadingOptions) -> list[str]:
    """Return the name of each file's machine, if all of its rows are of one."""
    if options.node_by != BY_FILE:
        return [ONLY_MACHINE for _ in readings]
    paths = [reading.file.path for reading in readings]
    shared = set.intersection(*({*path.parts} for path in paths))
    apart = ["-".join(part for part in path.parts if part not in shared) for path in paths]
    # Files of the same name in different folders are different machines, as `machine=1` of Hive.
    # A machine is judged as a node of its name (`submerge.protocol.names`).
    for names in ([path.name.split(".")[0] or path.name for path in paths], apart):
        nodes = [re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:64] for name in names]
        if len({*filter(None, nodes)}) == len(nodes):
            return nodes
    return list(map(str, paths))


def _parts(reading: FileReading, name: str, options: ReadingOptions) -> Iterable[MachinePart]:
    file = reading.file
    if reading.machine is None:
        return [MachinePart(name, reading, _first_time(reading), True)]
    found: dict[str, float | None] = {}
    counts: Counter[str] = Counter()
    for span in reading.without_rows().spans():
        for i, name in enumerate(() if span.machines is None else span.machines):
            if name not in found:
                found[name] = None if span.times is None else float(span.times[i])
                if not name:
                    raise refusal(
                        f"{file.path}, {file.at(int(span.numbers[i]))}",
                        expected=f"a machine's name in column {options.node_by!r}",
                        got="none",
                        hint="complete the row or leave it out",
                    )
        counts.update(() if span.machines is None else span.machines)
        if len(found) > MOST_MACHINES:
            raise refusal(
                file.path,
                expected=f"at most {MOST_MACHINES} machines in column {options.node_by!r}",
                got="more",
                hint="name the column of machines (--node-by)",
            )
    rows = counts.total()
    if len(found) > FEW_MACHINES and rows < FEWEST_ROWS * len(found):
        raise refusal(
            file.path,
            expected=f"a column that names machines ({options.node_by!r})",
            got=f"{len(found):,} names in {rows:,} rows",
            hint="name another column (--node-by)",
        )
    alone = len(found) == 1
    return [MachinePart(name, reading, at, alone, counts[name]) for name, at in found.items()]


def _first_time(reading: FileReading) -> float | None:
    if reading.clock is None:
        return None
    spans = reading.without_rows().spans()
    first = next((float(s.times[0]) for s in spans if s.times is not None and len(s.times)), None)
    if first is None and reading.states:
        raise no_rows_in(reading.file.path, [state for _, state in reading.states])
    return first


def no_rows_in(where: object, states: Sequence[InState]) -> UsageError:
    """Return the error for rows of which none is in the states that are asked for."""
    wanted = f"rows where {' and '.join(map(str, states))}"
    hint = "write the states as they stand there (--when)"
    return refusal(where, expected=wanted, got="none", hint=hint)

"""Plan: the columns that all files have in common, and how each file is read.

What a file lacks is no gap: it is an error that names the file and the column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from submerge import Array, UsageError
from submerge.condition import InState
from submerge_client.datasets.fields import is_number
from submerge_client.datasets.source import Place, refusal, shown
from submerge_client.datasets.table import counted
from submerge_files.reader.clock_column import clock_of
from submerge_files.reader.file_rows import FileReading, Names, Span, joined
from submerge_files.reader.formats.tables import Kind, TableFile, names_of
from submerge_files.reader.options import BY_FILE, ReadingOptions
from submerge_files.reader.selection import (
    OneColumn,
    channels_of,
    check_numbers,
    matching,
    place_of,
    some,
    unknown,
)
from submerge_files.reader.time_form import either_order, is_time, shared_times

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
        if not len(part.rows):
            continue
        if held and _times(held[-1][0])[-1] != _times(part)[0]:
            yield _wide(held, places), held[0][1]
            held = []
        changes = np.flatnonzero(np.diff(_times(part))) + 1
        if not len(changes):
            held.append((part, file))
            continue
        # What is held has the first time of this span; the last time is held next.
        begin = int(changes[0]) if held else 0
        if held:
            held.append((part.only(slice(0, begin)), file))
            yield _wide(held, places), held[0][1]
        end = int(changes[-1])
        if begin < end:
            yield _wide([(part.only(slice(begin, end)), file)], places), file
        held = [(part.only(slice(end, None)), file)]
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


class ReadingPlan(NamedTuple):
    names: tuple[str, ...]
    readings: tuple[FileReading, ...]
    notes: tuple[str, ...]


def planned(files: Sequence[TableFile], options: ReadingOptions) -> ReadingPlan:
    """Choose the columns of all files."""
    notes: dict[str, list[Path]] = {}
    readings, chosen = [], []
    for file in files:
        _check_upright(file)
        _check_headings(file, options)
        try:
            reading, places, remarks = _alone(file, options)
        except OneColumn as error:
            raise _of_one_each(files, options) or error from None
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
    return ReadingPlan(names, tuple(readings), (*said, *time_sharing(readings)))


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
            Place(file.path, column=place + 1, name=column.name),
            expected=f"a column of text, to compare it with {shown(state.word)} (--when)",
            got=column.kind.value,
            hint="compare numbers with a number",
        )
    if file.whole and not state.holds(column.full).any():
        raise refusal(
            Place(file.path, column=place + 1, name=column.name),
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

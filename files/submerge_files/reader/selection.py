"""Selecting: columns by names, globs and ranges; which are channels, and which hold the times.

docs/histories.md has the rules of times. Numbers are dates without separators if all are; else
seconds to nanoseconds since 1970 by their size; smaller ones are seconds from an unknown start.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from submerge import Array, UsageError, headings
from submerge.judge.prepare import LARGEST_SCALED
from submerge_client.datasets.fields import ANOTHER_MARK, is_number
from submerge_client.datasets.source import refusal
from submerge_files.reader import time_form
from submerge_files.reader.formats.tables import (
    ColumnHead,
    Kind,
    RawRows,
    TableFile,
    names_of,
    words,
)
from submerge_files.reader.options import NO_TIME, ReadingOptions
from submerge_files.reader.time_form import scale_of, values_of

FEWEST = 20  # values that show it

INDEX = frozenset(
    ("id", "index", "idx", "row", "rownum", "row_id", "no", "nr", "#", "unnamed: 0", "level_0")
)
"""Names of columns that number the rows."""

LABELS = re.compile(
    r"\b(labels?|anomal\w*|fault\w*|fail\w*|attacks?|outliers?|target|class|changepoint|truth"
    r"|(st(ö|oe)rung|fehler|ausf[aä]ll|défaut|panne|fall[oa]|guast|anormal)\w*|故障|异常)\b"
)
"""Words in the names of columns that say which rows are faults, in some languages."""

MOST_LABELS = 10  # different values of a column of labels: whole numbers


def counts(column: ColumnHead) -> bool:
    """Return whether a column numbers the rows."""
    try:
        values = [float(value) for value in column.values]
    except ValueError:
        return False
    return all(value == values[0] + i for i, value in enumerate(values))


def is_index(column: ColumnHead) -> bool:
    """Return whether a column numbers the rows, and is called so or nothing."""
    called = not column.heading or column.name.strip().casefold() in INDEX
    return column.of_frame or (called and counts(column))


CALENDAR = re.compile(
    r"(year|month|day|hour|minute|second)s?|doy|hhmm|jahr|monat|tag|stunde|année|mois|jour|heure"
    r"|año|mes|día|hora|(?P<short>yyyy|yy|yr|mm|mo|dd|dy|hh|hr|mi|mn|min|ss|sec)"
)
"""Names of columns that make a time together; short ones not alone: rain is in `mm`."""


def doubts(columns: Sequence[ColumnHead]) -> Iterator[str]:
    """Yield a sentence for each channel that is hardly one."""
    seen: dict[tuple[str, ...], str] = {}
    called = ((each.name, headings.channel_of(each.name).name) for each in columns)
    found = [(name, CALENDAR.fullmatch(bare.strip(" #").casefold())) for name, bare in called]
    parts = [name for name, part in found if part]
    if len(parts) > 1 or any(part and not part["short"] for _, part in found):
        many = f"columns {', '.join(parts)} are learnt as channels"
        yield (
            f"{many if parts[1:] else f'column {parts[0]} is learnt as a channel'}: if that is the"
            " time of a row, write it into one column, and leave out the rest"
            f" (--skip {shlex.quote(','.join(parts))})"
        )
    for column in columns:
        several = len({*column.full}) > 1 and len(column.full) >= FEWEST
        skip = f"leave it out (--skip {shlex.quote(column.name)})"
        if several and counts(column):
            yield f"column {column.name} counts the rows: if it is no reading, {skip}"
        elif several and _are_times(column):
            yield f"column {column.name} looks like times: name it as such (--time), or {skip}"
        elif _are_labels(column):
            yield (
                f"column {column.name} is learnt as a channel: if it says which rows are faults,"
                f" {skip} and name their times (--labels)"
            )
        elif several and column.values in seen:
            yield (
                f"columns {seen[column.values]} and {column.name} have the same values in the first"
                f" rows: if they are one sensor, {skip}"
            )
        seen.setdefault(column.values, column.name)


def _are_labels(column: ColumnHead) -> bool:
    """Return whether a column is called like labels, and has few whole numbers: also 0 alone."""
    values = {*values_of(column).tolist()}
    called = LABELS.search(column.name.casefold().replace("_", " "))
    few = len(values) <= MOST_LABELS and all(value % 1 == 0 for value in values)
    return called is not None and few


def _are_times(column: ColumnHead) -> bool:
    values = values_of(column)
    rises = bool((values[1:] > values[:-1]).all())
    return rises and scale_of(values) is not None and float(values[0]) >= 1e9


MOST_WORDS = 3  # different words in a column's first rows that may stand for gaps

RANGE = ".."
SHOWN = 5  # names that one message lists


class OneColumn(UsageError):
    """A file has one column of numbers alone."""


def place_of(file: TableFile, name: str, option: str) -> int:
    """Return the place of one column, or refuse a name that the file does not have."""
    names = names_of(file)
    place = place_in(names, name)
    if place is None:
        raise unknown(file.path, name, names, option)
    return place


def place_in(names: Sequence[str], name: str) -> int | None:
    """Return the place of a heading, which may be written without its unit."""
    if name in names:
        return names.index(name)
    return headings.place_of(headings.channel_of(name), names)


def matching(path: Path, names: tuple[str, ...], patterns: Sequence[str], option: str) -> list[int]:
    """Return the places of names that match, in their order."""
    return sorted({place for each in patterns for place in _matches(path, each, names, option)})


def _matches(path: Path, pattern: str, names: tuple[str, ...], option: str) -> Sequence[int]:
    place = place_in(names, pattern)
    if place is not None:
        return [place]
    begin, dots, end = pattern.partition(RANGE)
    if dots and begin and end:
        first, last = (place_in(names, edge) for edge in (begin, end))
        if first is None or last is None:
            raise unknown(path, begin if first is None else end, names, option)
        if first > last:
            raise refusal(
                path,
                expected=f"a range in the file's order for {option}",
                got=f"{pattern!r}, where {end!r} is first",
                hint=f"write {end}{RANGE}{begin}",
            )
        return range(first, last + 1)
    # A unit is in brackets, as the letters of a pattern are.
    if any(mark in headings.channel_of(pattern).name for mark in "*?["):
        found = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not found:
            raise refusal(
                path,
                expected=f"columns that match {pattern!r} ({option})",
                got="none",
                hint=f"it has {some(names)}",
            )
        return found
    raise unknown(path, pattern, names, option)


def unknown(path: Path, name: str, names: Collection[str], option: str) -> UsageError:
    """Return the error for a column that is not there."""
    if not name.isidentifier() and {*name.split()} <= {*names}:
        hint = f"write commas between names: {','.join(name.split())}"
        return refusal(path, expected=f"columns ({option})", got=repr(name), hint=hint)
    folded = [each for each in names if each.casefold() == name.casefold()]
    measured = [each for each in names if _bare(each) == _bare(name)]
    near = [*folded, *measured, *difflib.get_close_matches(name, names, n=1)]
    hint = f"did you mean {some(near[:1])!r}?" if near else f"it has {some(names)}"
    units = [headings.channel_of(each).unit for each in (name, *near[:1])]
    if measured and not folded and not units[1] and (units[0] or near[0][-1] in ")}>|"):
        hint = f"is it {near[0]!r}? then give its heading its unit in square brackets"
    return refusal(path, expected=f"a column {name!r} ({option})", got="no such column", hint=hint)


def _bare(heading: str) -> str:
    """Return a heading without what looks like a unit, as in `flow (m3/h)` or `flow, m3/h`."""
    return re.split(r"\s*[\[({<|,]|\s+in\s", heading)[0].strip().casefold()


def some(names: Collection[str]) -> str:
    listed = [f'"{name}"' if "," in name else name for name in names]
    more = len(listed) - SHOWN
    return ", ".join(listed[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def channels_of(
    file: TableFile, options: ReadingOptions, taken: Collection[int]
) -> tuple[list[int], list[str]]:
    """Return the places of a file's channels, and notes on what is left out."""
    names = names_of(file)
    skipped = {*matching(file.path, names, options.skip, "--skip")}
    if options.columns:
        try:
            asked = matching(file.path, names, options.columns, options.columns_are)
        except UsageError as missing:
            raise UsageError("; ".join([str(missing), *file.notes])) from missing
        chosen = [i for i in asked if i not in skipped and i not in taken]
        for i in chosen:
            check_numbers(file, i)
            _check_size(file, i)
        return chosen, []
    chosen, notes = [], []
    for i, column in enumerate(file.columns):
        if i in skipped or i in taken:
            continue
        if reason := _no_channel(file, column):
            notes.append(reason)
        else:
            _check_size(file, i)
            chosen.append(i)
    if len(chosen) < 2:
        one = ANOTHER_MARK if len(file.columns) == 1 and not chosen else ""
        error = refusal(
            file.path,
            expected="at least two columns of numbers",
            got=some([file.columns[i].name for i in chosen]) if chosen else "none",
            hint="; ".join(filter(None, [*file.notes, *notes, one, _long_hint(file, chosen)]))
            or "check its separator and headings",
        )
        raise OneColumn(str(error)) if chosen else error
    return chosen, [*notes, *doubts([file.columns[i] for i in chosen])]


def _long_hint(file: TableFile, chosen: Sequence[int]) -> str:
    """Return what to do about a table of names and values."""
    names = [column.name for column in file.columns if column.kind == Kind.TEXT]
    if len(chosen) != 1 or not names:
        return ""
    value = file.columns[chosen[0]].name
    return f"if a row is one value of one channel: --long {shlex.quote(f'{names[0]},{value}')}"


def _no_channel(file: TableFile, column: ColumnHead) -> str:
    """Return why a column is no channel unless it is named, or an empty string."""
    match column.kind:
        case Kind.NUMBERS:
            if file.named and is_index(column):
                why = "is the index of a frame" if column.of_frame else "counts the rows"
                return f"column {column.name} {why} and is left out"
            return ""
        case Kind.EMPTY:
            if file.whole or column.of_frame or not column.heading:
                return f"column {column.name} has no value and is left out"
            return ""
        case Kind.TEXT:
            if gaps := _gaps(file, column):
                raise refusal(
                    file.place(names_of(file).index(column.name)),
                    expected="numbers, or text alone",
                    got=f"numbers after {len(column.full)} rows of {column.full[0]!r}",
                    hint=f"{gaps}, and --skip leaves the column out",
                )
            several = len({*column.full}) > 1
            got = f"{column.full[0]!r}, ..." if several else f"{column.full[0]!r} alone"
            hint = f": {cure}, if it holds numbers" if (cure := _cure(column)) else ""
            return f"column {column.name} is text ({got}) and is left out{hint}"
        case Kind.TIMES:
            return f"column {column.name} holds times too and is left out"
        case Kind.OTHER:
            return f"column {column.name} holds {column.kind.value} and is left out"


def _cure(column: ColumnHead) -> str:
    """Return how a column of text that has numbers becomes one of numbers."""
    others = [value for value in column.full if not is_number(value)]
    if len(others) == len(column.full):
        return ""
    return f"make gaps of {others[0]!r} (--na, in text files), or cast it" if others else "cast it"


def _gaps(file: TableFile, column: ColumnHead) -> str:
    """Return how a few words become gaps, if numbers come in the next rows; else nothing."""
    found = [*dict.fromkeys(column.full)]
    if file.whole or len(found) > MOST_WORDS or any(map(is_number, found)):
        return ""
    # Words that go on for so many rows are no gaps.
    blocks = islice(file.blocks((), [names_of(file).index(column.name)]), 64)
    if not any(is_number(text) for raw in blocks for text in {*words(raw.texts[0])}):
        return ""
    return f"--na {shlex.quote(','.join(found))} makes gaps of {'them' if found[1:] else 'it'}"


def check_numbers(file: TableFile, place: int, *, empty: bool = False) -> None:
    """Refuse a column without numbers; one without any value only if that is not asked for."""
    column = file.columns[place]
    if column.kind == Kind.NUMBERS or (column.kind == Kind.EMPTY and (empty or not file.whole)):
        return
    got, hint = column.kind.value, "leave it out (--skip)"
    if column.kind == Kind.TEXT:
        got = f"text such as {column.full[0]!r}"
        hint = _cure(column) or _gaps(file, column) or hint
    elif column.kind == Kind.EMPTY:
        got = "no value in any row"
    raise refusal(
        file.place(place),
        expected="a column of numbers",
        got=got,
        hint=hint,
    )


def _check_size(file: TableFile, place: int) -> None:
    """Refuse a column that mostly has numbers that no reading has."""
    column = file.columns[place]
    values = values_of(column)
    large = values[(abs(values) >= LARGEST_SCALED) & np.isfinite(values)]
    if 2 * len(large) > len(column.full):
        raise refusal(
            file.place(place),
            expected=f"readings below {LARGEST_SCALED:g}",
            got=f"{large[0]:.17g}, ..., as ids and times have",
            hint=f"leave it out (--skip {shlex.quote(column.name)}), or say that it is the time"
            " (--time)",
        )


YEAR_2200 = 7.3e9
"""Seconds since 1970 from which a time is none: dates without separators look like that."""


@dataclass(frozen=True)
class ClockColumn:
    """The column or columns of a file that say when its rows were."""

    places: tuple[int, ...]  # one column, or a date's and a time of day's
    form: time_form.TimeForm
    order: bool | None = None  # of slashed dates, whether the day is first; None for others
    # a slashed date that may be read in both orders, as all of the column; "" for others
    either: str = ""

    def seconds(self, file: TableFile, raw: RawRows, first: int) -> Array:
        """Return the times (n,) of rows in seconds since 1970; `first`: the first's number."""
        # Numbers that are times are the last, and texts the first.
        texts = None if self.form.numeric else raw.texts[0]
        if texts is not None and len(self.places) == 2:
            pairs = zip(*map(words, raw.texts[:2]), strict=True)
            texts = [f"{day} {clock}" for day, clock in pairs]
        seconds = self.form.seconds(raw.numbers[:, -1] if texts is None else texts)
        bad = np.flatnonzero(~np.isfinite(seconds))
        if len(bad):
            row = int(bad[0])
            text = "" if texts is None else words(texts)[row]
            raise time_form.no_time(file, self.places[0], first + row, text)
        return seconds

    def in_order(self, order: bool) -> ClockColumn:
        """Return the column with its slashed dates in one order."""
        return ClockColumn(self.places, time_form.slashed(order), order)


class Found(NamedTuple):
    """What times a file has; `clock`: None if it has none."""

    clock: ClockColumn | None
    notes: tuple[str, ...] = ()
    others: tuple[int, ...] = ()


def clock_of(file: TableFile, options: ReadingOptions) -> Found:
    """Find the time column of a file, or read the one that is named."""
    option = options.time
    form = time_form.parsed_by(options.time_format) if options.time_format else None
    # A table of one column is one of another mark.
    alone = len(file.columns) == 1 and not (option or form)
    if alone or (option == NO_TIME and NO_TIME not in names_of(file)):
        return Found(None)
    if option:
        return _named(file, option, form)
    # By type, then by content, then by name: the surest first.
    typed = (i for i, column in enumerate(file.columns) if column.typed)
    by_content = (*typed, *_by_content(file), *_by_name(file))
    places = [*dict.fromkeys(by_content if form is None else _by_form(file, form))]
    if not places:
        time_form.check_passed_over(file, time_form.places_called_time(file), options.time_format)
        return Found(None, tuple(_channels_called_time(file, ())))
    goes_on = time_form.going_on([len({*file.columns[i].full}) for i in places])
    place = places[goes_on[0]]
    found = _read_as(file, place, form)
    read = found.clock.places if found.clock else ()
    others = tuple(place for place in places if place not in read)
    numbers = [file.columns[i].name for i in others if file.columns[i].kind == Kind.NUMBERS]
    notes = [f"column {name} holds times too and is left out" for name in numbers]
    if {places[i] for i in goes_on} & {*others}:
        name = file.columns[place].name
        notes.append(f"times are of column {name}, the first that goes on: --time names another")
    notes += _channels_called_time(file, (*read, *others))
    return Found(found.clock, (*found.notes, *notes), others)


def _named(file: TableFile, option: str, form: time_form.TimeForm | None) -> Found:
    day, plus, clock = option.partition("+")
    if plus and option not in names_of(file):
        places = (place_of(file, day, "--time"), place_of(file, clock, "--time"))
        for place in places:
            if file.columns[place].typed or file.columns[place].kind == Kind.OTHER:
                raise refusal(
                    file.place(place),
                    expected="text, to read dates and times of day as one",
                    got="a column of a type of its own",
                    hint="write one column of timestamps, or both as text",
                )
        return Found(_of_text(file, places) if form is None else ClockColumn(places, form))
    return _read_as(file, place_of(file, option, "--time"), form)


def _by_content(file: TableFile) -> Iterator[int]:
    for i, column in enumerate(file.columns):
        some_text = column.kind == Kind.TEXT and time_form.is_called_time(column)
        if column.kind == Kind.TIMES or (some_text and any(map(time_form.is_time, column.full))):
            yield i


def _by_name(file: TableFile) -> Iterator[int]:
    for i in time_form.places_called_time(file):
        column, values = file.columns[i], time_form.values_of(file.columns[i])
        if column.kind != Kind.NUMBERS:
            continue
        at_once = (
            time_form.scale_of(values)
            or time_form.is_compact(values)
            or time_form.epochs_of(column, values)
        )
        if at_once or time_form.is_elapsed(column, values):
            yield i


def _by_form(file: TableFile, form: time_form.TimeForm) -> Iterator[int]:
    """Yield columns whose values are of a form: those that are called time first."""
    called = [*time_form.places_called_time(file)]
    # Any number is a time since 1970.
    others = [] if form.numeric else [i for i in range(len(file.columns)) if i not in called]
    for i in (*called, *others):
        column = file.columns[i]
        if column.typed or (column.full and np.isfinite(form.of_text(column.full)).any()):
            yield i


def _channels_called_time(file: TableFile, taken: Sequence[int]) -> Iterator[str]:
    for i in time_form.places_called_time(file):
        column = file.columns[i]
        if column.kind == Kind.NUMBERS and i not in taken:
            yield f"{column.name} holds numbers that are no times and is read as a channel"


def _read_as(file: TableFile, place: int, form: time_form.TimeForm | None) -> Found:
    column = file.columns[place]
    if form is not None:
        time_form.check_form(file, place, form)
        return Found(ClockColumn((place,), form))
    if column.typed:
        return Found(ClockColumn((place,), time_form.TYPED))
    if column.kind == Kind.NUMBERS:
        return _of_numbers(file, place)
    if not any(map(time_form.is_time, column.full)):
        raise time_form.not_times(file, place)
    days_only = all(len(value) <= 10 for value in column.full)
    beside = [
        i
        for i, each in enumerate(file.columns)
        if each.full and all(map(time_form.is_clock, each.full))
    ]
    if days_only and beside:
        return Found(_of_text(file, (place, beside[0])))
    return Found(_of_text(file, (place,)))


def _of_numbers(file: TableFile, place: int) -> Found:
    column, values = file.columns[place], time_form.values_of(file.columns[place])
    if time_form.is_compact(values):
        return Found(ClockColumn((place,), time_form.COMPACT))
    scale, epochs = time_form.scale_of(values), time_form.epochs_of(column, values)
    dates = time_form.patterns_of_digits(column, values)
    if epochs or dates or (scale and values.max() / scale > YEAR_2200):
        raise time_form.other_epoch(file, place, epochs, dates)
    if scale:
        return Found(ClockColumn((place,), time_form.since_1970(scale)))
    note = f"{column.name} holds seconds from an unknown start: shown as if from 1970"
    return Found(ClockColumn((place,), time_form.since_1970(1.0)), (note,))


def _of_text(file: TableFile, places: tuple[int, ...]) -> ClockColumn:
    column = file.columns[places[0]]
    some = next((value for value in column.full if time_form.is_slashed(value)), "")
    clocks = (file.columns[place].full[0] for place in places[1:])
    clock = ClockColumn(places, time_form.TEXT, either=" ".join([some, *clocks]) if some else "")
    if not some:
        return clock
    orders = time_form.orders_of(column.full)
    if len(orders) == 2 and not file.whole:
        for raw in file.blocks((), places[:1]):
            orders &= time_form.orders_of(words(raw.texts[0]))
            if len(orders) < 2:
                break
    if not orders:
        raise refusal(
            file.place(places[0]),
            expected="dates in one order of day and month",
            got="numbers above 12 in both places",
            hint="write all of them as 2026-11-23",
        )
    return clock if len(orders) == 2 else clock.in_order(*orders)

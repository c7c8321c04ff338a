"""ClockColumn: which column holds the times, and how its values become seconds since 1970.

docs/histories.md has the rules. Numbers are dates without separators if all are; else seconds to
nanoseconds since 1970 by their size; smaller ones are seconds from an unknown start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge import Array
from submerge_files.reader import time_form
from submerge_files.reader.formats.tables import Kind, RawRows, TableFile, names_of, words
from submerge_files.reader.options import NO_TIME, ReadingOptions
from submerge_files.reader.selection import place_of

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

    def seconds(self, file: TableFile, raw: RawRows, first: int, numbers: Array | None) -> Array:
        """Return the times (n,) of some rows in seconds since 1970; `first`: the first's number."""
        texts = None if numbers is not None else raw.texts[0]
        if numbers is None and len(self.places) == 2:
            pairs = zip(*map(words, raw.texts[:2]), strict=True)
            texts = [f"{day} {clock}" for day, clock in pairs]
        seconds = self.form.seconds(texts if numbers is None else numbers)
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
                raise time_form.no_text(file, place)
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
        raise time_form.both_orders(file, places[0])
    return clock if len(orders) == 2 else clock.in_order(*orders)

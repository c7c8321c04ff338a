"""The errors about columns of times, each with what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import numpy as np

from submerge import UsageError
from submerge_client.datasets.day_order import patterns_of, readings_of
from submerge_client.datasets.source import Place, refusal, shown
from submerge_files.reader.formats.tables import Kind, TableFile
from submerge_files.reader.time_form import EXCEL, TimeForm

FORMS = "2026-11-23 10:00, 2026-11-23T10:00:00Z, 23.11.2026 10:00:00 or numbers since 1970"

OTHERWISE = "name another column (--time), or read none (--time none)"

PATTERN = "say how they are written, as in --time-format '%d/%m/%y %H:%M'"


def check_passed_over(file: TableFile, called_time: Iterable[int], pattern: str) -> None:
    """Refuse a column that is called time and holds text with digits: times that we cannot read.

    pattern : what was asked for; then a column without digits is none, too
    """
    for place in called_time:
        column = file.columns[place]
        digits = any(mark.isdigit() for mark in "".join(column.full[:1]))
        if (column.kind in (Kind.TEXT, Kind.TIMES) and digits) or (pattern and column.full):
            raise not_times(file, place, pattern)
    if pattern:
        raise refusal(
            file.path,
            expected=f"a column of times as in --time-format {pattern!r}",
            got="none",
            hint="name the column (--time)",
        )


def check_form(file: TableFile, place: int, form: TimeForm) -> None:
    """Refuse a column in which no value is of the form that was asked for."""
    column = file.columns[place]
    if column.typed:
        raise refusal(
            _place(file, place),
            expected="text or numbers, to read them by --time-format",
            got="a column of a time type",
            hint="leave --time-format out",
        )
    if column.full and not np.isfinite(form.of_text(column.full)).any():
        raise not_times(file, place, "as --time-format says")


def not_times(file: TableFile, place: int, pattern: str = "") -> UsageError:
    """Return the error for a column without times.

    pattern : what was asked for
    """
    column = file.columns[place]
    return refusal(
        _place(file, place),
        expected=f"times ({pattern})" if pattern else f"times such as {FORMS}",
        got=shown(column.full[0]) if column.full else "no value",
        hint=f"correct --time-format, or {OTHERWISE}" if pattern else f"{PATTERN}, {OTHERWISE}",
    )


def no_time(file: TableFile, place: int, at: int, text: str) -> UsageError:
    """Return the error for a row without a time."""
    return refusal(
        f"{file.path}, {file.unit} {at}, column {place + 1} ({file.columns[place].name})",
        expected=f"a time such as {FORMS}" if text else "a time in each row",
        got=shown(text) if text else "none",
        hint="write it as the others, or leave the row out",
    )


def either_order(file: TableFile, places: Sequence[int], text: str) -> UsageError:
    """Return the error for slashed dates that may all be read in both orders."""
    day_first, month_first = patterns_of(text)
    days = readings_of(text)
    meant = f" ({days[0]} or {days[1]})" if days else ""
    names = "+".join(file.columns[place].name for place in places)
    both = f" (with --time {shlex.quote(names)})" if len(places) > 1 else ""
    return refusal(
        _place(file, places[0]),
        expected="a date in which one number is above 12 and so is the day",
        got=f"only such as {shown(text)}{meant}",
        hint=f"say which is first: --time-format '{day_first}' or '{month_first}'{both}",
    )


def both_orders(file: TableFile, place: int) -> UsageError:
    """Return the error for slashed dates of which no order reads all."""
    return refusal(
        _place(file, place),
        expected="dates in one order of day and month",
        got="numbers above 12 in both places",
        hint="write all of them as 2026-11-23",
    )


def serial_date(file: TableFile, place: int) -> UsageError:
    """Return the error for serial dates of a spreadsheet."""
    first = file.columns[place].full[0]
    when = datetime.fromtimestamp(float(EXCEL.of_text([first])[0]), UTC)
    return refusal(
        _place(file, place),
        expected=f"times such as {FORMS}",
        got=f"{first}, which looks like a serial date of Excel ({when:%Y-%m-%d %H:%M})",
        hint="give --time-format excel, or s if it counts seconds",
    )


def too_late(file: TableFile, place: int) -> UsageError:
    """Return the error for numbers since 1970 that would be in a far future."""
    return refusal(
        _place(file, place),
        expected="numbers since 1970, or dates without separators such as 20261123100000",
        got=file.columns[place].full[0],
        hint="say how they are written, as in --time-format '%Y%m%d%H%M%S%f'",
    )


def _place(file: TableFile, place: int) -> Place:
    return Place(file.path, column=place + 1, name=file.columns[place].name)

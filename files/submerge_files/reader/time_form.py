"""Times: how the values of a column become seconds since 1970 in UTC.

| form | example | read |
|---|---|---|
| of a time type | Parquet's timestamps | as numbers |
| ISO 8601, also an hour of one digit | `2026-11-23T10:00:00.25Z`, `2026-11-23 9:00` | as text |
| year first, with slashes; day first, with points | `2026/11/23 10:00`, `23.11.2026` | as text |
| twelve hours | `2026-11-23 2:05 PM` | as text |
| slashed dates, in one order | `03/14/2026 2:05 PM` | as text |
| a pattern of `strptime` | `--time-format '%d.%m.%y'` | as text |
| since 1970, in s, ms, us or ns | `1764000000` | as numbers |
| dates without separators | `20260302140500` | as numbers |
| serial dates of Excel | `45000.5` | as numbers |

1. A time without a zone is taken as UTC. Zones may differ from row to row.
2. Of dates such as 11/12/2026 the day or the month may be first: without an order they are NaN.
3. Times are kept to a microsecond, so the same time is the same float64 from any format.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge_client.datasets.fields import TRUTH, is_number
from submerge_client.datasets.source import Place, refusal, shown
from submerge_files.reader.formats.tables import ColumnHead, Kind, TableFile, words

MICRO = 1_000_000

_DATE = r"(\d{4}-\d\d-\d\d|\d{4}/\d\d?/\d\d?|\d\d?\.\d\d?\.\d{4})"
_SLASHED = r"\d\d?([/-])\d\d?\1\d{4}"
_CLOCK = r"\d?\d:\d\d(:\d\d([.,]\d{1,9})?)?(\s?[AaPp]\.?[Mm]\.?)?"
_REST = rf"([T ]\s*{_CLOCK}\s*(Z|UTC|[+-]\d\d:?(\d\d)?)?)?"
_TIME = re.compile(_DATE + _REST, re.ASCII)
_EITHER = re.compile(_SLASHED + _REST, re.ASCII)
_HALF = re.compile(r"(\d?\d)(:[\d:.]+)\s?([ap])\.?m\.?", re.ASCII | re.IGNORECASE)
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_ZONED = re.compile(r"[T ].*(Z|[+-]\d\d:\d\d)$")
_CLOCK_ONLY = re.compile(_CLOCK, re.ASCII)

Times = npt.NDArray[np.float64]


def is_time(field: str) -> bool:
    """Return whether a field is a date, or a date with a time of day."""
    text = field.strip()
    return _TIME.fullmatch(text) is not None or _EITHER.fullmatch(text) is not None


def is_clock(field: str) -> bool:
    """Return whether a field is a time of day alone."""
    return _CLOCK_ONLY.fullmatch(field.strip()) is not None


def is_slashed(field: str) -> bool:
    """Return whether a field is a time whose day and month may be either way round."""
    return _EITHER.fullmatch(field.strip()) is not None


def to_seconds(texts: Any) -> Times:
    """Return times (n,) in seconds since 1970; NaN for what is no time, or a slashed date."""
    parsed = _parsed(texts)
    return np.array([_one(text) for text in words(texts)]) if parsed is None else parsed


def typed_seconds(pa: Any, array: Any) -> Times:
    """Return an array of pyarrow's times in seconds since 1970, NaN for null."""
    stamps = array.cast(pa.timestamp("us", tz=getattr(array.type, "tz", None)), safe=False)
    seconds = stamps.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) / MICRO
    if array.null_count:
        seconds[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return np.asarray(seconds)


def seconds_of(when: datetime) -> float:
    """Return a time in seconds since 1970; without a zone it is in UTC."""
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    since = when - datetime(1970, 1, 1, tzinfo=UTC)
    return float((since.days * 86400 + since.seconds) * MICRO + since.microseconds) / MICRO


def to_micros(seconds: Array) -> Times:
    """Return times rounded to a microsecond.

    Examples
    --------
    >>> float(to_micros(np.array([0.1 + 0.2]))[0])
    0.3
    """
    return np.asarray(np.rint(seconds * MICRO) / MICRO)


def _parsed(texts: Any) -> Times | None:
    """Return ISO times as pyarrow reads them; None without it, or if one has another form."""
    first = str(texts[0]).strip() if len(texts) else ""
    if not _ISO.fullmatch(first):
        return None
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        return None
    zone = "UTC" if _ZONED.search(first) else None
    try:
        array = pa.array(texts, pa.string()) if isinstance(texts, list) else texts
        return typed_seconds(pa, array.cast(pa.timestamp("us", tz=zone)))
    except pa.ArrowInvalid:
        return None


def _one(text: str) -> float:
    text = text.strip()
    if not _TIME.fullmatch(text):
        return np.nan
    date, clock = re.split(r"[T ]", text, maxsplit=1) if re.search(r"[T ]", text) else (text, "")
    if "." in date:
        day, month, year = date.split(".")
        date = f"{year}-{month:0>2}-{day:0>2}"
    elif "/" in date:
        year, month, day = date.split("/")
        date = f"{year}-{month:0>2}-{day:0>2}"
    clock = _HALF.sub(_whole_day, clock.strip().replace(",", "."))
    clock = clock.replace("UTC", "Z").replace(" ", "")
    if clock[1:2] == ":":
        clock = f"0{clock}"
    try:
        return seconds_of(datetime.fromisoformat(f"{date}T{clock}" if clock else date))
    except ValueError:
        return np.nan


def _whole_day(clock: re.Match[str]) -> str:
    """Return a time of day by twelve hours as one by 24; an hour of 13 or more stays wrong."""
    hour = int(clock[1])
    if not 1 <= hour <= 12:
        return "99"
    return f"{hour % 12 + 12 * (clock[3] in 'pP'):02}{clock[2]}"


_NUMBERS = re.compile(r"\s*(\d\d?)[/-](\d\d?)[/-](\d{4})", re.ASCII)

DAY_FIRST, MONTH_FIRST = True, False


def orders_of(fields: Iterable[str]) -> frozenset[bool]:
    """Return the orders in which every slashed date of some fields is a date.

    Examples
    --------
    >>> orders_of(["03/02/2026", "03/14/2026"]) == {MONTH_FIRST}
    True
    """
    largest = [0, 0]
    for field in fields:
        if found := _NUMBERS.match(field):
            largest = [max(largest[0], int(found[1])), max(largest[1], int(found[2]))]
    return frozenset(
        order
        for order, month in ((DAY_FIRST, largest[1]), (MONTH_FIRST, largest[0]))
        if month <= 12
    )


def slashed_seconds(texts: Any, order: bool) -> Times:
    """Return times (n,) in seconds since 1970; NaN for what is no time in this order."""
    return to_seconds([_year_first(text, order) for text in words(texts)])


def patterns_of(field: str) -> tuple[str, str]:
    """Return how `strptime` would read a slashed date: with the day first, and the month first.

    Examples
    --------
    >>> patterns_of("03/02/2026 2:05 PM")
    ('%d/%m/%Y %I:%M %p', '%m/%d/%Y %I:%M %p')
    """
    clock = re.sub(r"^\S+", "", re.sub(r"(?<=\d)T(?=\d)", " ", field.strip()), count=1)
    half = re.search(r"[AaPp]\.?[Mm]", clock)
    hours = "%I" if half else "%H"
    clock = re.sub(r"\d+:\d+", f"{hours}:%M", clock, count=1)
    clock = re.sub(r"%M:\d+", "%M:%S", clock)
    clock = re.sub(r"%S[.,]\d+", "%S.%f", clock)
    clock = re.sub(r"[AaPp]\.?[Mm]\.?", "%p", clock)
    clock = re.sub("UTC$", "%Z", re.sub(r"Z$|[+-]\d\d:?(\d\d)?$", "%z", clock))
    mark = "-" if "-" in field[:3] else "/"
    return f"%d{mark}%m{mark}%Y{clock}", f"%m{mark}%d{mark}%Y{clock}"


def readings_of(field: str) -> tuple[str, str] | None:
    """Return the two dates that a field may be, for people; None if it is one date alone."""
    found = _NUMBERS.match(field)
    if not is_slashed(field) or found is None or orders_of([field]) != {True, False}:
        return None
    one, other, year = int(found[1]), int(found[2]), int(found[3])
    if not (one and other):
        return None
    days = datetime(year or 1, other, one), datetime(year or 1, one, other)
    return f"{days[0]:%d %B}", f"{days[1]:%d %B}"


def _year_first(field: str, order: bool) -> str:
    found = _NUMBERS.match(field)
    if found is None:
        return field
    day, month = (found[1], found[2]) if order == DAY_FIRST else (found[2], found[1])
    return f"{found[3]}-{month:0>2}-{day:0>2}{field[found.end() :]}"


UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units of numbers since 1970, and how many of each are a second."""

COMPACT_DIGITS = (14, 12, 10, 8)
"""Digits of dates without separators: to the second, minute, hour or day."""

YEARS = (1970, 2100)
"""From, to: years that dates without separators are read as."""

_UTC = re.compile(r"\b(UTC|GMT)\b")

EXCEL_1970, DAY_S = 25569, 86400
"""The serial date of 1 January 1970."""


class TimeForm(NamedTuple):
    """How values (n,) become seconds since 1970, NaN for no time: from numbers or text."""

    numeric: bool
    seconds: Callable[[Any], Array]
    typed: bool = False

    def of_text(self, texts: list[str] | tuple[str, ...]) -> Array:
        """Return times (n,) of values as they stand in a file; NaN for what is no time."""
        if not self.numeric:
            return self.seconds(list(texts))
        numbers = np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            try:
                numbers[i] = float(text)
            except ValueError:
                continue
        return self.seconds(numbers)


def since_1970(scale: float) -> TimeForm:
    """Return the form of numbers since 1970, so many of which are a second."""
    return TimeForm(True, lambda values: to_micros(values / scale))


def slashed(order: bool) -> TimeForm:
    """Return the form of slashed dates in one order of day and month."""
    return TimeForm(False, partial(slashed_seconds, order=order))


def compact_seconds(values: Array) -> Array:
    """Return times (n,) of dates without separators; NaN for numbers that are none.

    Examples
    --------
    >>> compact_seconds(np.array([19700102.0, 19700101000005.0, 19700132.0]))
    array([8.64e+04, 5.00e+00,      nan])
    """
    seconds = np.full(len(values), np.nan)
    whole = np.isfinite(values) & (values == np.floor(values))
    for digits in COMPACT_DIGITS:
        low, high = (year * 10 ** (digits - 4) for year in YEARS)
        which = np.flatnonzero(whole & (values >= low) & (values < high))
        parts = values[which].astype(np.int64) * 10 ** (14 - digits)
        clock, date = parts % 10**6, parts // 10**6
        if digits == 8:
            clock = np.zeros_like(clock)
        day, month, year = date % 100, date // 100 % 100, date // 10_000
        months = (year - 1970) * 12 + month - 1
        midnight = months.astype("M8[M]").astype("M8[D]") + (day - 1)
        right = (month >= 1) & (month <= 12) & (day >= 1)
        right &= midnight.astype("M8[M]") == months.astype("M8[M]")
        hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
        right &= (hour < 24) & (minute < 60) & (second < 60)
        found = midnight.astype(np.int64) * DAY_S + hour * 3600 + minute * 60 + second
        seconds[which] = np.where(right, found, np.nan)
    return seconds


def _excel_seconds(values: Array) -> Array:
    # A serial date has a millisecond, and not much more.
    return np.asarray(np.rint((values - EXCEL_1970) * DAY_S * 1e3) / 1e3)


def _parsed_by(pattern: str, texts: Any) -> Array:
    return np.array([_by_pattern(pattern, text) for text in words(texts)])


def _by_pattern(pattern: str, text: str) -> float:
    # strptime takes the zone of the machine that it runs on, too, and forgets which it was.
    if "%Z" in pattern and not _UTC.search(text):
        return np.nan
    try:
        return seconds_of(datetime.strptime(text.strip(), pattern))
    except ValueError:
        return np.nan


def parsed_by(option: str) -> TimeForm:
    """Return the form that a person names: a unit, "excel", or a pattern of `strptime`."""
    if option in UNITS:
        return since_1970(UNITS[option])
    if option == "excel":
        return EXCEL
    if "%" not in option:
        raise UsageError(
            f"--time-format is a pattern such as '%d/%m/%Y %H:%M', one of {', '.join(UNITS)}, or"
            f" excel, got {option!r}: name what the column holds"
        )
    now = datetime(2026, 11, 23, 10, tzinfo=UTC)
    try:
        datetime.strptime(now.strftime(option), option)
    except ValueError as error:
        raise UsageError(
            f"expected --time-format as of strptime, got {option!r} ({error}):"
            " write such as '%d/%m/%Y %H:%M'"
        ) from error
    if not any(mark in option for mark in ("%Y", "%y", "%c", "%x", "%G", "%s")):
        raise UsageError(
            f"expected --time-format with a year (%Y or %y), got {option!r}: give the whole date;"
            " --time DATE+CLOCK reads two columns as one"
        )
    return TimeForm(False, partial(_parsed_by, option))


TYPED = TimeForm(True, lambda values: values, typed=True)
TEXT = TimeForm(False, to_seconds)
COMPACT = TimeForm(True, compact_seconds)
EXCEL = TimeForm(True, _excel_seconds)


_WORDS = frozenset("time times timestamp timestamps date datetime ts epoch unixtime utc".split())  # noqa: SIM905
_ELAPSED = frozenset("time times timestamp ts seconds elapsed".split())  # noqa: SIM905

SCALES = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e3), (1e14, 1e17, 1e6), (1e17, 1e20, 1e9))
"""From, to, how many a second: times since 1970 from 1973 on, in s, ms, µs and ns."""

SERIAL = (20_000, 80_000)
"""Serial dates of Excel, from 1954 to 2119."""


def _normal(name: str) -> str:
    return " ".join(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def places_called_time(file: TableFile) -> Iterator[int]:
    """Yield the places of columns that are called time."""
    return (i for i, column in enumerate(file.columns) if is_called_time(column))


def is_called_time(column: ColumnHead) -> bool:
    """Return whether a word of a column's name is one for time."""
    words = _normal(column.name).split()
    return not _WORDS.isdisjoint(words) or "".join(words) in _WORDS


def values_of(column: ColumnHead) -> Array:
    """Return the numbers (n,) among a column's first values."""
    numbers = (value for value in column.full if is_number(value) and value not in TRUTH)
    return np.array([float(value) for value in numbers])


def scale_of(values: Array) -> float | None:
    """Return how many of a column's units are a second, if they are times since 1970."""
    for low, high, scale in SCALES:
        if len(values) and low <= values.min() and values.max() < high:
            return scale
    return None


def is_compact(values: Array) -> bool:
    """Return whether numbers are dates without separators."""
    return len(values) > 0 and bool(np.isfinite(compact_seconds(values)).all())


def is_serial(column: ColumnHead, values: Array) -> bool:
    """Return whether numbers look like serial dates of Excel."""
    low, high = SERIAL
    if not len(values) or values.min() < low or values.max() >= high:
        return False
    if _normal(column.name) not in _ELAPSED:
        return True
    # Seconds from a start are whole numbers, or steps of more than a fraction of a day.
    return bool((values % 1 != 0).any()) and bool((np.abs(np.diff(values)) < 0.5).all())


def is_elapsed(column: ColumnHead, values: Array) -> bool:
    """Return whether numbers look like seconds from a start."""
    rises = len(values) > 1 and bool((np.diff(values) > 0).all())
    return rises and _normal(column.name) in _ELAPSED


def going_on(different: Sequence[int]) -> list[int]:
    """Return which columns of times go on, by how many different times each has, in their order."""
    return [i for i, n in enumerate(different) if 2 * n >= max(different)]


def shared_times(what: str, rows: int, times: int, most: int) -> tuple[str, ...]:
    """Return a note if rows share their times: so many of one machine have so many, `most` one."""
    if rows < 2 * times or most < 2:
        return ()
    said = f"{what}{rows:,} rows have {times:,} time{'s' * (times > 1)}, {most:,} of them one"
    lost = "write them in full, or name another column (--time, DATE+CLOCK for two)"
    coarse = "if clocks are so coarse, times of alarms are no more exact"
    return (f"{said}: if times have lost digits or hours, {lost}; {coarse}",)


FORMS = "2026-11-23 10:00, 2026-11-23T10:00:00Z, 23.11.2026 10:00:00 or numbers since 1970"

OTHERWISE = "name another column (--time), or read none (--time none)"

PATTERN = "say how they are written, as in --time-format '%d/%m/%y %H:%M'"


def check_passed_over(file: TableFile, called_time: Iterable[int], pattern: str) -> None:
    """Refuse a column that is called time and holds text with digits: times that we cannot read."""
    # If a `pattern` was asked for, a column without digits is refused, too.
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
    """Return the error for a column without times."""
    column = file.columns[place]
    return refusal(
        _place(file, place),
        expected=f"times ({pattern})" if pattern else f"times such as {FORMS}",
        got=shown(column.full[0]) if column.full else "no value",
        hint=f"correct --time-format, or {OTHERWISE}" if pattern else f"{PATTERN}, {OTHERWISE}",
    )


def no_time(file: TableFile, place: int, row: int, text: str) -> UsageError:
    """Return the error for a row without a time."""
    return refusal(
        f"{file.path}, {file.at(row)}, column {place + 1} ({file.columns[place].name})",
        expected=f"a time such as {FORMS}" if text else "a time in each row",
        got=shown(text) if text else "none",
        hint="write it as the others, or leave the row out",
    )


def no_text(file: TableFile, place: int) -> UsageError:
    """Return the error for a date or a time of day of a type, which are read as one from text."""
    return refusal(
        _place(file, place),
        expected="text, to read dates and times of day as one",
        got="a column of a type of its own",
        hint="write one column of timestamps, or both as text",
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

"""Times: how the values of a column become seconds since 1970 in UTC (docs/histories.md).

They are kept to a microsecond, so the same time is the same float64 from any format.
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
from submerge_client.datasets.fields import AGAIN, TRUTH, is_number
from submerge_client.datasets.source import refusal, shown
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
        array = pa.array(texts, pa.string()) if isinstance(texts, list) else texts.cast(pa.string())
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
    """Return the orders in which every slashed date of some fields is a date."""
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


_ORDERS = ["d m Y", "m d Y", "Y m d", "d m y", "m d y", "y m d", "d b Y", "d b y", "d B Y", "b d Y"]
_DATES = (
    *(mark.join(f"%{part}" for part in order.split()) for mark in "/-. " for order in _ORDERS),
    *("%Y%m%d", "%b %d, %Y", "%Y-%j", "%Y/%j", "%a, %d %b %Y", "%d%b%Y", "%G-W%V-%u"),
)
"""How `strptime` may read dates; with the day first before the month first."""

_WHOLE = (
    *("%a %b %d %H:%M:%S %Y", "%Y年%m月%d日 %H:%M:%S", "%Y年%m月%d日 %H:%M"),
    *(f"{day} {clock}" for day in ("%d.%m.%Y", "%Y-%m-%d") for clock in ("%H.%M.%S", "%H.%M")),
    *("%Y-%m-%d-%H.%M.%S.%f", "%Y-%m-%d %Hh%M", "%d/%m/%Y %Hh%M"),
    *(f"%H:%M:%S {day}" for day in ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y-%m-%d")),
)
_ZONE = re.compile(r":\d\d\s*\[?(?!UTC|GMT|[AaPp][Mm])([A-Za-z]{3,}(/[A-Za-z_]+)*)\]?$")

_AFTER_DATE = re.compile(r"[T :_]\d?\d:\d\d.*|(?<=\d{8})[T _](\d{6}|\d{4})(Z|[+-]\d\d:?\d\d)?$")
_DIGITS = {"%Y%m%d%H%M%S%f": 17} | {
    date + clock: 8 - 2 * ("%y" in date) + len(clock)
    for date in ("%d%m%Y", "%m%d%Y", "%y%m%d", "%d%m%y", "%m%d%y")
    for clock in ("%H%M%S", "%H%M")
}
"""Dates in digits alone that are no `COMPACT`, and how many digits they have."""

YEAR_2030, FEWEST_DATES = 1.9e9, 100
"""Fewer numbers that are times since 1970 before that year may be such dates by chance."""


_NOON = r"[AaPp]\.?\s?[Mm]\.?"


def patterns_of(fields: Sequence[str]) -> list[str]:
    """Return how `strptime` would read all of some dates with times of day."""
    found = _AFTER_DATE.search(fields[0].strip()) if fields else None
    clock = found[0] if found else ""
    if found and found[1]:
        clock = clock[0] + ("%H%M" if len(found[1]) == 4 else "%H%M%S") + (found[2] or "")
    hours = "%I" if re.search(_NOON, clock) else "%H"
    clock = re.sub(r"\d+:\d+", f"{hours}:%M", clock, count=1)
    clock = re.sub(r"%M:\d+", "%M:%S", clock)
    clock = re.sub(r"%S[.,]\d+", "%S.%f", clock)
    clock = re.sub(_NOON, "%p", clock)
    clock = re.sub("UTC$", "%Z", re.sub(r"Z$|[+-]\d\d:?(\d\d)?(?=$|\[)", "%z", clock))
    forms = (*(date + clock for date in _DATES), *_WHOLE)
    return [form for form in forms if np.isfinite(_parsed_by(form, list(fields))).all()]


def patterns_of_digits(column: ColumnHead, values: Array) -> list[str]:
    """Return how `strptime` would read numbers that are all dates; none if that is by chance."""
    fields = column.full
    lengths = {*map(len, fields)}
    seconds = values.max() / (scale_of(values) or 1.0)
    if FROM_1990 <= seconds < YEAR_2030 and len(fields) < FEWEST_DATES and fields[0][0] != "0":
        return []
    return [
        form
        for form, digits in _DIGITS.items()
        if lengths == {digits}
        if all(FROM_1990 <= _by_pattern(form, field) <= TO_2060 for field in fields)
    ]


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

YEARS = (1970, 2100)  # from, to: years that dates without separators are read as

_UTC = re.compile(r"\b(UTC|GMT)\b")

EXCEL_1970, DAY_S = 25569, 86400  # the serial date of 1 January 1970


class TimeForm(NamedTuple):
    """How values (n,) become seconds since 1970, NaN for no time: from numbers or text."""

    numeric: bool
    seconds: Callable[[Any], Array]
    typed: bool = False

    def of_text(self, texts: list[str] | tuple[str, ...]) -> Array:
        """Return times (n,) of values as they stand in a file; NaN for what is no time."""
        if not self.numeric:
            return self.seconds(list(texts))
        known = (is_number(text) and text not in TRUTH for text in texts)
        numbers = [float(x) if fine else np.nan for x, fine in zip(texts, known, strict=True)]
        return self.seconds(np.array(numbers))


def since_1970(scale: float) -> TimeForm:
    """Return the form of numbers since 1970, so many of which are a second."""
    return TimeForm(True, partial(_scaled_seconds, scale))


def _scaled_seconds(scale: float, values: Array) -> Array:
    # To a microsecond.
    return np.asarray(np.rint(values / scale * MICRO) / MICRO)


def slashed(order: bool) -> TimeForm:
    """Return the form of slashed dates in one order of day and month."""
    return TimeForm(False, partial(slashed_seconds, order=order))


def compact_seconds(values: Array) -> Array:
    """Return times (n,) of dates without separators; NaN for numbers that are none."""
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


TYPED = TimeForm(True, np.asarray, typed=True)
TEXT = TimeForm(False, to_seconds)
COMPACT = TimeForm(True, compact_seconds)
EXCEL = TimeForm(True, _excel_seconds)


_WORDS = frozenset("time times timestamp timestamps date datetime ts epoch unixtime utc".split())  # noqa: SIM905
_OTHER_WORDS = frozenset("filetime datenum julian mjd decyear decimalyear".split())  # noqa: SIM905
_ELAPSED = frozenset("time times timestamp ts seconds elapsed".split())  # noqa: SIM905

SCALES = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e3), (1e14, 1e17, 1e6), (1e17, 1e20, 1e9))
"""From, to, how many a second: times since 1970 from 1973 on, in s, ms, µs and ns."""


class Epoch(NamedTuple):
    """Numbers that count time, but not as those since 1970: which they are then, and how fast."""

    name: str
    at_1970: float
    a_second: float

    def seconds(self, value: float) -> float:
        """Return a time in seconds since 1970."""
        return (value - self.at_1970) / self.a_second


_DAY = 1 / DAY_S
EPOCHS = (
    Epoch("a serial date of Excel", EXCEL_1970, _DAY),
    Epoch("one that begins in 1904", 24107, _DAY),
    Epoch("a modified Julian day", 40587, _DAY),
    Epoch("a datenum of MATLAB", 719529, _DAY),
    Epoch("a Julian day", 2440587.5, _DAY),
    Epoch("a decimal year", 1970, _DAY / 365.2425),
    Epoch("days since 1970", 0, _DAY),
    Epoch("seconds since 1904", 2082844800, 1.0),
    Epoch("seconds since 1900", 2208988800, 1.0),
    Epoch("microseconds since 1601", 11644473600e6, 1e6),
    Epoch("a FILETIME of Windows", 116444736e9, 1e7),
    Epoch("ticks of .NET", 621355968e9, 1e7),
)

FROM_1990, TO_2060 = 631152000.0, 2840140800.0
"""When readings are recorded. Dates of Excel may be older: none else looks like them then."""


def _normal(name: str) -> str:
    return " ".join(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))


def places_called_time(file: TableFile) -> Iterator[int]:
    """Yield the places of columns that are called time."""
    return (i for i, column in enumerate(file.columns) if is_called_time(column))


def is_called_time(column: ColumnHead) -> bool:
    """Return whether a word of a column's name is one for time."""
    words = _normal(column.name).split()
    return not {*words, "".join(words)}.isdisjoint(_WORDS | _OTHER_WORDS)


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


def epochs_of(column: ColumnHead, values: Array) -> list[Epoch]:
    """Return as what the numbers of a column look like times that do not count from 1970."""
    # Seconds from a start are whole numbers, or steps of more than a fraction of a day.
    steps = bool((values % 1 == 0).all()) or bool((np.abs(np.diff(values)) >= 0.5).any())
    elapsed = steps and _normal(column.name) in _ELAPSED
    return [
        epoch
        for epoch in EPOCHS
        if len(values) and not (elapsed and epoch.a_second < 1)
        if epoch.seconds(values.min()) >= FROM_1990 * (epoch.at_1970 != EXCEL_1970)
        if epoch.seconds(values.max()) <= TO_2060
    ]


def is_elapsed(column: ColumnHead, values: Array) -> bool:
    """Return whether numbers look like seconds from a start."""
    rises = len(values) > 1 and bool((np.diff(values) > 0).all())
    return rises and _normal(column.name) in _ELAPSED


def going_on(different: Sequence[int]) -> list[int]:
    """Return which columns of times go on, by how many different times each has, in their order."""
    return [i for i, n in enumerate(different) if 2 * n >= max(different)]


MACHINES = "if rows are of several machines, name the column that says so (--node-by)"


def shared_times(what: str, rows: int, times: int, most: int) -> tuple[str, ...]:
    """Return a note if rows share their times: so many of one machine have so many, `most` one."""
    if rows < 2 * times or most < 2:
        return ()
    said = f"{what}{rows:,} rows have {times:,} time{'s' * (times > 1)}, {most:,} of them one"
    lost = "write them in full, or name another column (--time, DATE+CLOCK for two)"
    coarse = "if clocks are so coarse, times of alarms are no more exact"
    return (f"{said}: if times have lost digits or hours, {lost}; {MACHINES}; {coarse}",)


FORMS = "2026-11-23 10:00, 2026-11-23T10:00:00Z, 23.11.2026 10:00:00 or numbers since 1970"

OTHERWISE = "name another column (--time), or read none (--time none)"


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
            file.place(place),
            expected="text or numbers, to read them by --time-format",
            got="a column of a time type",
            hint="leave --time-format out",
        )
    if column.full and not np.isfinite(form.of_text(column.full)).any():
        raise not_times(file, place, "as --time-format says")


def not_times(file: TableFile, place: int, pattern: str = "") -> UsageError:
    """Return the error for a column without times."""
    column = file.columns[place]
    first = "".join(column.full[:1])
    forms = [*patterns_of(column.full), *_units(values_of(column))] if first else []
    how = "write them as one of those"
    if (zone := _ZONE.search(first)) and "%z" not in "".join(forms):
        how = f"write them with an offset such as +01:00, or UTC, in place of {zone[1]}"
    elif forms:
        how = f"say how they are written, as in --time-format {_listed(forms)}"
    elif is_clock(first):
        how = "write each behind its date, or name both columns (--time DATE+CLOCK)"
    return refusal(
        file.place(place),
        expected=f"times ({pattern})" if pattern else f"times such as {FORMS}",
        got=shown(column.full[0]) if column.full else "no value",
        hint=f"correct --time-format, or {OTHERWISE}" if pattern else f"{how}, {OTHERWISE}",
    )


def _units(values: Array) -> list[str]:
    """Return the unit of numbers that are times since 1970, by their size."""
    return [unit for unit, many in UNITS.items() if many == scale_of(values)]


def no_time(file: TableFile, place: int, row: int, text: str) -> UsageError:
    """Return the error for a row without a time."""
    name = file.columns[place].name
    return refusal(
        f"{file.path}, {file.at(row)}, column {place + 1} ({name})",
        expected=f"a time such as {FORMS}" if text else "a time in each row",
        got=shown(text) if text else "none",
        hint=AGAIN if text == name else "write it as the others, or leave the row out",
    )


def either_order(file: TableFile, places: Sequence[int], text: str) -> UsageError:
    """Return the error for slashed dates that may all be read in both orders."""
    patterns = patterns_of([text])
    days = dict.fromkeys(f"{datetime.strptime(text.strip(), each):%d %B}" for each in patterns)
    meant = f" ({' or '.join(days)})" if len(days) > 1 else ""
    names = "+".join(file.columns[place].name for place in places)
    both = f" (with --time {shlex.quote(names)})" if len(places) > 1 else ""
    return refusal(
        file.place(places[0]),
        expected="a date in which one number is above 12 and so is the day",
        got=f"only such as {shown(text)}{meant}",
        hint=f"say which is first: --time-format {_listed(patterns)}{both}",
    )


def other_epoch(
    file: TableFile, place: int, epochs: Sequence[Epoch], patterns: Sequence[str]
) -> UsageError:
    """Return the error for numbers that count time, but not since 1970, or are dates."""
    values = values_of(file.columns[place])
    times = ((each.name, round(each.seconds(float(values[0])))) for each in epochs)
    dates = [f"{name} ({datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M})" for name, at in times]
    looks = f", which looks like {' or '.join(dates)}" if dates else ""
    (unit,) = _units(values) or ["s"]
    excel = "excel, or " * any(epoch.at_1970 == EXCEL_1970 for epoch in epochs)
    form = _listed(patterns) if patterns else f"{excel}{unit} if it counts {unit}"
    return refusal(
        file.place(place),
        expected=f"times such as {FORMS}",
        got=f"{file.columns[place].full[0]}{looks}",
        hint=f"convert it, or give --time-format {form}",
    )


def _listed(patterns: Sequence[str]) -> str:
    return " or ".join(f"'{pattern}'" if "%" in pattern else pattern for pattern in patterns)

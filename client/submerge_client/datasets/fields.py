"""Fields of text: which stand for a number, for a gap, or for nearly a number, and its cure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Sequence

from submerge_client.datasets.source import Place, refusal, shown

MISSING = frozenset({"", "NA", "N/A", "n/a", "nan", "NaN", "NULL", "null", "None", "?", "-"})

TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}

PLAIN = re.compile(r"[0-9eE.+\-NaAULulon/?]*")
"""The characters of numbers and missing values: no `_`, no inf, ASCII digits."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan", re.IGNORECASE)
_DATED = re.compile(r"\d{4}([-/])\d\d?\1\d\d?|\d\d?([-/.])\d\d?\2\d{4}", re.ASCII)

WITH_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
"""1,234 is one number with a decimal comma, and another with digits in groups."""

_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(\d\d?|\d{4,})", re.ASCII)
_GROUPS = re.compile(r"[+-]?\d{1,3}(\.\d{3}){2,}", re.ASCII)
_BELOW_1000 = re.compile(r"[+-]?[1-9]\d\d", re.ASCII)
"""1.025 after 980 is a thousand, since one and a bit would have been 980.000 before."""

FEWEST = 10
"""Numbers of a column that show it."""

ANOTHER_MARK = "if another mark is between its columns, write commas"
AGAIN = "if these are the headings again, leave that line out"

_SIGNED = r"[+-]?\s*"
_CURES = (
    (
        re.compile(_SIGNED + r"\d{1,3}(,\d{2,3})*,\d{3}", re.ASCII),
        "a decimal comma, or digits in groups: write a decimal point and no groups",
    ),
    (WITH_COMMA, "a decimal comma: write decimal points"),
    (
        re.compile(_SIGNED + r"\d{1,3}([,.' \u00a0\u202f]\d{3})+([.,]\d+)?", re.ASCII),
        "digits in groups: write the number without thousands separators",
    ),
    (re.compile("[\u2212\u2013][0-9.,]+"), "another minus sign than -: write that one"),
    (re.compile(r"\([0-9.,]+\)"), "brackets of a negative number: write a minus sign"),
    (re.compile("[+-]?[0-9.]+[dD][+-]?[0-9]+"), "D before its exponent, as Fortran: write E"),
)
_UNIT = re.compile(NUMBER.pattern + r"\s*([A-Za-z°%‰µμΩ][^\d,;]{0,9})", re.ASCII | re.IGNORECASE)


def is_missing(field: str) -> bool:
    text = field.strip()
    return text in MISSING or _NAN.fullmatch(text) is not None


def is_number(field: str) -> bool:
    """Return whether a field stands for a number: infinity, true and false are some."""
    text = field.strip()
    return text in TRUTH or any(p.fullmatch(text) for p in (NUMBER, _INFINITE))


def is_dated(field: str) -> bool:
    """Return whether a field begins with a date, as times do."""
    return _DATED.match(field.strip()) is not None


def is_value(field: str) -> bool:
    """Return whether a field is none of a heading: a number, a gap or a time."""
    return is_missing(field) or is_number(field) or is_dated(field)


def has_decimal_comma(columns: Iterable[Sequence[str]]) -> bool:
    """Return whether the numbers in some columns have commas for points, without a doubt."""
    sure = False
    for fields in columns:
        commas = [field for field in fields if WITH_COMMA.fullmatch(field)]
        plain = [field for field in fields if NUMBER.fullmatch(field)]
        if any("." in field for field in plain):
            return False
        # Three decimals throughout are no groups: some number would be below a thousand.
        throughout = len(commas) >= FEWEST and not plain
        sure |= throughout or not all(map(_EITHER.fullmatch, commas))
    return sure


def in_groups(columns: Iterable[Sequence[str]]) -> tuple[str, bool]:
    """Return a number whose point may group its digits, and whether other fields show it."""
    found, sure = "", False
    for fields in columns:
        plain = [field for field in fields if NUMBER.fullmatch(field)]
        points = [field for field in plain if "." in field]
        if not all(map(_GROUPED.fullmatch, points)):
            return "", False
        found = found or "".join(points[:1])
        sure |= bool(points) and len({*filter(_BELOW_1000.fullmatch, plain)}) > 1
        sure |= any(_GROUPS.fullmatch(f) or _DECIMAL_COMMA.fullmatch(f) for f in fields)
    return found, bool(found) and sure


def pointed(field: str) -> str:
    """Return a field with a point for its decimal comma, if it has one."""
    text = field.strip()
    return text.replace(",", ".") if WITH_COMMA.fullmatch(text) else field


def cure(field: str) -> str:
    """Return what a field that is nearly a number has, and what to do; or an empty string."""
    text = field.strip()
    for pattern, advice in _CURES:
        if pattern.fullmatch(text):
            return advice
    if unit(text):
        return f"a unit ({unit(text)}): write the number alone, and the unit in the heading"
    return ""


def unit(field: str) -> str:
    """Return the unit that stands behind a number, as in "12 C", or an empty string."""
    found = _UNIT.fullmatch(field.strip())
    return found[3].strip() if found else ""


def number(field: str, place: Place, *, comma: bool = False) -> float:
    """Return a field's number, NaN for a gap, or refuse it with its place."""
    text = field.strip()
    if is_missing(text):
        return math.nan
    if text in TRUTH:
        return TRUTH[text]
    plain = pointed(text) if comma else text
    if NUMBER.fullmatch(plain) and not (comma and "." in text):
        if math.isfinite(value := float(plain)):
            return value
    elif comma and NUMBER.fullmatch(text):
        raise refusal(
            place,
            expected="a decimal comma, as in the first rows",
            got=shown(text),
            hint="write all numbers with one mark",
        )
    if is_number(plain):
        hint = "infinity is no reading: write NA for a missing value"
        raise refusal(place, expected="a finite number", got=shown(text), hint=hint)
    gaps = f"make gaps of it (--na {shlex.quote(text)}, of fit, detect and score)"
    hint = f"leave the column out (--skip), or the row if it is a total, or {gaps}"
    if advice := cure(text):
        hint = f"it has {advice}"
    raise refusal(
        place, expected="a number", got=shown(text), hint=AGAIN if text == place.name else hint
    )

"""Fields: what one field of a text file stands for, and what is wrong with one that is no number.

1. A field of `MISSING`, or nan, is a gap. Infinity is refused.
2. True and false, in the spellings of `TRUTH`, are 1 and 0, as in Parquet.
3. Numbers have a decimal point, no groups of digits and no unit. `cure` names what to do about the
   usual others.
"""

from __future__ import annotations

import math
import re

from submerge_client.datasets.source import Place, refusal, shown

MISSING = frozenset({"", "NA", "N/A", "n/a", "nan", "NaN", "NULL", "null", "None", "?", "-"})

TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}

PLAIN = re.compile(r"[0-9eE.+\-NaAULulon/?]*")
"""The characters of numbers and missing values: no `_`, no inf, ASCII digits."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan", re.IGNORECASE)

_SIGNED = r"[+-]?\s*"
_CURES = (
    (
        re.compile(_SIGNED + r"\d{1,3}(,\d{3})+", re.ASCII),
        "a decimal comma, or digits in groups: write a decimal point and no groups",
    ),
    (
        re.compile(_SIGNED + r"(\d+,\d*|,\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE),
        "a decimal comma: write decimal points",
    ),
    (
        re.compile(_SIGNED + r"\d{1,3}([,.' \u00a0\u202f]\d{3})+([.,]\d+)?", re.ASCII),
        "digits in groups: write the number without thousands separators",
    ),
)
_UNIT = re.compile(NUMBER.pattern + r"\s*([A-Za-z°%‰µμΩ][^\d,;]{0,9})", re.ASCII | re.IGNORECASE)


def is_missing(field: str) -> bool:
    """Return whether a field stands for a gap."""
    text = field.strip()
    return text in MISSING or _NAN.fullmatch(text) is not None


def is_number(field: str) -> bool:
    """Return whether a field stands for a number: infinity, true and false are some."""
    text = field.strip()
    return text in TRUTH or any(p.fullmatch(text) for p in (NUMBER, _INFINITE))


def is_value(field: str) -> bool:
    """Return whether a field stands for a number, missing and infinite ones included."""
    return is_missing(field) or is_number(field)


def cure(field: str) -> str:
    """Return what a field that is nearly a number has, and what to do; or an empty string.

    Examples
    --------
    >>> cure("12,5")
    'a decimal comma: write decimal points'
    >>> cure("pump")
    ''
    """
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


def number(field: str, place: Place) -> float:
    """Return a field's number, NaN for a gap, or refuse it with its place."""
    text = field.strip()
    if is_missing(text):
        return math.nan
    if text in TRUTH:
        return TRUTH[text]
    if NUMBER.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    if is_number(text):
        raise refusal(
            place,
            expected="a finite number",
            got=shown(text),
            hint="infinity is no reading: write NA for a missing value",
        )
    advice = cure(text)
    raise refusal(
        place,
        expected="a number",
        got=shown(text),
        hint=f"it has {advice}"
        if advice
        else "leave the column out (--skip), or write NA for a missing value",
    )

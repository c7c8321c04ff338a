r"""Influx line protocol: a metric in a line, read and written.

    measurement,tag=value,other=value field=1.5,count=2i,on=true,text="a b" 1767225600000000000

1. White space ends the series and the fields. Where it belongs to a name, a backslash stands before
   it, as before `,` and, in tags and fields, `=`. A backslash before another character is itself.
   In texts, `\"` and `\\` stand for `"` and `\`.
2. A value is a decimal number, an integer that ends in `i` or `u` (20 digits at most), a boolean,
   or a text in double quotes. The time is an integer of 64 bits, in a unit that the line does not
   say; it may be left out.
3. A line may end in CR. Empty lines, and lines that begin with `#`, are no metric. A line with
   bytes that are no UTF-8, or control characters among its names, is refused (`MalformedLine`).

One regular expression without backtracking checks a line, so that its cost is linear.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from submerge import PeerError

LATEST = 2**63 - 1  # the last time that fits 64 bits

Value = float | bool | str

_BLANK, _BAD = r"[ \t\v\f]", r"\t\n\v\f\r"
_NAME = rf"(?:[^ {_BAD},\\]++|\\[^{_BAD}])++"
_KEY = rf"(?:[^ {_BAD},=\\]++|\\[^{_BAD}])++"
# Of two backslashes in a tag, the second one may still escape what follows.
_TAG = rf"(?:[^ {_BAD},=\\]++|\\[^{_BAD}\\]|\\(?=\\))++"
_FLOAT = r"-?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_VALUE = (
    r'"(?:[^"\\\n]++|\\.)*+"|-?[0-9]{1,20}i|[0-9]{1,20}u|'
    rf"{_FLOAT}|[tT]rue|TRUE|[fF]alse|FALSE|[tTfF]"
)
_FIELD = rf"{_KEY}=(?:{_VALUE})"
_LINE = re.compile(
    rf"{_BLANK}*+(?!#)({_NAME}(?:,{_TAG}={_TAG})*+){_BLANK}++({_FIELD}(?:,{_FIELD})*+)"
    rf"(?:{_BLANK}++(-?[0-9]{{1,19}}))?{_BLANK}*+"
)
_FIELDS = re.compile(rf"({_KEY})=({_VALUE})")
_TAGS = re.compile(rf",({_TAG})=({_TAG})")
_MEASUREMENT = re.compile(_NAME)
_ESCAPED_NAME, _ESCAPED_KEY = re.compile(r"\\([, ])"), re.compile(r"\\([,= ])")
_ESCAPED_TEXT = re.compile(r'\\(["\\])')


class MalformedLine(PeerError):
    """A line that is no metric."""


class ParsedLine(NamedTuple):
    measurement: str
    tags: dict[str, str]
    fields: dict[str, Value]
    time: int | None


class Cut(NamedTuple):
    """The parts of a line that was checked."""

    series: str
    fields: str
    time: int | None


def cut(line: bytes) -> Cut | None:
    """Check a line, and return its parts; None if there is no metric in it."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise MalformedLine(f"expected UTF-8, got other bytes: {error.reason}") from None
    if text.endswith("\r"):
        text = text[:-1]
    found = _LINE.fullmatch(text)
    if found is None:
        if text.lstrip(" \t\v\f")[:1] in ("", "#"):
            return None
        raise MalformedLine(f"expected measurement,tag=value field=1.5 time, got {text[:60]!r}")
    series, fields, time = found.groups()
    if time is None:
        return Cut(series, fields, None)
    if abs(at := int(time)) > LATEST:
        raise MalformedLine(f"expected a time of 64 bits, got {time}")
    return Cut(series, fields, at)


def parse(line: bytes) -> ParsedLine | None:
    """Return the metric in a line; None if there is none.

    Of a tag or a field that comes twice, the last one counts.

    Raises MalformedLine as `cut`.

    Examples
    --------
    >>> parse(b"pump,host=a flow=21.5,on=t 1000").fields
    {'flow': 21.5, 'on': True}
    """
    parts = cut(line)
    if parts is None:
        return None
    measurement, tags = series_of(parts.series)
    fields = {key: value_of(value) for key, value in fields_of(parts.fields)}
    return ParsedLine(measurement, tags, fields, parts.time)


def series_of(series: str) -> tuple[str, dict[str, str]]:
    """Return the measurement and the tags of a series that `cut` has checked."""
    name = _MEASUREMENT.match(series)
    end = 0 if name is None else name.end()
    tags = {_key(key): _key(value) for key, value in _TAGS.findall(series, end)}
    return _ESCAPED_NAME.sub(r"\1", series[:end]), tags


def fields_of(fields: str) -> list[tuple[str, str]]:
    """Return the fields that `cut` has checked, each with its value as it is written."""
    found: list[tuple[str, str]] = _FIELDS.findall(fields)
    return [(_key(key), value) for key, value in found] if "\\" in fields else found


def value_of(text: str) -> Value:
    """Return a value that `cut` has checked; infinity where a number is too large."""
    first = text[0]
    if first == '"':
        return _ESCAPED_TEXT.sub(r"\1", text[1:-1])
    if first in "tT":
        return True
    if first in "fF":
        return False
    return float(text[:-1] if text[-1] in "iu" else text)


def written(
    measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value], time: int
) -> bytes:
    """Return a metric of ours as a line with its break, without numbers that are not finite."""
    keys = ["=".join(_escape(each, ",= ") for each in tag) for tag in tags.items()]
    series = ",".join([_escape(measurement, ", "), *keys])
    pairs = [
        f"{_escape(key, ',= ')}={_value(value)}"
        for key, value in fields.items()
        if not isinstance(value, float) or math.isfinite(value)
    ]
    return f"{series} {','.join(pairs)} {time}\n".encode()


def _key(text: str) -> str:
    return _ESCAPED_KEY.sub(r"\1", text)


def _escape(text: str, special: str) -> str:
    return "".join(f"\\{each}" if each in special else each for each in text)


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'
    return repr(float(value))

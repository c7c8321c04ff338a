"""Spans of time as a command line and a file of labels write them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from submerge import UsageError
from submerge.history.recording import TimeSpan
from submerge_client.datasets.source import refusal, shown
from submerge_files.reader.time_form import is_slashed, orders_of, slashed_seconds, to_seconds

DOTS = ".."
FORMS = "2026-03-04 10:00 or 2026-03-04T10:00:00Z"

HEADINGS = (("from", "to"), ("start", "end"), ("begin", "end"))

MOST_LABELS = 10_000  # labels that a file may have
MOST_READ = 4_000_000  # characters that are read of such a file
MOST_TEXT = 200  # characters of a label's text


@dataclass(frozen=True)
class Label:
    """A known fault; `text`: what the file says of it; empty if nothing."""

    span: TimeSpan
    text: str = ""


def labels_of(path: Path) -> tuple[Label, ...]:
    """Read known faults from a CSV with two columns of times, and perhaps one of texts."""
    # Faults that overlap are one. They come in the order of time.
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MOST_READ)
        first = text.partition("\n")[0]
        lines = list(csv.reader(text.splitlines(), delimiter=max(",;\t", key=first.count)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "something else"
        raise refusal(
            path, expected="a CSV of known faults", got=str(why), hint="write it as text in UTF-8"
        ) from error
    labels = sorted(_labels(path, lines), key=lambda label: label.span)
    if not 0 < len(labels) <= MOST_LABELS:
        raise refusal(
            path,
            expected=f"1 to {MOST_LABELS:,} known faults",
            got=f"{len(labels):,}",
            hint="write a line for each: from,to,text",
        )
    return tuple(_joined(labels))


def excluded(text: str) -> TimeSpan:
    """Return the span of `--exclude FROM..TO`; an end that is left out is open."""
    begin, dots, end = (part.strip() for part in text.partition(DOTS))
    if not dots or not (begin or end):
        raise UsageError(
            f"--exclude is FROM..TO, such as 2026-03-04..2026-03-05 or 2026-03-04.., got {text!r}:"
            " write two points between both times"
        )
    return span(begin, end, "--exclude")


def span(begin: str, end: str, where: str) -> TimeSpan:
    """Return the time between two; an end that is left out is open."""
    orders = orders_of([begin, end])
    first = _time(begin, where, orders) if begin else -math.inf
    last = _time(end, where, orders) if end else math.inf
    if first > last:
        raise UsageError(
            f"expected {where} with FROM before TO, got '{begin}..{end}': exchange both times"
        )
    return TimeSpan(first, last)


def _time(text: str, where: object, orders: frozenset[bool]) -> float:
    """Return a time; one order reads its slashed dates, if others have not decided it."""
    if is_slashed(text) and len(orders) == 1:
        (seconds,) = slashed_seconds([text], *orders).tolist()
    else:
        (seconds,) = to_seconds([text]).tolist()
    if math.isfinite(seconds):
        return float(seconds)
    raise refusal(
        where,
        expected=f"a time such as {FORMS}",
        got=shown(text) if text else "none",
        hint="nothing says whether the day or the month is first: write 2026-11-23"
        if is_slashed(text)
        else "write it so",
    )


def _labels(path: Path, lines: list[list[str]]) -> Iterator[Label]:
    places, orders = (0, 1, 2), orders_of(field for line in lines for field in line)
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line]
        if not any(fields):
            continue
        if number == 1 and (found := _headings(path, fields)):
            places = found
            continue
        begin, end, text = (fields[i] if i < len(fields) else "" for i in places)
        where = f"{path}, line {number}"
        span = TimeSpan(_time(begin, where, orders), _time(end, where, orders))
        if span.first > span.last:
            raise refusal(
                where,
                expected="a fault that begins before it ends",
                got=f"{begin} to {end}",
                hint="exchange both times",
            )
        yield Label(span, text[:MOST_TEXT])


def _headings(path: Path, fields: list[str]) -> tuple[int, int, int] | None:
    """Return the places of begin, end and text; None if the first line is a fault."""
    names = [name.casefold() for name in fields]
    for begin, end in HEADINGS:
        if begin in names and end in names:
            first, last = names.index(begin), names.index(end)
            rest = (i for i in range(len(names)) if i not in (first, last))
            return first, last, next(rest, len(names))
    if any(any(mark.isdigit() for mark in name) for name in names):
        return None
    raise refusal(
        f"{path}, line 1",
        expected="the headings from and to, start and end, or begin and end",
        got=", ".join(shown(field) for field in fields[:3]),
        hint="rename the two columns of times",
    )


def _joined(labels: Sequence[Label]) -> Iterator[Label]:
    open_one = labels[0]
    for label in labels[1:]:
        if label.span.first > open_one.span.last:
            yield open_one
            open_one = label
        else:
            span = TimeSpan(open_one.span.first, max(open_one.span.last, label.span.last))
            texts = dict.fromkeys(filter(None, (open_one.text, label.text)))
            open_one = Label(span, "; ".join(texts)[:MOST_TEXT])
    yield open_one

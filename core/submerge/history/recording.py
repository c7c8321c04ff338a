"""Recorded: rows of one machine that follow one another, as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.judge.decision import Mask


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Rows of one machine, in the order of time."""

    # Which machine they are of. Rows of one machine come together, and one machine after another.
    machine: str
    rows: Array  # (n, channels). In their units; NaN is a gap.
    # (n,) or None. Seconds since 1970, never falling; None if nothing says when they were.
    times: Array | None
    file: str = ""  # where they are from, for people
    first: int = 1  # the number of the first of them in its file, from 1
    # (n,) or None. The number of each, where they do not follow one another in their file.
    numbers: npt.NDArray[np.int64] | None = None
    # (n, columns) or None. What comes along with them.
    texts: npt.NDArray[np.object_] | None = None

    def number(self, row: int) -> int:
        """Return the number of one of the rows in its file."""
        return self.first + row if self.numbers is None else int(self.numbers[row])

    def part(self, start: int, stop: int) -> Recorded:
        return replace(
            self,
            rows=self.rows[start:stop],
            times=None if self.times is None else self.times[start:stop],
            first=self.number(start),
            numbers=None if self.numbers is None else self.numbers[start:stop],
            texts=None if self.texts is None else self.texts[start:stop],
        )


class TimeSpan(NamedTuple):
    """A span of time; both ends belong to it."""

    # seconds since 1970; infinite where an end is open
    first: float = -np.inf
    last: float = np.inf

    def __str__(self) -> str:
        return f"{_text(self.first)}..{_text(self.last)}"


@dataclass
class LeftOut:
    """Takes the rows of some spans out of a history, and counts them."""

    spans: Sequence[TimeSpan] = ()
    # (spans,) of int. Rows in each; a row in several counts in the first.
    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.spans)

    def rest(self, recorded: Recorded) -> Iterator[Recorded]:
        """Yield the rows outside the spans, in pieces; UsageError for rows without times."""
        if not self.spans:
            yield recorded
            return
        times = recorded.times
        if times is None:
            raise UsageError(
                f"expected times to leave out {self.spans[0]}, got rows without times:"
                " name the column of times with --time"
            )
        free: Mask = np.ones(len(times), dtype=bool)
        for i, (first, last) in enumerate(self.spans):
            if not len(times) or last < times[0] or first > times[-1]:
                continue
            inside = free & (times >= first) & (times <= last)
            self.counts[i] += int(np.count_nonzero(inside))
            free &= ~inside
        if free.all():
            yield recorded
            return
        edges = np.flatnonzero(np.diff(free, prepend=False, append=False))
        for start, stop in edges.reshape(-1, 2).tolist():
            yield recorded.part(start, stop)


def check_used(counts: Sequence[int], spans: Sequence[TimeSpan], rows: int, seen: TimeSpan) -> None:
    """Refuse excluded spans that take out none of the rows, or all; `seen`: first to last row."""
    for count, span in zip(counts, spans, strict=True):
        if not count:
            raise UsageError(
                f"expected rows in the excluded span {span}, got none: the history is of {seen}"
            )
    if spans and sum(counts) == rows:
        raise UsageError(
            f"expected rows outside the excluded spans, got none: all {rows:,} are excluded, and"
            f" the history is of {seen}"
        )


def _text(seconds: float) -> str:
    if not np.isfinite(seconds):
        return ""
    # To the second; a fraction is not what a person asked for.
    return f"{np.datetime64(round(seconds), 's')}Z"

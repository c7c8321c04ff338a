"""TimeOrder: rows of one machine whose times never fall; and rows out of order, sorted.

1. Equal times inside a file are accepted: clocks may be coarser than the rows.
2. The last row of one file and the first of the next, of the same time and values, are one row
   that was exported twice: refused, unless the clock is coarse.
3. Sorting holds a machine's rows in memory, up to `SORT_BYTES`. Rows of two files with the same
   time and values are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.reader.file_rows import Indices, Span, joined
from submerge_files.reader.formats.tables import BLOCK_ROWS, TableFile

SORT_BYTES = 512 << 20
"""Most bytes of one machine's rows and times that are sorted."""


HOUR_S = 3600.0
"""How far clocks are set back in autumn."""


class TimeOrder:
    """Checks one machine's spans as they come, file after file."""

    def __init__(self) -> None:
        self._file: TableFile | None = None
        self._time = -np.inf
        self._number = 0
        self._row: Array = np.empty(0)
        self.coarse = False

    def check(self, span: Span, file: TableFile) -> None:
        """Refuse a span that goes back in time, or repeats the row before it in another file."""
        times = np.asarray(span.times)
        if len(times) == 0:
            return
        steps = np.diff(times, prepend=self._time)
        back = np.flatnonzero(steps < 0)
        if len(back):
            raise self._back(span, file, int(back[0]))
        again = self._file is not None and self._file is not file and steps[0] == 0
        if again and not self.coarse and np.array_equal(self._row, span.rows[0], equal_nan=True):
            raise refusal(
                f"{file.path}, {file.at(int(span.numbers[0]))}",
                expected="each row once",
                got=f"that of {iso(times[0])} again ({self._last_place()} of {self._named()})",
                hint="leave one of them out, or let --sort do it",
            )
        self.coarse |= bool((steps == 0).any())
        self._file, self._time = file, float(times[-1])
        self._number, self._row = int(span.numbers[-1]), span.rows[-1]

    def _back(self, span: Span, file: TableFile, at: int) -> UsageError:
        times = np.asarray(span.times)
        inside = at > 0 or self._file is file
        before = times[at - 1] if at else self._time
        last = file.at(int(span.numbers[at - 1])) if at else self._last_place()
        if not inside:
            last += f" of {self._named()}"
        hint = "the files overlap: merge them (--sort), or each is a machine (--node-by file)"
        if inside:
            hint = "sort the rows, or ask for it (--sort)"
        if inside and HOUR_S / 2 <= before - times[at] <= HOUR_S:
            hint += "; if clocks were set back then, write times in UTC or with their zone"
        return refusal(
            f"{file.path}, {file.at(int(span.numbers[at]))}",
            expected=f"no time before {iso(before)} ({last})",
            got=iso(times[at]),
            hint=hint,
        )

    def _named(self) -> Path:
        return self._file.path if self._file else Path()

    def _last_place(self) -> str:
        return self._file.at(self._number) if self._file else ""


def sorted_spans(
    spans: Iterable[tuple[Span, TableFile]], machine: str, note: Callable[[str], None]
) -> Iterator[tuple[Span, TableFile]]:
    """Yield all rows of a machine by time, each once, in spans of one file."""
    parts, files, size = [], [], 0
    for span, file in spans:
        size += span.rows.nbytes + 8 * len(span.rows)
        if size > SORT_BYTES:
            raise UsageError(
                f"machine {machine!r}: expected at most {SORT_BYTES >> 20} MiB of rows to sort,"
                " got more; sort the files before, or name fewer at a time"
            )
        parts.append(span)
        files.append(file)
    if not parts:
        return
    owner = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
    whole = joined(parts)
    parts.clear()
    order = np.argsort(np.asarray(whole.times), kind="stable")
    known: dict[int, int] = {}
    origin = np.array([known.setdefault(id(file), i) for i, file in enumerate(files)])[owner]
    stays = _once(whole, origin, order)
    if not stays.all():
        many = counted(int(np.count_nonzero(~stays)), "row")
        note(f"{many} found in two files, and read once")
    order = order[stays]
    cuts = np.flatnonzero(np.diff(origin[order])) + 1
    for run in np.split(order, cuts):
        for begin in range(0, len(run), BLOCK_ROWS):
            some = run[begin : begin + BLOCK_ROWS]
            yield whole.only(some), files[origin[some[0]]]


def _once(whole: Span, origin: Indices, order: Indices) -> npt.NDArray[np.bool_]:
    """Return which rows stay, in order of time: those that no other file has at that time."""
    times = np.asarray(whole.times)[order]
    stays = np.ones(len(order), dtype=bool)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(times)) + 1, [len(times)]])
    for group in np.flatnonzero(np.diff(edges) > 1):
        seen: dict[tuple[bytes, str], int] = {}
        for i in range(edges[group], edges[group + 1]):
            at = int(order[i])
            key = "" if whole.keys is None else whole.keys[at]
            owner = int(origin[at])
            stays[i] = seen.setdefault((whole.rows[at].tobytes(), key), owner) == owner
    return stays


def iso(seconds: float) -> str:
    """Return a time as text in UTC, such as 2026-11-23T10:00:00Z."""
    try:
        when = datetime.fromtimestamp(float(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"
    return when.replace(tzinfo=None).isoformat() + "Z"

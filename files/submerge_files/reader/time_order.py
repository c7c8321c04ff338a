"""TimeOrder: rows of one machine whose times never fall; and rows out of order, sorted.

1. Equal times inside a file are accepted: clocks may be coarser than the rows.
2. The last row of one file and the first of the next, of the same time and values, are one row
   that was exported twice: refused, unless the clock is coarse.
3. Sorting holds a machine's rows in memory, up to `SORT_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from submerge import UsageError
from submerge.history.recording import Recorded
from submerge_client.datasets.source import refusal
from submerge_client.datasets.table import counted
from submerge_files.reader.file_rows import Indices, Span, joined
from submerge_files.reader.formats.tables import BLOCK_ROWS, TableFile
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.reader.time_form import MACHINES

SORT_BYTES = 512 << 20  # most bytes of one machine's rows and times that are sorted


HOUR_S = 3600.0  # how far clocks are set back in autumn


def row_of(number: int) -> str:
    """Return how errors name a row of any format."""
    return f"row {number}"


@dataclass
class TimeOrder:
    """Refuses rows of a machine that go back in time, or come again in another file."""

    at: Callable[[int], str] = row_of  # says where a row is in the file of these, by its number
    # the first and the last row so far
    first: Recorded | None = None
    last: Recorded | None = None
    coarse: set[str] = field(default_factory=set)  # machines with rows of equal times

    def check(self, recorded: Recorded, at: Callable[[int], str] = row_of) -> None:
        """Take rows that follow those before."""
        n, times = len(recorded.rows), recorded.times
        if times is None or not n:
            return
        steps = np.diff(times)
        equal = {recorded.machine} if (steps == 0).any() else set[str]()
        self.follow(TimeOrder(at, recorded.part(0, 1), recorded.part(n - 1, n), equal))
        if (steps < 0).any():
            i = int(np.flatnonzero(steps < 0)[0])
            raise _back(recorded.part(i, i + 1), at, recorded.part(i + 1, i + 2), at)

    def follow(self, later: TimeOrder) -> None:
        """Take in rows that come after these."""
        before, after = self.last, later.first
        if after is None:
            return
        if before is not None and before.machine == after.machine:
            self._compare(before, after, later.at)
        self.first, self.last, self.at = self.first or after, later.last, later.at
        self.coarse |= later.coarse

    def _compare(self, before: Recorded, after: Recorded, at: Callable[[int], str]) -> None:
        time, previous = _time(after), _time(before)
        if time < previous:
            raise _back(before, self.at, after, at)
        if time > previous:
            return
        same = np.array_equal(before.rows, after.rows, equal_nan=True)
        if same and before.file != after.file and after.machine not in self.coarse:
            raise refusal(
                f"{after.file}, {at(after.first)}",
                expected="each row once",
                got=f"that of {iso(time)} again ({self.at(before.first)} of {before.file})",
                hint="leave one of them out, or let --sort do it",
            )
        self.coarse.add(after.machine)


def _time(row: Recorded) -> float:
    return float(np.asarray(row.times)[0])


def _back(
    before: Recorded, was_at: Callable[[int], str], after: Recorded, at: Callable[[int], str]
) -> UsageError:
    """Return the error for a row with an earlier time than the one before it."""
    time, previous, last = _time(after), _time(before), was_at(before.first)
    hint = "the files overlap: merge them (--sort), or each is a machine (--node-by file)"
    if after.file == before.file:
        hint = "sort the rows, or ask for it (--sort)"
        if after.machine == ONLY_MACHINE:
            hint = f"{MACHINES}; else {hint}"
        if HOUR_S / 2 <= previous - time <= HOUR_S:
            hint += "; if clocks were set back then, write times in UTC or with their zone"
    else:
        last += f" of {before.file}"
    return refusal(
        f"{after.file}, {at(after.first)}",
        expected=f"no time before {iso(previous)} ({last})",
        got=iso(time),
        hint=hint,
    )


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

"""Rows that Python has: tables of pandas, of polars and of NumPy, with times, and back; or files.

Neither pandas nor polars is imported here: a table of theirs has brought it along.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge._linalg import unmasked
from submerge.condition import Condition, InState
from submerge.headings import channels_of
from submerge.history.recording import Recorded
from submerge.judge.decision import Mask
from submerge_client.datasets.fields import is_missing
from submerge_client.datasets.source import refusal
from submerge_files.reader import ReadingOptions, Recordings, open_recordings, selection
from submerge_files.reader.column_ranges import ColumnRanges
from submerge_files.reader.formats.readers import head_of
from submerge_files.reader.formats.remote_path import is_remote, path_of
from submerge_files.reader.formats.tables import (
    BLOCK_ROWS,
    HEAD_ROWS,
    ColumnHead,
    Kind,
    RawRows,
    TableFile,
    names_of,
)
from submerge_files.reader.options import NO_TIME, ONLY_MACHINE
from submerge_files.reader.plan import no_rows_in, state_of
from submerge_files.reader.recordings import iso
from submerge_files.reader.selection import Found, check_numbers, clock_of, place_in, place_of, some
from submerge_files.reader.time_form import either_order, going_on, is_time, shared_times
from submerge_files.workers import Workers

MICRO = 1e6

PLACE = "the frame"  # how errors name it


@dataclass(frozen=True)
class FrameColumn:
    """A column of a table, or its index."""

    kind: Kind  # numbers, times by their type, or text for anything else
    rows: int
    values: Callable[[], Array]  # (n,), NaN for a gap and for text; times since 1970
    label: Callable[[int], Any]  # what the table's reader sees in a row

    def texts(self) -> Iterator[str]:
        """Yield what stands in it, "" for a gap."""
        for text in (str(self.label(row)) for row in range(self.rows)):
            yield "" if text in ("NaT", "<NA>") or is_missing(text) else text


@dataclass(frozen=True, eq=False)
class Frame(TableFile):
    """A table as those see it who choose the columns of a file, so that they choose alike."""

    rows: int
    held: tuple[FrameColumn, ...]
    # Returns new columns as a table of the same kind, with its times.
    scores: Callable[[Mapping[str, npt.NDArray[Any]], str | None], Any]
    # Returns a new table of the same kind; some columns are its index, where there is such.
    table: Callable[[Mapping[str, Sequence[Any]], Sequence[str]], Any]
    index: FrameColumn | None = None  # if it is of times
    passed_over: str = ""  # the type of an index that is not of times, nor counts the rows

    @classmethod
    def of(cls, n: int, names: Sequence[str], held: Sequence[FrameColumn], *others: Any) -> Frame:
        """Look at the first rows of a table."""
        heads = tuple(map(_head, names, held))
        file = Path(PLACE), heads, min(n, HEAD_ROWS), n <= HEAD_ROWS, (), True
        return cls(*file, n, tuple(held), *others)

    def blocks(
        self, numbers: Sequence[int], texts: Sequence[int], begin: int = 0
    ) -> Iterator[RawRows]:
        """Return all rows at once."""
        rows: Array = np.empty((self.rows, len(numbers)))
        for i, place in enumerate(numbers):
            rows[:, i] = self.held[place].values()
        columns = (self.held[place] for place in texts)
        yield RawRows(rows[begin:], tuple(list(each.texts())[begin:] for each in columns))


def frame_of(rows: Any, names: Sequence[str] | None = None) -> Frame:
    """Return a table as a frame; an array's columns have names."""
    package = type(rows).__module__.partition(".")[0]
    if isinstance(rows, np.ndarray):
        frame = _of_array(rows, names)
    elif package == "pandas" and hasattr(rows, "columns"):
        frame = _of_pandas(rows)
    elif package == "polars" and hasattr(rows, "get_column"):
        frame = _of_polars(rows)
    else:
        cure = "collect() it first" if hasattr(rows, "collect") else "make it one of these"
        raise refusal(
            "rows",
            expected="a frame of pandas or polars, or an array (n, channels)",
            got=type(rows).__name__,
            hint=cure,
        )
    if names is not None and not isinstance(rows, np.ndarray):
        raise UsageError("names are for an array: a frame has its own; leave names out")
    known = names_of(frame)
    twice = [name for i, name in enumerate(known) if name in known[:i]]
    if twice:
        raise refusal(
            PLACE,
            expected="each column's name once",
            got=f"{twice[0]!r} twice",
            hint="rename one of them",
        )
    return frame


def _of_pandas(frame: Any) -> Frame:
    """Return a `pandas.DataFrame`. Headings of several levels are joined by a dot."""
    pandas = sys.modules["pandas"]

    def column(series: Any, at: Any) -> FrameColumn:
        code = getattr(series.dtype, "kind", "O")
        kind, values = Kind.TEXT, partial(np.full, len(series), np.nan)
        if code == "M":
            kind, values = Kind.TIMES, partial(_pandas_times, series)
        if code in "iufb":
            kind, values = Kind.NUMBERS, partial(series.to_numpy, dtype=np.float64, na_value=np.nan)
        return FrameColumn(kind, len(series), values, at.__getitem__)

    kind = getattr(frame.index.dtype, "kind", "O")
    # An index that begins above it, or has a name of its own, counts time.
    called = str(frame.index.name or "index").casefold()
    counts = kind in "iu" and len(frame) and frame.index[0] < 1e7 and called in selection.INDEX
    each = (frame.iloc[:, i] for i in range(frame.shape[1]))
    return Frame.of(
        len(frame),
        [".".join(map(str, n)) if isinstance(n, tuple) else str(n) for n in frame.columns],
        [column(series, series.iloc) for series in each],
        lambda columns, _: pandas.DataFrame(dict(columns), index=frame.index),
        lambda columns, keys: pandas.DataFrame(dict(columns)).set_index(list(keys)),
        column(frame.index.to_series(), frame.index) if kind == "M" else None,
        "" if kind in "M" or counts else str(frame.index.dtype),
    )


def _pandas_times(series: Any) -> Array:
    """Return times as seconds since 1970, to a microsecond; NaN for none."""
    if series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    times = series.to_numpy()
    seconds = times.astype("datetime64[us]").astype(np.int64) / MICRO
    return np.where(np.isnat(times), np.nan, seconds)


def _of_polars(frame: Any) -> Frame:
    """Return a `polars.DataFrame`. It has no index: scores have its column of times beside them."""
    polars = sys.modules["polars"]

    def values(series: Any, unit: float) -> Array:
        return np.asarray(series.cast(polars.Float64).to_numpy(), dtype=np.float64) / unit

    def column(series: Any) -> FrameColumn:
        kind, read = Kind.TEXT, lambda: np.full(len(series), np.nan)
        if series.dtype.is_numeric() or str(series.dtype) == "Boolean":
            kind, read = Kind.NUMBERS, lambda: values(series, 1.0)
        elif str(series.dtype).startswith("Date"):
            kind, read = Kind.TIMES, lambda: values(series.dt.epoch("us"), MICRO)
        return FrameColumn(kind, len(series), read, series.__getitem__)

    def scores(columns: Mapping[str, npt.NDArray[Any]], time: str | None) -> Any:
        first = {} if time is None else {time: frame.get_column(time)}
        return polars.DataFrame(first | dict(columns))

    return Frame.of(
        len(frame),
        frame.columns,
        [*map(column, frame.get_columns())],
        scores,
        lambda columns, _: polars.DataFrame(dict(columns)),
    )


def _of_array(rows: npt.NDArray[Any], names: Sequence[str] | None) -> Frame:
    """Return an array (n, channels). It has no times, and what comes back is a dict of arrays."""
    rows = unmasked(rows)
    if rows.ndim != 2 or rows.dtype.kind not in "iufb":
        raise refusal(
            "rows",
            expected="an array (n, channels) of numbers",
            got=f"shape {rows.shape} of {rows.dtype}",
            hint="give each channel a column",
        )
    width = rows.shape[1]
    if names is not None and (isinstance(names, str) or len(names) != width):
        got = f"{names!r}" if isinstance(names, str) else f"{len(names)} names"
        raise refusal("names", expected=f"{width} names", got=got, hint="name each column")
    held = np.asarray(rows, dtype=np.float64)
    return Frame.of(
        len(rows),
        [f"x{i}" for i in range(width)] if names is None else [*names],
        [FrameColumn(Kind.NUMBERS, len(held), col.view, col.__getitem__) for col in held.T],
        lambda columns, _: dict(columns),
        lambda columns, _: {name: np.array(values) for name, values in columns.items()},
    )


def _head(name: str, column: FrameColumn) -> ColumnHead:
    if column.kind != Kind.TEXT:
        head = head_of(name, column.values()[:HEAD_ROWS])
        return replace(head, kind=column.kind, typed=column.kind == Kind.TIMES)
    head = ColumnHead(name, Kind.TEXT, tuple(islice(column.texts(), HEAD_ROWS)))
    if not head.full:
        return replace(head, kind=Kind.EMPTY, heading=False)
    return replace(head, kind=Kind.TIMES) if all(map(is_time, head.full)) else head


class FrameRows:
    """Rows (n, channels) of a frame; its time is a column, "none", or by default what is found."""

    def __init__(
        self,
        frame: Frame,
        columns: Sequence[str] | None = None,
        time: str | None = None,
        machine: str = ONLY_MACHINE,
        states: Sequence[InState] = (),
        *,
        part: bool = False,
    ) -> None:
        self.frame, self.machine = frame, machine
        check_list(columns)
        clock, notes, others = _clock(frame, columns, time)
        places = clock.places if clock else ()
        said = [state_of(replace(frame, whole=False), each) for each in states]
        self.kept: Mask | None = None
        if states:
            texts = next(frame.blocks((), said)).texts
            holds = [each.holds(some) for each, some in zip(states, texts, strict=True)]
            self.kept = np.logical_and.reduce(holds)
            if not (part or self.kept.any()):
                raise no_rows_in(PLACE, states)
        self.clock = frame.columns[places[0]].name if places else None
        self._counted = self.kept
        self._when = None if time == NO_TIME else frame.index
        self._times = None if self._when is None else _checked_times(self._when.values())
        if clock is not None:
            self._when = frame.held[places[0]]
            (raw,) = frame.blocks(*((places, ()) if clock.form.numeric else ((), places)))
            self._times = _checked_times(clock.seconds(frame, raw, 0))
        if columns is None:
            numeric = [place for place in others if frame.columns[place].kind == Kind.NUMBERS]
            taken = {*places, *numeric, *said}
            chosen, left_out = selection.channels_of(frame, ReadingOptions(), taken)
        else:
            chosen, left_out = [place_of(frame, wanted, "columns") for wanted in columns], []
            for place in chosen:
                check_numbers(frame, place, empty=True)
        self._said = (*notes, *left_out)
        if frame.passed_over and self._times is None and time != NO_TIME:
            index = f"the index is {frame.passed_over}: rows are learnt without times"
            self._said += (f"{index}, which pandas.to_datetime makes",)
        self.headings = tuple(frame.columns[i].name for i in chosen)
        self.channels = channels_of(self.headings)
        self.values = next(frame.blocks(chosen, ())).numbers

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(channel.name for channel in self.channels)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: what was left out, and which values are hardly readings, as of files."""
        ranges = ColumnRanges(self.names, "write NaN for it", "leave these rows out (when)")
        ranges.add(self.values if self._counted is None else self.values[self._counted])
        times = np.empty(0) if self._times is None else self._times
        counts = np.unique(times, return_counts=True)[1]
        shared = shared_times("", len(times), len(counts), int(counts.max(initial=0)))
        return (*self._said, *shared, *ranges.notes())

    def note_only(self, counted: Callable[[Array], Mask]) -> None:
        """Have notes on values tell of some rows alone, as `Recordings.note_only`."""
        self._counted = self.only(counted(self.values))

    def only(self, mask: Mask) -> Mask:
        """Return which of some rows (n,) are in the states."""
        return mask if self.kept is None else mask & self.kept

    def rows(self) -> Iterator[Recorded]:
        """Read all rows from the start, in blocks."""
        which = None if self.kept is None else np.flatnonzero(self.kept)
        for first in range(0, len(self.values) if which is None else len(which), BLOCK_ROWS):
            some: Any = slice(first, first + BLOCK_ROWS)
            numbers = None
            if which is not None:
                some = which[some]
                first, numbers = int(some[0]), some + 1
            times = None if self._times is None else self._times[some]
            yield Recorded(self.machine, self.values[some], times, PLACE, first + 1, numbers)

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Read all rows: they are in memory, whatever is asked of them."""
        return self.rows()

    def label(self, row: int) -> Any:
        """Return how the frame's reader calls a row: its time, or its number from 0."""
        return row if self._when is None else self._when.label(row)


def _clock(frame: Frame, columns: Sequence[str] | None, time: str | None) -> Found:
    """Return the column of times; none if there is none, or if the index has them."""
    if time == NO_TIME or (time is None and frame.index is not None):
        return Found(None)
    typed = [each for each in frame.columns if each.typed]
    several = [typed[i].name for i in going_on([len({*each.full}) for each in typed])]
    if time is None and len(several) > 1:
        raise refusal(
            PLACE,
            expected="one column of times that goes on",
            got=some(several),
            hint=f"name one, such as time={several[0]!r}",
        )
    # A column that is asked for as a channel is none of times.
    asked = {place_in(names_of(frame), each) for each in columns or ()} if time is None else {}
    others = (replace(c, kind=Kind.OTHER) if i in asked else c for i, c in enumerate(frame.columns))
    seen = replace(frame, columns=tuple(others))
    try:
        found = clock_of(seen, ReadingOptions(time=time or ""))
        if found.clock and found.clock.either:
            raise either_order(frame, found.clock.places, found.clock.either)
    except UsageError as error:
        if time is not None or columns is None:
            raise
        return Found(None, (f"rows have no times, since a column is unclear: {error}",))
    return found


def _checked_times(times: Array) -> Array:
    """Return times (n,), or refuse them if one is missing or earlier than the one before it."""
    missing = np.flatnonzero(np.isnan(times))
    if len(missing):
        raise refusal(
            f"{PLACE}, row {missing[0]}",
            expected="a time in each row",
            got="none",
            hint="leave the row out",
        )
    back = np.flatnonzero(np.diff(times) < 0)
    if len(back):
        row = int(back[0]) + 1
        raise refusal(
            f"{PLACE}, row {row}",
            expected=f"no time before {iso(times[row - 1])}",
            got=iso(times[row]),
            hint="sort the rows by time",
        )
    return times


Source = FrameRows | Recordings


def check_list(columns: Sequence[str] | None) -> None:
    if isinstance(columns, str):
        raise UsageError(f"expected a list of columns, got {columns!r}: write [{columns!r}]")


def paths_of(rows: Any) -> list[Path] | None:
    """Return the files that are meant; None if rows are no paths."""
    every = rows if isinstance(rows, list | tuple) else [rows]
    if not every or not all(isinstance(each, str | Path) or is_remote(each) for each in every):
        return None
    return [path_of(str(each)) for each in every]


def source_of(
    rows: Any,
    names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    *,
    node_by: str = "",
    sort: bool = False,
    states: Sequence[InState] = (),
) -> Source:
    """Open files, or take a frame; options as in `Model.fit`."""
    paths = paths_of(rows)
    if paths is not None:
        return opened(paths, names, columns, time, node_by=node_by, sort=sort, states=states)
    if node_by or sort:
        raise UsageError(
            "node_by and sort are for files: learn one machine's frame, in order of time"
        )
    return FrameRows(frame_of(rows, names), columns, time, states=states)


def opened(
    paths: Sequence[Path],
    names: Sequence[str] | None,
    columns: Sequence[str] | None,
    time: str | None,
    *,
    node_by: str = "",
    sort: bool = False,
    states: Sequence[InState] = (),
    workers: Workers | None = None,
) -> Recordings:
    """Open files; options as in `Model.fit`."""
    if names is not None:
        raise UsageError("names are for an array: files have headings; leave names out")
    check_list(columns)
    options = ReadingOptions(
        tuple(columns or ()), time=time or "", node_by=node_by, sort=sort, states=(*states,)
    )
    return open_recordings(paths, options, workers)

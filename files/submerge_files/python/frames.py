"""Frames: tables of pandas, of polars and of NumPy, as columns of numbers with times; and back.
Neither pandas nor polars is imported here: a table of theirs has brought it along. A frame's kind
is known by the package that its class is from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge._linalg import unmasked
from submerge_client.datasets.source import refusal

MICRO = 1e6

PLACE = "the frame"
"""How errors name it."""

NUMBERS, TIMES, OTHERS = "numbers", "times", "others"


@dataclass(frozen=True)
class FrameColumn:
    """A column of a table, or its index.

    kind : What it holds: `NUMBERS`, `TIMES` or `OTHERS`.
    type : For people.
    values : Returns it (n,): numbers, NaN for a gap; times in seconds since 1970, NaN for none.
    label : Returns what the table's reader sees in a row.
    """

    kind: str
    type: str
    values: Callable[[], Array]
    label: Callable[[int], Any]


@dataclass(frozen=True)
class Frame:
    """A table whose columns have names.

    index : If it is of times.
    passed_over : The type of an index that is neither numbers nor times; "" without one.
    scores : Returns new columns with a value for each row, as a table of the same kind; beside
        them, of a table without an index, its column of times of that name.
    table : Returns a new table of the same kind; some columns are its index, where there is such.
    """

    rows: int
    names: tuple[str, ...]
    columns: tuple[FrameColumn, ...]
    scores: Callable[[Mapping[str, npt.NDArray[Any]], str | None], Any]
    table: Callable[[Mapping[str, Sequence[Any]], Sequence[str]], Any]
    index: FrameColumn | None = None
    passed_over: str = ""

    def __len__(self) -> int:
        return self.rows

    def column(self, name: str) -> FrameColumn:
        """Return a column."""
        return self.columns[self.names.index(name)]

    def named(self, kind: str) -> tuple[str, ...]:
        """Return the names of the columns of a kind."""
        each = zip(self.names, self.columns, strict=True)
        return tuple(name for name, column in each if column.kind == kind)


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
    twice = [name for i, name in enumerate(frame.names) if name in frame.names[:i]]
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
        kind, values = TIMES if code == "M" else OTHERS, partial(_pandas_times, series)
        if code in "iufb":
            kind, values = NUMBERS, partial(series.to_numpy, dtype=np.float64, na_value=np.nan)
        return FrameColumn(kind, str(series.dtype), values, at.__getitem__)

    kind = getattr(frame.index.dtype, "kind", "O")
    each = (frame.iloc[:, i] for i in range(frame.shape[1]))
    return Frame(
        len(frame),
        tuple(map(_heading, frame.columns)),
        tuple(column(series, series.iloc) for series in each),
        lambda columns, _: pandas.DataFrame(dict(columns), index=frame.index),
        lambda columns, keys: pandas.DataFrame(dict(columns)).set_index(list(keys)),
        column(frame.index.to_series(), frame.index) if kind == "M" else None,
        "" if kind in "iufM" else str(frame.index.dtype),
    )


def _pandas_times(series: Any) -> Array:
    """Return times as seconds since 1970, to a microsecond; NaN for none."""
    if series.dt.tz is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    times = series.to_numpy()
    seconds = times.astype("datetime64[us]").astype(np.int64) / MICRO
    return np.where(np.isnat(times), np.nan, seconds)


def _heading(name: object) -> str:
    return ".".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _of_polars(frame: Any) -> Frame:
    """Return a `polars.DataFrame`. It has no index: scores have its column of times beside them."""
    polars = sys.modules["polars"]

    def values(series: Any, unit: float) -> Array:
        return np.asarray(series.cast(polars.Float64).to_numpy(), dtype=np.float64) / unit

    def column(series: Any) -> FrameColumn:
        kind, read = OTHERS, lambda: values(series, 1.0)
        if series.dtype.is_numeric() or str(series.dtype) == "Boolean":
            kind = NUMBERS
        elif str(series.dtype).startswith("Date"):
            kind, read = TIMES, lambda: values(series.dt.epoch("us"), MICRO)
        return FrameColumn(kind, str(series.dtype), read, series.__getitem__)

    def scores(columns: Mapping[str, npt.NDArray[Any]], time: str | None) -> Any:
        first = {} if time is None else {time: frame.get_column(time)}
        return polars.DataFrame(first | dict(columns))

    return Frame(
        len(frame),
        tuple(frame.columns),
        tuple(map(column, frame.get_columns())),
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
    return Frame(
        len(rows),
        tuple(f"x{i}" for i in range(width)) if names is None else tuple(names),
        tuple(
            FrameColumn(NUMBERS, str(held.dtype), column.view, column.__getitem__)
            for column in held.T
        ),
        lambda columns, _: dict(columns),
        lambda columns, _: {name: np.array(values) for name, values in columns.items()},
    )

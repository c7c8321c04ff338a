"""Frames: tables of pandas, of polars and of NumPy, as columns of numbers with times; and back.
Neither pandas nor polars is imported here: a table of theirs has brought it along. A frame's kind
is known by the package that its class is from.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge._linalg import unmasked
from submerge_client.datasets.source import refusal

MICRO = 1e6


class PandasFrame:
    """A `pandas.DataFrame`. Headings of several levels are joined by a dot."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = tuple(_heading(name) for name in frame.columns)

    def __len__(self) -> int:
        return len(self._frame)

    def _column(self, name: str) -> Any:
        return self._frame.iloc[:, self.names.index(name)]

    def is_number(self, name: str) -> bool:
        return getattr(self._column(name).dtype, "kind", "O") in "iufb"

    def is_time(self, name: str) -> bool:
        return getattr(self._column(name).dtype, "kind", "O") == "M"

    def numbers(self, name: str) -> Array:
        column: Array = self._column(name).to_numpy(dtype=np.float64, na_value=np.nan)
        return column

    def type_of(self, name: str) -> str:
        return str(self._column(name).dtype)

    @property
    def has_time_index(self) -> bool:
        return getattr(self._frame.index.dtype, "kind", "O") == "M"

    @property
    def passed_over(self) -> str:
        kind = self._frame.index.dtype
        return "" if getattr(kind, "kind", "O") in "iufM" else str(kind)

    def times(self, name: str | None) -> Array:
        column = self._frame.index.to_series() if name is None else self._column(name)
        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return _seconds(column.to_numpy())

    def label(self, row: int, time: str | None) -> Any:
        return self._frame.index[row] if time is None else self._column(time).iloc[row]

    def scores(self, columns: Mapping[str, npt.NDArray[Any]], time: str | None) -> Any:
        return _pandas().DataFrame(dict(columns), index=self._frame.index)

    def table(self, columns: Mapping[str, Sequence[Any]], keys: Sequence[str]) -> Any:
        return _pandas().DataFrame(dict(columns)).set_index(list(keys))


class PolarsFrame:
    """A `polars.DataFrame`. It has no index: scores have its column of times beside them."""

    has_time_index = False
    passed_over = ""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = tuple(frame.columns)

    def __len__(self) -> int:
        return len(self._frame)

    def is_number(self, name: str) -> bool:
        kind = self._frame.get_column(name).dtype
        return bool(kind.is_numeric()) or str(kind) == "Boolean"

    def is_time(self, name: str) -> bool:
        return str(self._frame.get_column(name).dtype).startswith("Date")

    def numbers(self, name: str) -> Array:
        kind = sys.modules["polars"].Float64
        column = self._frame.get_column(name).cast(kind).to_numpy()
        return np.asarray(column, dtype=np.float64)

    def type_of(self, name: str) -> str:
        return str(self._frame.get_column(name).dtype)

    def times(self, name: str | None) -> Array:
        micros = self._frame.get_column(name).dt.epoch("us")
        kind = sys.modules["polars"].Float64
        return np.asarray(micros.cast(kind).to_numpy(), dtype=np.float64) / MICRO

    def label(self, row: int, time: str | None) -> Any:
        return self._frame.get_column(time)[row]

    def scores(self, columns: Mapping[str, npt.NDArray[Any]], time: str | None) -> Any:
        first = {} if time is None else {time: self._frame.get_column(time)}
        return sys.modules["polars"].DataFrame(first | dict(columns))

    def table(self, columns: Mapping[str, Sequence[Any]], keys: Sequence[str]) -> Any:
        return sys.modules["polars"].DataFrame(dict(columns))


class ArrayFrame:
    """An array (n, channels). It has no times, and what comes back is a dict of arrays."""

    has_time_index = False
    passed_over = ""

    def __init__(self, rows: npt.NDArray[Any], names: Sequence[str] | None) -> None:
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
        self._rows = np.asarray(rows, dtype=np.float64)
        self.names = tuple(f"x{i}" for i in range(width)) if names is None else tuple(names)

    def __len__(self) -> int:
        return len(self._rows)

    def is_number(self, name: str) -> bool:
        return True

    def is_time(self, name: str) -> bool:
        return False

    def numbers(self, name: str) -> Array:
        return self._rows[:, self.names.index(name)]

    def type_of(self, name: str) -> str:
        return str(self._rows.dtype)

    def times(self, name: str | None) -> Array:
        raise UsageError("an array has no times: give a frame, or leave time out")

    def label(self, row: int, time: str | None) -> Any:
        return row

    def scores(self, columns: Mapping[str, npt.NDArray[Any]], time: str | None) -> Any:
        return dict(columns)

    def table(self, columns: Mapping[str, Sequence[Any]], keys: Sequence[str]) -> Any:
        return {name: np.array(values) for name, values in columns.items()}


def _heading(name: object) -> str:
    return ".".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _seconds(times: npt.NDArray[Any]) -> Array:
    """Return datetime64 as seconds since 1970, to a microsecond; NaN for none."""
    seconds = times.astype("datetime64[us]").astype(np.int64) / MICRO
    return np.where(np.isnat(times), np.nan, seconds)


def _pandas() -> Any:
    return sys.modules["pandas"]


PLACE = "the frame"
"""How errors name it."""


class Frame(Protocol):
    """A table whose columns have names."""

    names: tuple[str, ...]

    def __len__(self) -> int:
        """Number of rows."""

    def is_number(self, name: str) -> bool:
        """Whether a column is one of numbers."""

    def is_time(self, name: str) -> bool:
        """Whether a column is of a time type."""

    def numbers(self, name: str) -> Array:
        """Return a column (n,); NaN is a gap."""

    def type_of(self, name: str) -> str:
        """Return the type of a column, for people."""

    def times(self, name: str | None) -> Array:
        """Return the times (n,) of a column, or of the index: seconds since 1970, NaN for none."""

    @property
    def has_time_index(self) -> bool:
        """Whether its index is one of times."""

    @property
    def passed_over(self) -> str:
        """The type of an index that is neither numbers nor times; "" without one."""

    def label(self, row: int, time: str | None) -> Any:
        """Return how its reader calls a row: its time, as the frame has it."""

    def scores(self, columns: Mapping[str, npt.NDArray[Any]], time: str | None) -> Any:
        """Return new columns with a value for each row, as a table of the same kind."""

    def table(self, columns: Mapping[str, Sequence[Any]], keys: Sequence[str]) -> Any:
        """Return a new table of the same kind; `keys` are its index, where there is such."""


def frame_of(rows: Any, names: Sequence[str] | None = None) -> Frame:
    """Return a table as a frame."""
    package = type(rows).__module__.partition(".")[0]
    frame: Frame
    if package == "pandas" and hasattr(rows, "columns"):
        frame = PandasFrame(rows)
    elif package == "polars" and hasattr(rows, "get_column"):
        frame = PolarsFrame(rows)
    elif isinstance(rows, np.ndarray):
        frame = ArrayFrame(rows, names)
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

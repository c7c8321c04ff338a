"""Frames: tables of pandas, of polars and of NumPy, as columns of numbers with times; and back.

Neither pandas nor polars is imported here: a table of theirs has brought it along. A frame's kind
is known by the package that its class is from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from submerge import Array, UsageError
from submerge_client.datasets.source import refusal
from submerge_files.python.frame_kinds import ArrayFrame, PandasFrame, PolarsFrame

PLACE = "the frame"
"""How errors name it."""


class Frame(Protocol):
    """A table whose columns have names.

    Attributes
    ----------
    names : tuple of str
        Of all columns, in their order.
    """

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
    """Return a table as a frame.

    rows : pandas or polars frame, or array (n, channels)
    names : of an array's columns

    Raises
    ------
    UsageError
        If it is none of these, or has a name twice.
    """
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

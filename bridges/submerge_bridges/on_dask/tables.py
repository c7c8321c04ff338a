"""Dask collections: a frame, an array or a bag, as partitions that tasks read as tables. Dask is
not imported here: a collection has brought it along, and is known by what it can do.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submerge import UsageError
from submerge_files.python.frame_rows import FrameRows
from submerge_files.python.frames import frame_of
from submerge_files.reader import ReadingOptions
from submerge_files.reader.parts import ONLY_MACHINE


class Collection(NamedTuple):
    """A Dask collection of rows of one machine, in the order of time.

    head : Its columns, of an empty or short table of the same form.
    """

    partitions: list[Any]
    head: FrameRows
    options: ReadingOptions

    @property
    def names(self) -> tuple[str, ...]:
        """Of the channels."""
        return self.head.names


def is_collection(rows: Any) -> bool:
    """Return whether rows are a Dask collection."""
    return hasattr(rows, "__dask_graph__") and hasattr(rows, "to_delayed")


def collection_of(
    rows: Any,
    columns: Sequence[str] | None,
    time: str | None,
    names: Sequence[str] | None,
    machine: str = ONLY_MACHINE,
) -> Collection:
    """Return a Dask collection as partitions; options as in `submerge.dask.fit`."""
    if hasattr(rows, "_meta") and hasattr(rows, "columns"):
        partitions, table = list(rows.to_delayed()), rows._meta
    elif hasattr(rows, "chunks"):
        if rows.ndim != 2:
            raise UsageError(f"expected an array (n, channels), got {rows.ndim} dimensions")
        partitions = list(rows.rechunk({1: -1}).to_delayed().ravel())
        table = np.zeros((0, rows.shape[1]))
        names = list(names or (f"x{i}" for i in range(rows.shape[1])))
    elif hasattr(rows, "take"):
        partitions = list(rows.to_delayed())
        table = table_of(list(rows.take(1, npartitions=-1, warn=False)))
    else:
        raise UsageError(
            f"expected a frame, an array or a bag of Dask, got {type(rows).__name__}: name files"
            " by their paths"
        )
    head = FrameRows(frame_of(table, names), columns, time, machine)
    chosen = ReadingOptions(tuple(head.headings), time=time or "")
    return Collection(partitions, head, chosen)


def table_of(partition: Any) -> Any:
    """Return a partition as a frame or an array; one of a bag is a list of mappings."""
    if not isinstance(partition, list | tuple):
        return partition
    try:
        pandas: Any = importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise UsageError(
            "a bag of mappings needs pandas, which is not installed: pip install pandas"
        ) from error
    return pandas.DataFrame.from_records(list(partition))

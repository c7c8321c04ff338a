"""Dask collections as parts of rows, and their scores. A collection is known by what it can do:
Dask is not imported for it. It computes partitions where tasks run, and scores when it is asked to.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from submerge import UsageError
from submerge.condition import Condition
from submerge.history.recording import Recorded
from submerge_files import model_file
from submerge_files.python.frame_rows import FrameRows
from submerge_files.python.frames import frame_of
from submerge_files.python.model import HistoryModel
from submerge_files.reader.parts import ONLY_MACHINE


@dataclass(frozen=True)
class PartitionRows:
    """A partition that was computed, as a part of rows (`submerge_files.fit.apart`)."""

    headings: tuple[str, ...]
    time: str | None
    machine: str
    number: int
    partition: Any

    def rows(self) -> Iterator[Recorded]:
        """Return its rows in blocks."""
        table = _table(self.partition)
        if not len(table):
            return
        frame = frame_of(table, self.headings if isinstance(table, np.ndarray) else None)
        for recorded in FrameRows(frame, self.headings, self.time, self.machine).rows():
            yield replace(recorded, file=f"the frame, part {self.number}")

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Return the same: they are in memory."""
        return self.rows()


class Collection(NamedTuple):
    """Rows of one machine, in the order of time: parts for workers, and the columns of all."""

    parts: list[Any]
    head: FrameRows


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
    """Return a Dask collection as parts; options as in `submerge.dask.fit`."""
    from dask.delayed import delayed

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
        table = _table(list(rows.take(1, npartitions=-1, warn=False)))
    else:
        raise UsageError(
            f"expected a frame, an array or a bag of Dask, got {type(rows).__name__}: name files"
            " by their paths"
        )
    head = FrameRows(frame_of(table, names), columns, time, machine)
    read = partial(delayed(PartitionRows, pure=False), head.headings, time, machine)
    return Collection([read(number, each) for number, each in enumerate(partitions)], head)


def _table(partition: Any) -> Any:
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


def scores_of(model: HistoryModel, rows: Any, **asked: Any) -> Any:
    """Return the scores of a Dask collection, of the same kind; nothing is computed yet."""
    one = partial(_scores, model.packed, asked)
    if hasattr(rows, "_meta") and hasattr(rows, "columns"):
        return rows.map_partitions(one, meta=one(rows._meta))
    if not hasattr(rows, "chunks"):
        return rows.map_partitions(partial(_records, model.packed, asked))
    arrays: Any = importlib.import_module("dask.array")
    from dask.delayed import delayed

    blocks = rows.rechunk({1: -1}).to_delayed().ravel()
    found = [delayed(one)(block) for block in blocks]
    known = one(np.zeros((0, rows.shape[1])))
    return {
        name: arrays.concatenate(
            [
                arrays.from_delayed(each[name], (n,), values.dtype)
                for each, n in zip(found, rows.chunks[0], strict=True)
            ]
        )
        for name, values in known.items()
    }


def _scores(packed: bytes, asked: dict[str, Any], table: Any) -> Any:
    """Return the scores of one partition; `packed` is a model's file."""
    with warnings.catch_warnings():
        # A level says something of all rows, and not of a part of them.
        warnings.simplefilter("ignore", UserWarning)
        return _model(packed).score(table, **asked)


def _records(packed: bytes, asked: dict[str, Any], records: Any) -> list[dict[str, Any]]:
    """Return the scores of a bag's partition, a mapping for each row."""
    table = _table(list(records))
    found: list[dict[str, Any]] = []
    if len(table):
        found = _scores(packed, asked, table).to_dict("records")
    return found


@lru_cache(maxsize=2)
def _model(packed: bytes) -> HistoryModel:
    return HistoryModel(model_file.decoded(packed, "the model"))

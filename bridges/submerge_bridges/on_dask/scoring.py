"""Scores of Dask collections, which Dask computes when it is asked to; and of files, by workers."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from submerge_bridges.on_dask.cluster import Cluster
from submerge_bridges.on_dask.scores import score_on, targets_of
from submerge_bridges.on_dask.tables import table_of
from submerge_files import model_file
from submerge_files.python.model import HistoryModel
from submerge_files.score.run import ScoreOrder

READING = {
    "quantity": "temperature",
    "keep": (),
    "columns": None,
    "time": None,
    "time_format": None,
    "long": None,
    "skip": (),
    "zero_is_missing": False,
    "allow_missing": False,
}
"""The options of `submerge score` that read files, by default."""


def lazily_scored(
    model: HistoryModel,
    rows: Any,
    time: str | None,
    names: Sequence[str] | None,
    when: str | None,
    machine: str | None,
) -> Any:
    """Return the scores of a Dask collection, of the same kind."""
    asked = {"time": time, "names": names, "when": when, "machine": machine}
    one = partial(scored_table, model.packed, asked)
    if hasattr(rows, "_meta") and hasattr(rows, "columns"):
        return rows.map_partitions(one, meta=one(rows._meta))
    if not hasattr(rows, "chunks"):
        return rows.map_partitions(partial(scored_records, model.packed, asked))
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


def scored_table(packed: bytes, asked: dict[str, Any], table: Any) -> Any:
    """Return the scores of one partition; `packed` is a model's file."""
    with warnings.catch_warnings():
        # A level says something of all rows, and not of a part of them.
        warnings.simplefilter("ignore", UserWarning)
        return _model(packed).score(table, **asked)


def scored_records(packed: bytes, asked: dict[str, Any], records: Any) -> list[dict[str, Any]]:
    """Return the scores of a bag's partition, a mapping for each row."""
    table = table_of(list(records))
    found: list[dict[str, Any]] = []
    if len(table):
        found = scored_table(packed, asked, table).to_dict("records")
    return found


def scored_files(
    cluster: Cluster,
    model: HistoryModel,
    paths: Sequence[Path],
    folder: str,
    time: str | None,
    when: str | None,
) -> list[str]:
    """Let workers score files, each into a file in a folder; return the paths of these."""
    from submerge_files.score.run import all_files

    files = tuple(all_files(paths))
    order = ScoreOrder(files, None, None, when, False, READING | {"time": time})
    targets = targets_of(order, folder)
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "the model"
        path.write_bytes(model.packed)
        score_on(cluster, order, path, folder)
    return list(targets)


@lru_cache(maxsize=2)
def _model(packed: bytes) -> HistoryModel:
    return HistoryModel(model_file.decoded(packed, "the model"))

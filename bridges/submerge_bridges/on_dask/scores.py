"""Scores of files, each written by the worker that reads it; and of Dask collections, which Dask
computes when it is asked to. There are as many scores as rows: they do not travel. Each FILE has a
file of scores in a folder that all workers can write to, with the bytes that `submerge score FILE`
writes on one machine.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from submerge import UsageError
from submerge_bridges.on_dask.cluster import Call, Cluster, answering
from submerge_bridges.on_dask.rows import table_of
from submerge_files import model_file
from submerge_files.model_file import bytes_of
from submerge_files.python.model import HistoryModel
from submerge_files.reader.formats.remote_path import SCHEME, path_of
from submerge_files.score.model import of_bytes
from submerge_files.score.output import check_target
from submerge_files.score.run import ScoreOrder, all_files, check_scored
from submerge_files.score.summary import ScoreSummary


@answering
def write(
    order: ScoreOrder, model: Path, data: bytes, target: str
) -> tuple[ScoreSummary, list[str]]:
    """Score one file by a model file with that data, and write the scores; return remarks, too."""
    normal, place = of_bytes(data, model, order.rank), path_of(target)
    if SCHEME not in target:
        check_target(place, inputs=order.files)
    summary, remarks = order.carried_out(normal, place, needed=False)
    return summary, [*remarks]


def score_on(
    cluster: Cluster,
    order: ScoreOrder,
    model: Path,
    folder: str,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[ScoreSummary, Iterable[str]]:
    """Score files by a model file; return the summary of all, and remarks."""
    data = bytes_of(model)
    normal = of_bytes(data, model, order.rank)
    targets = targets_of(order, folder)
    shared = cluster.share(data)
    calls = [
        Call((replace(order, files=(path,)), model, shared, target))
        for path, target in zip(order.files, targets, strict=True)
    ]
    summary, remarks = ScoreSummary(normal), dict[str, None]()
    for counted, said in cluster.answers(write, calls):
        summary.take(counted)
        remarks |= dict.fromkeys(said)
        advance(counted.rows)
    check_scored(summary, order.when, normal)
    return summary, remarks


def targets_of(order: ScoreOrder, folder: str) -> Sequence[str]:
    """Return where the scores of each file go."""
    if SCHEME not in folder and not Path(folder).is_dir():
        raise UsageError(
            f"expected a folder for the scores (-o), got {folder!r}: with --dask each FILE has a"
            " file of scores there; make it where all workers can write"
        )
    ending = "scores.jsonl.gz" if order.as_json else "scores.csv.gz"
    found: dict[str, Path] = {}
    for path in order.files:
        name = f"{path.name.split('.')[0]}.{ending}"
        if name in found:
            raise UsageError(
                f"expected files of different names, got {found[name]} and {path}, whose scores"
                f" would both be {name}: score them one after another"
            )
        found[name] = path
    return [f"{folder.rstrip('/')}/{name}" for name in found]


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

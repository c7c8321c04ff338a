"""fit(), score() and detect() on a Dask cluster: `submerge.dask` is their door."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from submerge import UsageError
from submerge.history.recording import Recorded
from submerge_bridges.on_dask.cluster import Cluster
from submerge_bridges.on_dask.command import connected
from submerge_bridges.on_dask.partitions import Collection, collection_of, is_collection, scores_of
from submerge_files.detect import run as judging
from submerge_files.fit.apart import FitApart
from submerge_files.model_file import learnt_of
from submerge_files.python.alarm import AlarmSpan
from submerge_files.python.fitting import reread, settings_of
from submerge_files.python.model import HistoryModel
from submerge_files.python.sources import Source, opened, paths_of
from submerge_files.reader import Recordings
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.score.run import ScoreOrder, all_files, score_apart, targets_of
from submerge_files.stretches import stretches_of


def fit(
    rows: Any,
    *,
    client: Any = None,
    columns: Sequence[str] | None = None,
    time: str | None = None,
    names: Sequence[str] | None = None,
    rank: int | None = None,
    when: str | None = None,
    node_by: str | None = None,
    keep_all: bool = False,
) -> HistoryModel:
    """Learn what is normal from more rows than one machine holds.

    Parameters
    ----------
    rows : Dask frame, array or bag, or path, or list of paths
        Of one machine, in the order of time. A bag is of mappings of columns to values. Paths are
        of files that all workers can read, or such as "s3://bucket/*.parquet".
    client : distributed.Client or str, optional
        Or the address of a scheduler; by default the client that is in use.
    columns, time, names, rank, when, node_by, keep_all
        As in `submerge.Model.fit`; `node_by` is for files.

    Returns
    -------
    submerge.Model
        Of the same files that of `submerge.Model.fit`, to rounding, and the same bytes for any
        number of workers.

    Raises
    ------
    UsageError
        If the rows cannot be read, or the cluster cannot be reached or fails.
    NothingLearnt
        If no row could be learnt, or nothing varies.
    """
    paths = _paths(rows)
    with connected(client) as workers:
        known: Source
        notes: tuple[str, ...] = ()
        if paths is None:
            if node_by is not None:
                raise UsageError("node_by is for files: learn one machine's rows, or name files")
            parts, known = collection_of(rows, columns, time, names)
        else:
            known = opened(paths, names, columns, time, node_by=node_by or "", workers=workers)
            parts, notes = stretches_of(known), known.notes
        settings = settings_of(known.names, rank=rank, when=when, keep_all=keep_all)
        fitted = FitApart(workers, parts, known.channels, settings).run()
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return HistoryModel(reread(learnt_of(fitted)))


def score(
    model: HistoryModel,
    rows: Any,
    *,
    to: str | None = None,
    client: Any = None,
    time: str | None = None,
    names: Sequence[str] | None = None,
    when: str | None = None,
    machine: str | None = None,
) -> Any:
    """Score each row by itself.

    Parameters
    ----------
    model : submerge.Model
    rows
        As in `fit`.
    to : str, optional
        For files: a folder that all workers can write to, or such as "s3://bucket/scores".
    client
        As in `fit`, for files; Dask computes the scores of a collection where it is asked to.
    time, names, when, machine
        As in `submerge.Model.score`; for a collection.

    Returns
    -------
    Dask frame or bag; a dict of Dask arrays for an array; a list of paths for files
        As `submerge.Model.score` returns it, and nothing is computed yet. Of files, the paths of
        their scores, one for each file.
    """
    paths = _paths(rows)
    if paths is None:
        return scores_of(model, rows, time=time, names=names, when=when, machine=machine)
    if to is None:
        raise UsageError(
            'expected to= for the scores of files, got none: name a folder, such as "scores"'
        )
    order = ScoreOrder(tuple(all_files(paths)), when=when, reading={"time": time})
    with connected(client) as workers:
        score_apart(workers, order, model.packed, Path("the model"), to)
    return list(targets_of(order, to))


def detect(
    model: HistoryModel,
    rows: Any,
    *,
    client: Any = None,
    at_most: str = "1 false per week",
    time: str | None = None,
    names: Sequence[str] | None = None,
    when: str | None = None,
    node_by: str | None = None,
    machine: str | None = None,
) -> list[AlarmSpan]:
    """Return the alarms that clients with this model would have raised on rows.

    A monitor's alarms follow from all rows before: each machine of files is judged by one worker.
    The partitions of a collection come here one by one.

    Parameters
    ----------
    model : submerge.Model
    rows, client
        As in `fit`.
    at_most, time, names, when
        As in `submerge.Model.detect`.
    node_by : str, optional
        As in `submerge.Model.fit`, for files.
    machine : str, optional
        Which one a collection is of, for a model of several.

    Returns
    -------
    list of AlarmSpan, machine by machine in the order in which they began.
    """
    paths, judge = _paths(rows), model.judge
    with connected(client) as workers:
        level = judge.level_of(machine)
        source: Recordings | CollectionRows
        if paths is None:
            if names is None and hasattr(rows, "chunks"):
                names = model.channels
            found = collection_of(rows, judge.headings, time, names, machine or ONLY_MACHINE)
            source = CollectionRows(workers, found)
        else:
            by = node_by or ""
            source = opened(paths, names, judge.headings, time, node_by=by, workers=workers)
        request = judge.request(source, level, judge.condition(when), at_most)
        apart = None if paths is None else workers
        alarms = judge.spans(judging.detect(request, workers=apart))
    if level is not None:
        level.warn(stacklevel=2)
    return alarms


class CollectionRows:
    """The parts of a collection, where recordings stand: computed there, one after another."""

    notes: tuple[str, ...] = ()

    def __init__(self, cluster: Cluster, found: Collection) -> None:
        self._cluster, self._parts = cluster, found.parts
        self.headings = found.head.headings

    def rows(self) -> Iterator[Recorded]:
        """Read all rows."""
        for part in self._parts:
            yield from self._cluster.value(part).rows()


def _paths(rows: Any) -> list[Path] | None:
    """Return the files that are meant; None for a Dask collection."""
    if is_collection(rows):
        return None
    paths = paths_of(rows)
    if paths is None:
        raise UsageError(
            "expected a frame, an array or a bag of Dask, or paths, got"
            f" {type(rows).__name__}: submerge.Model takes what is in memory"
        )
    return paths

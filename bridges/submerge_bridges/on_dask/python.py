"""fit(), score() and detect() on a Dask cluster: `submerge.dask` is their door."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from submerge import UsageError
from submerge.condition import Condition, InState, states_in
from submerge.history.fit import fit_rows
from submerge.history.recording import Recorded
from submerge_bridges.on_dask.cluster import Cluster
from submerge_bridges.on_dask.command import connected
from submerge_files import model_file
from submerge_files.fit.apart import RowsApart, settings_for
from submerge_files.model_file import learnt_of, reread
from submerge_files.python.frame_rows import FrameRows, Source, frame_of, opened, paths_of
from submerge_files.python.judge import AlarmSpan
from submerge_files.python.model import HistoryModel
from submerge_files.reader import Recordings
from submerge_files.reader.options import ONLY_MACHINE
from submerge_files.score.output import ALARM
from submerge_files.score.run import ScoreRequest, all_files, score_apart, targets_of


@dataclass(frozen=True)
class PartitionRows:
    """A partition that was computed, as a part of rows (`submerge_files.fit.apart`)."""

    headings: tuple[str, ...]
    time: str | None
    machine: str
    number: int
    states: tuple[InState, ...]
    partition: Any

    def rows(self) -> Iterator[Recorded]:
        table = _table(self.partition)
        if not len(table):
            return
        frame = frame_of(table, self.headings if isinstance(table, np.ndarray) else None)
        asked = self.headings, self.time, self.machine, self.states
        for recorded in FrameRows(frame, *asked, part=True).rows():
            yield replace(recorded, file=f"the frame, part {self.number}")

    def looks(self, when: Condition | None = None) -> Iterator[Recorded]:
        """Return the same: they are in memory."""
        return self.rows()


def collection_of(
    rows: Any,
    columns: Sequence[str] | None,
    time: str | None,
    names: Sequence[str] | None,
    machine: str = ONLY_MACHINE,
    states: tuple[InState, ...] = (),
) -> tuple[list[Any], FrameRows]:
    """Return a Dask collection as parts for workers, and its columns; options as in `fit`."""
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
    head = FrameRows(frame_of(table, names), columns, time, machine, states, part=True)
    read = partial(delayed(PartitionRows, pure=False), head.headings, time, machine)
    return [read(number, states, each) for number, each in enumerate(partitions)], head


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
        scores = _model(packed).score(table, **asked)
    # How close alarms are follows from the rows before, which are in other partitions.
    names = [name for name in scores if not name.startswith(ALARM)]
    return scores[names] if hasattr(scores, "columns") else {each: scores[each] for each in names}


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
    states, rest = states_in(when) if when else ((), None)
    with connected(client) as workers:
        known: Source
        notes: tuple[str, ...] = ()
        if paths is None:
            if node_by is not None:
                raise UsageError("node_by is for files: learn one machine's rows, or name files")
            parts, known = collection_of(rows, columns, time, names, states=states)
        else:
            by = node_by or ""
            known = opened(paths, names, columns, time, node_by=by, states=states, workers=workers)
            parts, notes = known.pieces(), known.notes
        settings = settings_for(known, rank=rank, when=rest, leaves_out=not keep_all)
        fitted = fit_rows(RowsApart(workers, parts), known.channels, settings)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return HistoryModel(reread(learnt_of(fitted, states)))


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
        As `submerge.Model.score` returns it, but for the columns of alarms, which `detect` has;
        nothing is computed yet. Of files, the paths of their scores, one for each file.
    """
    paths = _paths(rows)
    if paths is None:
        return scores_of(model, rows, time=time, names=names, when=when, machine=machine)
    if to is None:
        raise UsageError(
            'expected to= for the scores of files, got none: name a folder, such as "scores"'
        )
    wanted = ScoreRequest.of(model.judge.normal, all_files(paths), when=when, time=time)
    with connected(client) as workers:
        score_apart(workers, wanted, to)
    return list(targets_of(wanted, to))


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
        level = judge.level(machine)
        source: Recordings | CollectionRows
        if paths is None:
            if names is None and hasattr(rows, "chunks"):
                names = model.channels
            states, condition = judge.chosen(when, [*map(str, getattr(rows, "columns", ()))])
            asked = judge.headings, time, names, machine or ONLY_MACHINE, (*states,)
            source = CollectionRows(workers, collection_of(rows, *asked)[0])
        else:
            by = node_by or ""
            source, condition = judge.recordings(
                paths, time, names, when, node_by=by, workers=workers
            )
        alarms = judge.spans(judge.detected(source, condition, at_most, level, workers=workers))
    if level is not None:
        level.warn(stacklevel=2)
    return alarms


@dataclass(frozen=True)
class CollectionRows:
    """The parts of a collection, where recordings stand: computed there, one after another."""

    cluster: Cluster
    parts: Sequence[Any]
    notes: tuple[str, ...] = ()

    def rows(self) -> Iterator[Recorded]:
        for part in self.parts:
            yield from self.cluster.value(part).rows()


def _paths(rows: Any) -> list[Path] | None:
    """Return the files that are meant; None for a Dask collection."""
    if hasattr(rows, "__dask_graph__") and hasattr(rows, "to_delayed"):
        return None
    paths = paths_of(rows)
    if paths is None:
        raise UsageError(
            "expected a frame, an array or a bag of Dask, or paths, got"
            f" {type(rows).__name__}: submerge.Model takes what is in memory"
        )
    return paths

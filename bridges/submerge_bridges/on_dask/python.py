"""fit(), score() and detect() on a Dask cluster: `submerge.dask` is their door."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from submerge import UsageError
from submerge.history.recording import Recorded
from submerge_bridges.on_dask.cluster import Cluster, connected
from submerge_bridges.on_dask.command import DaskCluster
from submerge_bridges.on_dask.history import ClusterFit
from submerge_bridges.on_dask.rows import (
    ClusterRows,
    Collection,
    Partition,
    collection_of,
    frame_rows,
    is_collection,
    table_of,
)
from submerge_bridges.on_dask.scores import lazily_scored, scored_files
from submerge_files.model_file import learnt_of
from submerge_files.python.alarm import AlarmSpan
from submerge_files.python.fitting import reread, settings_of
from submerge_files.python.model import HistoryModel
from submerge_files.reader import ReadingOptions, open_recordings
from submerge_files.reader.formats.remote_path import path_of


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
    paths = [] if is_collection(rows) else _paths(rows)
    with connected(client) as cluster:
        if not paths:
            if node_by is not None:
                raise UsageError("node_by is for files: learn one machine's rows, or name files")
            found = collection_of(rows, columns, time, names)
            source, channels = ClusterRows.of_collection(found), found.head.channels
            notes: tuple[str, ...] = ()
            columns_known = found.names
        else:
            options = _options(columns, time, names, node_by)
            recordings = open_recordings(paths, options, DaskCluster(cluster).digests(options))
            source, channels = ClusterRows.of_files(recordings), recordings.channels
            notes, columns_known = recordings.notes, recordings.names
        settings = settings_of(columns_known, rank=rank, when=when, keep_all=keep_all)
        fitted = ClusterFit(cluster, source, channels, settings).run()
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
    if is_collection(rows):
        return lazily_scored(model, rows, time, names, when, machine)
    if to is None:
        raise UsageError(
            'expected to= for the scores of files, got none: name a folder, such as "scores"'
        )
    with connected(client) as cluster:
        return scored_files(cluster, model, _paths(rows), to, time, when)


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
    paths = [] if is_collection(rows) else _paths(rows)
    with connected(client) as cluster:
        if not paths:
            if names is None and hasattr(rows, "chunks"):
                names = model.channels
            found = collection_of(rows, model.judge.headings, time, names, machine or "machine")
            judge, level = model.judge, model.judge.level_of(machine)
            source = PartitionRows(cluster, found)
            alarms = judge.alarms(source, level, judge.condition(when), at_most)
            if level is not None:
                level.warn(stacklevel=2)
            return alarms
        from submerge_bridges.on_dask.detection import detect_on

        options = _options(model.judge.headings, time, names, node_by)
        recordings = open_recordings(paths, options, DaskCluster(cluster).digests(options))
        judge, level = model.judge, model.judge.level_of(machine)
        request = judge.request(recordings, level, judge.condition(when), at_most)
        detected = detect_on(cluster, request)
    if level is not None:
        level.warn(stacklevel=2)
    return judge.spans(detected)


class PartitionRows:
    """The partitions of a collection, where recordings stand: computed there, one after another."""

    notes: tuple[str, ...] = ()

    def __init__(self, cluster: Cluster, found: Collection) -> None:
        self._cluster, self._found = cluster, found
        self.headings = found.head.headings

    def rows(self) -> Iterator[Recorded]:
        """Read all rows."""
        machine, options = self._found.head.machine, self._found.options
        for number, partition in enumerate(self._found.partitions):
            table = table_of(self._cluster.value(partition))
            yield from frame_rows(table, self._found.names, options, Partition(machine, number))


def _paths(rows: Any) -> list[Any]:
    every = rows if isinstance(rows, list | tuple) else [rows]
    if not every or not all(isinstance(each, str) or hasattr(each, "open") for each in every):
        raise UsageError(
            "expected a frame, an array or a bag of Dask, or paths, got"
            f" {type(rows).__name__}: submerge.Model takes what is in memory"
        )
    return [path_of(str(each)) for each in every]


def _options(
    columns: Sequence[str] | None,
    time: str | None,
    names: Sequence[str] | None,
    node_by: str | None,
) -> ReadingOptions:
    if names is not None:
        raise UsageError("names are for an array: files have headings; leave names out")
    if isinstance(columns, str):
        raise UsageError(f"expected a list of columns, got {columns!r}: write [{columns!r}]")
    return ReadingOptions(tuple(columns or ()), time=time or "", node_by=node_by or "")

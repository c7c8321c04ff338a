"""A job on recorded files, in this process: each file is a node, or each machine of a column.

Rows are scaled as `submerge fit` scales them: else the largest numbers decide. All are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from submerge import Array, Schema
from submerge.errors import PeerError, UsageError
from submerge.jobs.job import Job, Settings
from submerge.jobs.local_run import run_here
from submerge.jobs.membership import KINDS_WITH_CLUSTERS, ClusterMembership
from submerge.stats.moments import Moments, pooled
from submerge_aggregator.jobs.record import JobRecord
from submerge_client.files import atomic_write, writing_to
from submerge_files.console.progress import advancing
from submerge_files.console.units import csv_text
from submerge_files.reader import ReadingOptions, Recordings, open_recordings
from submerge_files.reader.options import BY_FILE
from submerge_operate.fleet.jobs.results import JobResult

COLUMNS = ("node", "row", "cluster", "distance", "over")


def check_rows_file(kind: str, settings: Settings, path: Path) -> None:
    """Refuse a job without clusters, and a file that would not be replaced, before the work."""
    if kind not in KINDS_WITH_CLUSTERS:
        kinds = ", ".join(KINDS_WITH_CLUSTERS)
        raise UsageError(f"--rows is for {kinds}, got {kind}: leave it out")
    if kind in ("kpca", "nystrom") and not settings.get("clusters"):
        raise UsageError("--rows: expected --clusters N beside it, got none: add it")
    if not path.parent.is_dir():
        raise UsageError(f"expected a folder {path.parent} for {path.name}, got none: make it")
    if not path.exists():
        return
    with path.open("rb") as file:
        begin = file.read(64)
    if begin and not begin.startswith(",".join(COLUMNS).encode()):
        raise UsageError(f"{path} exists and is no such list of rows: name another file")


def write_rows(record: JobRecord, asked: JobOnFiles, path: Path) -> None:
    recorded = open_files(asked).rows()
    table = rows_table(JobResult(record), ((each.machine, each.rows) for each in recorded))
    with writing_to(f"rows to {path}"):
        atomic_write(path, table)


def membership_of(result: JobResult) -> ClusterMembership:
    """Return the clusters of an answer, whichever command has it."""
    try:
        return ClusterMembership.of(result.record.job, result.answer)
    except PeerError as error:
        raise UsageError(f"the rows of {result.record.job.id} have no clusters: {error}") from error


def rows_table(result: JobResult, blocks: Iterable[tuple[str, Array]]) -> bytes:
    kept, seen = membership_of(result), dict[str, int]()
    table: list[Sequence[object]] = [COLUMNS]
    for node, rows in blocks:
        found = kept.assign(result.schema.scaled(rows))
        for number, distance, over in zip(
            found.numbers.tolist(), found.distances.tolist(), found.over.tolist(), strict=True
        ):
            seen[node] = seen.get(node, 0) + 1
            if np.isnan(distance):
                table.append([node, seen[node], "", "", ""])
            else:
                table.append([node, seen[node], number + 1, f"{distance:.6g}", over or ""])
    return csv_text(table).encode()


GROUP = "files"  # what the group of such a job is called


class RowsByNode(NamedTuple):
    """The rows of files by node; `parts`: (n, channels) each, in their units, without gaps."""

    parts: dict[str, Array]
    left_out: int


class JobOnFiles(NamedTuple):
    kind: str
    settings: Settings
    paths: list[Path]
    reading: ReadingOptions
    scales: bool = True


def run_on_files(
    asked: JobOnFiles,
    *,
    note: Callable[[str], None],
    began: Callable[[str, int], object] = lambda *_: None,
    shown: bool = True,
) -> JobRecord:
    recordings = open_files(asked)
    found = _rows(recordings, shown=shown)
    for said in recordings.notes:
        note(said)
    if found.left_out:
        note(f"{found.left_out:,} rows with a gap are left out")
    if not any(len(rows) for rows in found.parts.values()):
        raise UsageError("expected rows without a gap, got none: a job needs one or more")
    schema = _schema(recordings, found.parts, scales=asked.scales)
    parts = {name: schema.scaled(rows) for name, rows in found.parts.items()}
    rounds = 0

    def begins(phase: str, number: int) -> None:
        nonlocal rounds
        rounds = number
        began(phase, number)

    answer = run_here(asked.kind, asked.settings, parts, began=begins)
    job = Job(
        *("here", asked.kind, asked.settings, GROUP),
        fingerprint=schema.fingerprint,
        width=schema.width,
    )
    stayed = tuple(sorted(parts))
    return JobRecord(job, schema.canonical, 0.0, 0.0, "", stayed, {}, {}, rounds, 1, answer)


def open_files(asked: JobOnFiles) -> Recordings:
    """Open the files: each is a node, if nothing else is said."""
    options = asked.reading
    if not options.node_by:
        options = replace(options, node_by=BY_FILE)
    return open_recordings(asked.paths, options)


def _rows(recordings: Recordings, *, shown: bool) -> RowsByNode:
    parts: dict[str, list[Array]] = {}
    left_out = 0
    with advancing("rows read", shown=shown) as advance:
        for recorded in recordings.rows():
            whole = recorded.rows[np.isfinite(recorded.rows).all(axis=1)]
            left_out += len(recorded.rows) - len(whole)
            parts.setdefault(recorded.machine, []).append(whole)
            advance(len(recorded.rows))
    return RowsByNode({name: np.concatenate(rows) for name, rows in parts.items()}, left_out)


def _schema(recordings: Recordings, parts: dict[str, Array], *, scales: bool) -> Schema:
    channels = tuple(recordings.channels)
    if not scales:
        return Schema(channels)
    moments = pooled(*(Moments.of(rows) for rows in parts.values() if len(rows)))
    return Schema(channels, scaling=moments.scaling)

"""The cluster of each row of files, by the answer of a job on these files, as a CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from submerge import Array
from submerge.errors import PeerError, UsageError
from submerge.jobs.membership import KINDS_WITH_CLUSTERS, ClusterMembership
from submerge_client.atomic_file import atomic_write
from submerge_operate.fleet.jobs.results import JobResult

if TYPE_CHECKING:
    from submerge_aggregator.jobs.record import JobRecord
    from submerge_operate.fleet.jobs.on_files import JobOnFiles

COLUMNS = ("node", "row", "cluster", "distance", "over")


def check_rows_file(kind: str, path: Path) -> None:
    """Refuse a kind without clusters, and a file that would not be replaced, before the work."""
    if kind not in KINDS_WITH_CLUSTERS:
        kinds = ", ".join(KINDS_WITH_CLUSTERS)
        raise UsageError(f"--rows is for {kinds}, got {kind}: leave it out")
    if not path.parent.is_dir():
        raise UsageError(f"expected a folder {path.parent} for {path.name}, got none: make it")
    if not path.exists():
        return
    with path.open("rb") as file:
        begin = file.read(64)
    if begin and not begin.startswith(",".join(COLUMNS).encode()):
        raise UsageError(f"{path} exists and is no such list of rows: name another file")


def write_rows(record: JobRecord, asked: JobOnFiles, path: Path) -> None:
    """Read the files again, and write the cluster of each row."""
    from submerge_operate.fleet.jobs.on_files import open_files

    recorded = open_files(asked).rows()
    table = rows_table(JobResult(record), ((each.machine, each.rows) for each in recorded))
    try:
        atomic_write(path, table)
    except OSError as error:
        raise UsageError(f"cannot write rows to {path}: {error.strerror}") from error


def membership_of(result: JobResult) -> ClusterMembership:
    """Return the clusters of an answer, whichever command has it.

    Raises
    ------
    UsageError
        If its kind has none, or it is too large.
    """
    try:
        return ClusterMembership.of(result.record.job, result.answer)
    except PeerError as error:
        raise UsageError(f"the rows of {result.record.job.id} have no clusters: {error}") from error


def rows_table(result: JobResult, blocks: Iterable[tuple[str, Array]]) -> bytes:
    """Return a CSV of the rows of nodes, one a line.

    blocks : Rows (n, channels) in their units, NaN is a gap; those of a node in their order.
    """
    kept, seen = membership_of(result), dict[str, int]()
    file = io.StringIO()
    write = csv.writer(file, lineterminator="\n").writerow
    write(COLUMNS)
    for node, rows in blocks:
        found = kept.assign(result.schema.scaled(rows))
        for number, distance, over in zip(
            found.numbers.tolist(), found.distances.tolist(), found.over.tolist(), strict=True
        ):
            seen[node] = seen.get(node, 0) + 1
            if np.isnan(distance):
                write([node, seen[node], "", "", ""])
            else:
                write([node, seen[node], number + 1, f"{distance:.6g}", over or ""])
    return file.getvalue().encode()

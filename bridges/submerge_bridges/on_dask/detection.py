"""detect_on(): alarms on files by a model, found on a cluster: each machine is one task. A
monitor's alarms follow from all rows before, so the rows of a machine are judged one after another,
by one worker. What is found is what `submerge detect` finds on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from submerge import Array
from submerge.history.recording import Recorded
from submerge_bridges.on_dask.cluster import Call, Cluster, answering
from submerge_bridges.on_dask.rows import AnyStretch, ClusterRows, RowReader
from submerge_files.detect.run import (
    Detected,
    DetectRequest,
    JudgedFiles,
    finished,
    judged_rows,
)
from submerge_files.reader.time_order import TimeOrder


@dataclass(frozen=True)
class MachineRows:
    """The rows of a machine, where `Recordings` stand."""

    reader: RowReader
    headings: tuple[str, ...]
    stretches: tuple[AnyStretch, ...]
    notes: tuple[str, ...] = ()

    def rows(self) -> Iterator[Recorded]:
        """Read all rows."""
        order, reader = TimeOrder(), self.reader.on({})
        for stretch in self.stretches:
            yield from reader.rows(stretch, order)


@answering
def find(asked: DetectRequest, rows: MachineRows) -> tuple[JudgedFiles, Array | None]:
    """Return the alarms on a machine, and what else came of its rows; and parts of a level."""
    level = None if asked.level is None else asked.level.fresh()
    found = judged_rows(replace(asked, recordings=rows, level=level))
    return found, None if level is None else level.parts


def detect_on(
    cluster: Cluster, request: DetectRequest, advance: Callable[[int], None] = lambda _: None
) -> Detected:
    """Judge all rows of a request, whose recordings are files."""
    rows = ClusterRows.of_files(request.recordings, cut=False)
    headings, whole = request.recordings.headings, JudgedFiles()
    every = [
        MachineRows(rows.reader, headings, tuple(stretches))
        for _, stretches in groupby(rows.stretches, lambda each: each.machine)
    ]
    asked = cluster.share(replace(request, recordings=every[0]))
    for found, parts in cluster.answers(find, [Call((asked, each)) for each in every]):
        _take(whole, found)
        advance(found.rows)
        if request.level is not None and parts is not None:
            request.level.take(parts)
    return finished(request, whole)


def _take(whole: JudgedFiles, part: JudgedFiles) -> None:
    """Put what came of another machine beside the others."""
    whole.alarms |= part.alarms
    whole.rows += part.rows
    whole.judged += part.judged
    whole.stated_rows = max(whole.stated_rows, part.stated_rows)
    whole.left_out.update(part.left_out)
    whole.periods.follow(part.periods)

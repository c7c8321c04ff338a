"""detect_on(): alarms on files by a model, found on a cluster: each machine is one task. A
monitor's alarms follow from all rows before, so the rows of a machine are judged one after another,
by one worker. What is found is what `submerge detect` finds on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from submerge import Array, Schema
from submerge.history.recording import Recorded
from submerge_bridges.on_dask.cluster import Call, Cluster, answering
from submerge_bridges.on_dask.portions import Portion, PortionReading
from submerge_bridges.on_dask.sources import ClusterRows
from submerge_files.detect.run import (
    AnotherLevel,
    Detected,
    DetectRequest,
    JudgedFiles,
    finished,
    judged_rows,
)
from submerge_files.reader.time_order import TimeOrder


@dataclass(frozen=True)
class PortionRows:
    """The rows of a portion, where `Recordings` stand."""

    reading: PortionReading
    headings: tuple[str, ...]
    portion: Portion
    notes: tuple[str, ...] = ()

    def rows(self) -> Iterator[Recorded]:
        """Read all rows."""
        order, reading = TimeOrder(), self.reading.on(())
        for stretch in self.portion.stretches:
            yield from reading.rows(self.portion.machine, stretch, order)


@answering
def find(asked: DetectRequest, rows: PortionRows) -> tuple[JudgedFiles, Array]:
    """Return the alarms on a machine, and what else came of its rows; and medians of a level."""
    names, level = Schema.parse(asked.model.schema).names, None
    if asked.level is not None:
        level = AnotherLevel(names, np.zeros(len(names)), np.ones(len(names)))
    found = judged_rows(replace(asked, recordings=rows, level=level))
    return found, np.empty((0, len(names))) if level is None else level.medians


def detect_on(
    cluster: Cluster,
    request: DetectRequest,
    rows: ClusterRows,
    advance: Callable[[int], None] = lambda _: None,
) -> Detected:
    """Judge all rows by a request, whose recordings are these rows."""
    headings, whole = request.recordings.headings, JudgedFiles()
    every = [
        PortionRows(rows.reading, headings, Portion(machine, stretches, len(stretches)))
        for machine, stretches in rows.machines.items()
    ]
    asked = cluster.share(replace(request, recordings=every[0]))
    for found, medians in cluster.answers(find, [Call((asked, each)) for each in every]):
        _take(whole, found)
        advance(found.rows)
        if request.level is not None:
            request.level.take(medians, found.rows)
    return finished(request, whole)


def _take(whole: JudgedFiles, part: JudgedFiles) -> None:
    """Put what came of another machine beside the others."""
    whole.alarms |= part.alarms
    whole.rows += part.rows
    whole.judged += part.judged
    whole.stated_rows = max(whole.stated_rows, part.stated_rows)
    whole.left_out.update(part.left_out)
    whole.periods.follow(part.periods)

"""detect_on(): alarms on files by a model, found on a cluster: each machine is one task.

A monitor's alarms follow from all rows before, so the rows of a machine are judged one after
another, by one worker. What is found is what `submerge detect` finds on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np

from submerge import Schema
from submerge.condition import Condition
from submerge.history.recording import Recorded, TimeSpan
from submerge.protocol.settings import AlarmSettings
from submerge_bridges.on_dask.alarms_form import judged_of, judged_text
from submerge_bridges.on_dask.answers import answering
from submerge_bridges.on_dask.cluster import Call, Cluster
from submerge_bridges.on_dask.packing import packed, unpacked
from submerge_bridges.on_dask.portions import Portion, PortionReading
from submerge_bridges.on_dask.sources import ClusterRows
from submerge_files import model_file
from submerge_files.detect.level import AnotherLevel
from submerge_files.detect.run import (
    Detected,
    DetectRequest,
    JudgedFiles,
    finished,
    judged_rows,
    learnt_of,
)
from submerge_files.reader.time_order import TimeOrder
from submerge_proto.files import learnt as learnt_file


class PortionRows:
    """The rows of portions, where `Recordings` stand."""

    def __init__(
        self, reading: PortionReading, headings: Sequence[str], portions: Sequence[Portion]
    ) -> None:
        self._reading, self._portions = reading, portions
        self.headings, self.notes = tuple(headings), ()

    def rows(self) -> Iterator[Recorded]:
        """Read all rows."""
        for portion in self._portions:
            order = TimeOrder()
            for stretch in portion.stretches:
                yield from self._reading.rows(portion.machine, stretch, order)


@answering
def find(job: bytes, model: bytes, work: bytes) -> bytes:
    """Return the alarms on machines, and what else came of their rows."""
    head, _ = unpacked(job)
    portions = [Portion(*each) for each in unpacked(work)[0]["portions"]]
    saved = model_file.decoded(model, "the model")
    names, when = saved.schema.names, head["when"]
    level = None
    if head["level"]:
        level = AnotherLevel(names, np.zeros(len(names)), np.ones(len(names)))
    request = DetectRequest(
        PortionRows(PortionReading.of(head["reading"], ()), head["headings"], portions),
        saved.model,
        learnt_of(saved),
        AlarmSettings(**head["alarms"]),
        None if when is None else Condition.parse(when, names),
        tuple(TimeSpan(*each) for each in head["without"]),
        level,
    )
    found = judged_rows(request)
    medians = b"" if level is None else level.medians.astype("<f8").tobytes()
    return packed(judged_text(found), [medians])


def detect_on(
    cluster: Cluster,
    request: DetectRequest,
    rows: ClusterRows,
    advance: Callable[[int], None] = lambda _: None,
) -> Detected:
    """Judge all rows by a request, whose recordings are these rows."""
    names = Schema.parse(request.model.schema).names
    job = packed(
        {
            "reading": rows.reading.as_text(),
            "headings": request.recordings.headings,
            "alarms": asdict(request.alarms),
            "when": None if request.when is None else str(request.when),
            "without": request.without,
            "level": request.level is not None,
        }
    )
    model = cluster.share(learnt_file.packed(replace(request.learnt, model=request.model)))
    calls = []
    for machine, stretches in rows.machines.items():
        portion = Portion(machine, stretches, len(stretches))
        calls.append(Call((job, model, packed({"portions": [portion]}))))
    whole = JudgedFiles()
    for head, (medians,) in cluster.answers(find, calls):
        found = judged_of(head)
        _take(whole, found)
        advance(found.rows)
        if request.level is not None:
            known = np.frombuffer(medians, dtype="<f8").reshape(-1, len(names))
            request.level.take(known, found.rows)
    return finished(request, whole)


def _take(whole: JudgedFiles, part: JudgedFiles) -> None:
    """Put what came of another machine beside the others."""
    whole.alarms |= part.alarms
    whole.rows += part.rows
    whole.judged += part.judged
    whole.stated_rows = max(whole.stated_rows, part.stated_rows)
    whole.left_out.update(part.left_out)
    whole.periods.follow(part.periods)

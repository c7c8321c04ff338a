"""JudgedRows: what came of recorded rows; and HistoryDetector, the alarms that a client would have
raised on them.

Rows pass the client's own monitor. Neither model nor limits learn from them: a fault must not raise
the limit. The monitor's clock counts rows, so that alarms are found at their rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.alarms.detect import LONGER
from submerge.client.alarms.detector import (
    AlarmDetector,
    DetectorState,
    RecentScores,
    row_statistics,
)
from submerge.client.alarms.log import Evidence
from submerge.client.monitor import NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.condition import Condition
from submerge.history.knowledge import Learnt, follow
from submerge.history.recording import Recorded
from submerge.history.settings import SOON
from submerge.judge.decision import Mask
from submerge.judge.prepare import REASONS, Block, RowTime, prepare
from submerge.judge.score import RowScores
from submerge.protocol.alarm_status import Alarm, Deviation
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Schema
from submerge.stats.block_maxima import WITH_FACTORS, WITHOUT_FACTORS, By

TOP = 3
"""Channels that are named for each row."""

AT_ONCE = 128
"""Rows that are judged together: fewer alarms end in them than a client remembers."""


class RowPlace:
    """Where a row is: its number in the file, from 1, and seconds since 1970, NaN without times."""

    __slots__ = ("file", "row", "time")

    def __init__(self, file: str, row: int, time: float) -> None:
        self.file, self.row, self.time = file, row, time


@dataclass(frozen=True, slots=True, eq=False)
class FoundAlarm:
    """An alarm on recorded rows, whose times count rows; `ended` is None if the rows ended first.

    `deviations`: how far the channels to blame were from what the others say, at the peak.
    """

    alarm: Alarm
    began: RowPlace
    peaked: RowPlace
    ended: RowPlace | None = None
    deviations: tuple[Deviation, ...] = ()


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows of one machine or file that were judged together, from the file's row `first` on.

    block : Says of all rows why they have no score, and has the m others.
    over : The statistics that alarms are raised by (k of m rows), over their limits; (m,) each.
    alarmed : (m,), rows of an open alarm; None where no alarms are raised.
    times : (m,), seconds since 1970, or None.
    """

    block: Block
    scores: RowScores
    first: int = 1
    over: Mapping[By, Array] = field(default_factory=dict)
    alarmed: Mask | None = None
    times: Array | None = None

    @cached_property
    def filled(self) -> npt.NDArray[np.intp]:
        """(m,), how many numbers were filled."""
        gaps = self.block.gaps
        return np.zeros(len(self.block), dtype=int) if gaps is None else gaps.sum(axis=1)

    @cached_property
    def top(self) -> tuple[npt.NDArray[np.intp], Array]:
        """(m, up to `TOP`), channels to blame, the largest share first; and their shares."""
        return self.scores.top(TOP)

    def everywhere(self, values: Array) -> Array:
        """Return values (m,) as those of all rows, NaN for rows without a score."""
        found = np.full(len(self.block.why), np.nan)
        found[self.block.which] = values
        return found


def over_limits(
    before: RecentScores,
    even: Mapping[By, Array],
    limits: Mapping[By, float],
    alarms: AlarmSettings,
) -> tuple[dict[By, Array], RecentScores]:
    """Return the statistics that alarms are raised by, over their limits; and the recent scores."""
    watched, of = before.watched(even), alarms.of
    n = len(next(iter(watched.values())))
    span = before.span(watched, (LONGER + 1) * of - 2)
    found = row_statistics(tuple(watched), span[:, -(n + of - 1) :], of, alarms.after)
    over = {
        kind: each / limits[kind]
        for kind, each in zip(watched, found, strict=True)
        if limits.get(kind, 0.0) > 0
    }
    return over, RecentScores(tuple(watched), span[:, n:])


def watching(learnt: Learnt, alarms: AlarmSettings = SOON) -> AlarmDetector:
    """Return a detector with the limits that rows of files are judged by: all of the history."""
    model, alarms = learnt.model, replace(alarms, period_s=learnt.period_s or 1.0)
    kinds = WITH_FACTORS if model.factors else WITHOUT_FACTORS
    detector = AlarmDetector.of("", alarms, (), DetectorState(highest=learnt.highest))
    counts = model.widened, model.block_s, model.counts.learnt
    return detector.with_maxima(model.maxima, kinds, *counts).with_own_limits(0.0)


class HistoryDetector:
    """Detects alarms on recorded rows of one machine.

    state : What is known of the channels.
    period_s : Time that a row stands for; 0 without times.
    when : Rows for which it does not hold are not judged.
    machine : Its name, in alarms.

    found : By number, in the order in which they began.
    left_out : Rows that were not judged, by reason.
    """

    def __init__(
        self,
        model: Model,
        state: MonitorState | None,
        period_s: float,
        alarms: AlarmSettings,
        when: Condition | None = None,
        machine: str = "machine",
    ) -> None:
        self._model, self._schema, self._when = model, Schema.parse(model.schema), when
        self._row_s, self._alarms = period_s or 1.0, alarms
        settings = ClientSettings(
            machine,
            "history",
            "file",
            alarms=replace(alarms, period_s=self._row_s),
            fills_gaps=True,
        )
        summaries = Subspaces(model.rank, rank_max=max(model.rank, 1))
        self._monitor = NodeMonitor(settings, self._schema, summaries, state)
        detector, known = (
            self._monitor.detector,
            DetectorState() if state is None else state.detector,
        )
        if detector is not None:
            self._monitor.detector = replace(detector, highest=known.highest, counts_rows=False)
        self._rows = 0
        self.found: dict[int, FoundAlarm] = {}
        self.left_out: Counter[str] = Counter()

    @property
    def monitor(self) -> NodeMonitor:
        """The monitor that judges."""
        return self._monitor

    @property
    def stated_rows(self) -> float:
        """Rows in which limits are exceeded once, if they are provisional; else 0."""
        detector = self._monitor.detector
        return 0.0 if detector is None else detector.limits.provisional_s / self._row_s

    def add(self, recorded: Recorded) -> Iterator[JudgedRows]:
        """Judge rows that follow those before."""
        for start in range(0, len(recorded.rows), AT_ONCE):
            judged = self._judge(recorded, start, min(start + AT_ONCE, len(recorded.rows)))
            if judged is not None:
                yield judged

    def _judge(self, recorded: Recorded, start: int, stop: int) -> JudgedRows | None:
        monitor, model = self._monitor, self._model
        self._rows += stop - start
        at = self._rows * self._row_s
        now = Now(at, at)
        block = prepare(
            recorded.rows[start:stop],
            self._schema,
            fill=lambda gappy: monitor.filled(gappy, model),
            when=self._when,
            time=RowTime(self._row_s),
            judges=True,
        )
        if block.left_out:
            self.left_out.update(REASONS[why] for why in block.why.tolist() if why)
        if not len(block):
            return None
        before = None if monitor.detector is None else monitor.detector.recent
        judgement = monitor.judge(block, model, now)
        # Where each machine is measured from its own mean, that goes on following its rows.
        follow(monitor, block, judgement)
        self._follow(recorded, start, block, judgement.scores, now)
        which = block.which
        times = None if recorded.times is None else recorded.times[start:stop][which]
        scores, over, detector = judgement.scores, dict[By, Array](), monitor.detector
        if before is not None and detector is not None:
            over, _ = over_limits(before, scores.even, detector.limits.known, self._alarms)
        first, alarmed = recorded.number(start), judgement.decision.alarmed
        return JudgedRows(block, scores, first, over, alarmed, times)

    def _follow(
        self, recorded: Recorded, start: int, block: Block, scores: RowScores, now: Now
    ) -> None:
        """Compare the alarms with those that were found before."""
        which, last = block.which, len(block) - 1

        def row_of(at: float) -> int:
            back = round((now.wall - at) / self._row_s)
            return min(max(last - back, 0), last)

        def place(at: float) -> RowPlace:
            row = start + int(which[row_of(at)])
            time = np.nan if recorded.times is None else float(recorded.times[row])
            return RowPlace(recorded.file, recorded.number(row), time)

        for alarm in reversed(self._monitor.alarms):
            known = self.found.get(alarm.number)
            if known is not None and (known.alarm is alarm or known.ended is not None):
                continue
            began = place(alarm.began) if known is None else known.began
            if known is not None and known.alarm.peaked == alarm.peaked:
                peaked, deviations = known.peaked, known.deviations
            else:
                peaked = place(alarm.peaked)
                deviations = self._deviations(alarm, block, scores, row_of(alarm.peaked))
            ended = None if alarm.is_open else place(alarm.ended)
            self.found[alarm.number] = FoundAlarm(alarm, began, peaked, ended, deviations)

    def _deviations(
        self, alarm: Alarm, block: Block, scores: RowScores, row: int
    ) -> tuple[Deviation, ...]:
        """Return how far the channels to blame are from what the others say, in a row."""
        evidence = Evidence.of((), block, scores, self._schema.scaling)
        if evidence is None:
            return ()
        names = self._monitor.names
        blamed = [names.index(name) for name, _ in alarm.first or alarm.top]
        return evidence.at(row, alarm.worst).deviations(names, blamed)

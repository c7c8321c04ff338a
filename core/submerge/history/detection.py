"""RowJudge: recorded rows judged as a client does; HistoryDetector, the alarms of them.

Neither model nor limits learn from the rows: a fault must not raise the limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.alarms.blocks import KeptBlocks
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
from submerge.drill.response import NodeScorer
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
from submerge.stats.resolution import Resolution
from submerge.stats.statistic import By, raised_by

TOP = 3  # channels that are named for each row
AT_ONCE = 128  # rows that are judged together: fewer alarms end in them than a client remembers


class RowPlace(NamedTuple):
    """Where a row is."""

    file: str
    row: int  # its number in the file, from 1
    time: float  # seconds since 1970, NaN without times


@dataclass(frozen=True, slots=True, eq=False)
class FoundAlarm:
    """An alarm on recorded rows, whose times count rows."""

    alarm: Alarm
    began: RowPlace
    peaked: RowPlace
    ended: RowPlace | None = None  # None if the rows ended first
    deviations: tuple[Deviation, ...] = ()  # at the peak


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows of one machine or file that were judged together, from the file's row `first` on."""

    block: Block  # says of all rows why they have no score, and has the m others
    scores: RowScores
    first: int = 1
    how_far: Callable[[], Mapping[By, Array]] = dict
    alarmed: Mask | None = None  # (m,), rows of an open alarm; None where no alarms are raised
    times: Array | None = None  # (m,), seconds since 1970, or None

    @cached_property
    def over(self) -> Mapping[By, Array]:
        """The statistics that alarms are raised by (k of m rows), over their limits; (m,) each."""
        return self.how_far()

    @cached_property
    def filled(self) -> npt.NDArray[np.intp]:
        """(m,), how many numbers were filled."""
        gaps = self.block.gaps
        return np.zeros(len(self.block), dtype=int) if gaps is None else gaps.sum(axis=1)

    @cached_property
    def top(self) -> tuple[npt.NDArray[np.intp], Array]:
        """(m, up to `TOP`), channels to blame, the largest share first; and their shares."""
        return self.scores.top(TOP)

    @cached_property
    def twins(self) -> Mask:
        """(m,), whether either of the first two of `top` may be to blame."""
        return self.scores.twins(self.top[0])

    def everywhere(self, values: Array) -> Array:
        """Return values (m,) as those of all rows, NaN for rows without a score."""
        found = np.full(len(self.block.why), np.nan)
        found[self.block.which] = values
        return found


def watching(
    learnt: Learnt, alarms: AlarmSettings = SOON, state: MonitorState | None = None
) -> AlarmDetector:
    """Return a detector with the limits by all of the history, or those of a machine's `state`."""
    model, alarms = learnt.model, replace(alarms, period_s=learnt.period_s or 1.0)
    kinds = raised_by(factors=bool(model.factors))
    hours = KeptBlocks() if state is None else state.detector.hours
    kept = DetectorState(
        highest=learnt.highest, hours=KeptBlocks(hours.windows, hours.blocks, block_s=hours.block_s)
    )
    detector = AlarmDetector.of("", alarms, (), kept)
    counts = model.widened, model.block_s, model.counts.learnt
    return detector.with_maxima(model.maxima, kinds, *counts).with_own_limits(0.0)


Scored = tuple[RowScores, Callable[[], Mapping[By, Array]], Mask | None]
"""Scores of a block's rows; how far they are over and which are alarmed, as in `JudgedRows`."""


class ByModel:
    """Scores by a model alone; only how close rows come (`watch`) depends on those before."""

    row_s = 0.0

    def __init__(self, scorer: NodeScorer, watch: AlarmDetector | None = None) -> None:
        self.schema, self.filled = scorer.schema, scorer.filled
        self._scorer, self._watch, self._recent = scorer, watch, RecentScores()
        self._resolution = Resolution.none(scorer.channels)
        if scorer.steps is not None:
            self._resolution = self._resolution._replace(before=scorer.steps.before)

    def scored(self, block: Block) -> Scored:
        """Score rows that follow those before."""
        self._resolution, steps = self._resolution.after(block.known(self._scorer.channels))
        scores = self._scorer.scored(replace(block, steps=steps or self._resolution.steps))
        own, watch = self._scorer.own, self._watch
        if watch is None or not len(block):
            return scores, dict, None
        even = scores.even
        if own is not None and not own.settled:
            # About a mean of less than a day, no channel's error raises an alarm.
            even = {kind: each for kind, each in even.items() if kind != "channel"}
        over, self._recent = _over(self._recent, even, watch.limits.known, watch.settings)
        return scores, lambda: over, None


class ByMonitor:
    """Scores by a client's monitor, which goes on learning how channels behave, from a `state`."""

    def __init__(
        self,
        model: Model,
        state: MonitorState | None,
        row_s: float,
        alarms: AlarmSettings,
        machine: str,
    ) -> None:
        self.model, self.schema, self.row_s = model, Schema.parse(model.schema), row_s
        alarms = replace(alarms, period_s=row_s)
        settings = ClientSettings(machine, "history", "file", alarms=alarms, fills_gaps=True)
        summaries = Subspaces(model.rank, rank_max=max(model.rank, 1))
        if state is not None and state.resolution is not None:
            # A channel is as coarse as its history, or as these rows.
            state = replace(state, resolution=state.resolution.restarted)
        self.monitor = NodeMonitor(settings, self.schema, summaries, state)
        detector, known = self.monitor.detector, DetectorState()
        if state is not None:
            known = state.detector
        if detector is not None:
            self.monitor.detector = replace(detector, highest=known.highest, counts_rows=False)
        self.rows = 0  # so far, whether they could be scored or not

    @property
    def now(self) -> float:
        """The monitor's time: after the rows so far."""
        return self.rows * self.row_s

    def filled(self, rows: Array) -> Array:
        return self.monitor.filled(rows, self.model)

    def scored(self, block: Block) -> Scored:
        monitor, before = self.monitor, self.monitor.detector
        judgement = monitor.judge(block, self.model, Now(self.now, self.now))
        # Where each machine is measured from its own mean, that goes on following its rows.
        follow(monitor, block, judgement)
        even, after = judgement.scores.even, monitor.detector

        def over() -> Mapping[By, Array]:
            if before is None or after is None:
                return {}
            return _over(before.recent, even, after.limits.known, after.settings)[0]

        return judgement.scores, over, judgement.decision.alarmed


def _over(
    before: RecentScores,
    even: Mapping[By, Array],
    limits: Mapping[By, float],
    alarms: AlarmSettings,
) -> tuple[dict[By, Array], RecentScores]:
    """Return the statistics that alarms are raised by, over their limits; and the recent scores."""
    watched, of = before.watched(even, lambda kind: limits.get(kind, math.inf)), alarms.of
    n = len(next(iter(watched.values())))
    span = before.span(watched, (LONGER + 1) * of - 2)
    found = row_statistics(tuple(watched), span[:, -(n + of - 1) :], of, alarms.after)
    over = {
        kind: each / limits[kind]
        for kind, each in zip(watched, found, strict=True)
        if limits.get(kind, 0.0) > 0
    }
    return over, RecentScores(tuple(watched), span[:, n:])


class RowJudge:
    """Judges the rows of a machine or file that meet `when`, prepared and scored as by a client."""

    def __init__(self, by: ByModel | ByMonitor, when: Condition | None = None) -> None:
        self._by, self._when = by, when

    def prepare(
        self, rows: Array, unscored: npt.NDArray[np.int8] | None = None, *, judges: bool = True
    ) -> Block:
        """Scale and fill rows (n, channels) in their units, lags included."""
        by, when, time = self._by, self._when, RowTime(self._by.row_s)
        block = prepare(rows, by.schema, fill=by.filled, when=when, time=time, judges=judges)
        # It says of these, with 0, and of others, which are not there, why these have no score.
        if unscored is None or len(unscored) == len(rows):
            return block
        why = unscored.copy()
        why[unscored == 0] = block.why
        return replace(block, why=why)

    def judge(self, block: Block, first: int = 1, times: Array | None = None) -> JudgedRows:
        """Judge a block; `first` and `times` of all its rows."""
        scores, over, alarmed = self._by.scored(block)
        known = None if times is None else times[block.which]
        return JudgedRows(block, scores, first, over, alarmed, known)


class HistoryDetector:
    """Detects alarms on recorded rows of one machine.

    state : What is known of the channels.
    period_s : Time that a row stands for; 0 without times.
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
        self._by = ByMonitor(model, state, period_s or 1.0, alarms, machine)
        self._judge = RowJudge(self._by, when)
        self.found: dict[int, FoundAlarm] = {}
        self.left_out: Counter[str] = Counter()

    @property
    def monitor(self) -> NodeMonitor:
        return self._by.monitor

    @property
    def stated_rows(self) -> float:
        """Rows in which limits are exceeded once, if they are provisional; else 0."""
        detector = self.monitor.detector
        return 0.0 if detector is None else detector.limits.provisional_s / self._by.row_s

    def add(self, recorded: Recorded) -> Iterator[JudgedRows]:
        """Judge rows that follow those before."""
        for start in range(0, len(recorded.rows), AT_ONCE):
            some = recorded.part(start, min(start + AT_ONCE, len(recorded.rows)))
            self._by.rows += len(some.rows)
            block = self._judge.prepare(some.rows)
            if block.left_out:
                self.left_out.update(REASONS[why] for why in block.why.tolist() if why)
            if len(block):
                judged = self._judge.judge(block, some.first, some.times)
                self._follow(some, judged)
                yield judged

    def _follow(self, recorded: Recorded, judged: JudgedRows) -> None:
        """Compare the alarms with those that were found before."""
        which, last = judged.block.which, len(judged.block) - 1

        def row_of(at: float) -> int:
            back = round((self._by.now - at) / self._by.row_s)
            return min(max(last - back, 0), last)

        def place(at: float) -> RowPlace:
            row = int(which[row_of(at)])
            time = np.nan if recorded.times is None else float(recorded.times[row])
            return RowPlace(recorded.file, recorded.number(row), time)

        for alarm in reversed(self.monitor.alarms):
            known = self.found.get(alarm.number)
            if known is not None and (known.alarm is alarm or known.ended is not None):
                continue
            began = place(alarm.began) if known is None else known.began
            if known is not None and known.alarm.peaked == alarm.peaked:
                peaked, deviations = known.peaked, known.deviations
            else:
                peaked = place(alarm.peaked)
                deviations = self._deviations(alarm, judged, row_of(alarm.peaked))
            ended = None if alarm.is_open else place(alarm.ended)
            self.found[alarm.number] = FoundAlarm(alarm, began, peaked, ended, deviations)

    def _deviations(self, alarm: Alarm, judged: JudgedRows, row: int) -> tuple[Deviation, ...]:
        """Return how far the channels to blame are from what the others say, in a row."""
        evidence = Evidence.of((), judged.block, judged.scores, self._by.schema.scaling)
        if evidence is None:
            return ()
        names = self.monitor.names
        blamed = [names.index(name) for name, _ in alarm.first or alarm.top]
        return evidence.at(row, alarm.worst).deviations(names, blamed)

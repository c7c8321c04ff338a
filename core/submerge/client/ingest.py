"""Ingest: the way of a client's readings: it prepares, scores and judges them, and learns them.

Rows are scored with the newest model before they are learnt. Of the model nothing is learnt but the
values in filled gaps. Every row counts, as learnt or as withheld; the `Decision` alone says which.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from submerge._linalg import Array
from submerge.client.drill import ClientDrill, DrillAnswer
from submerge.client.few_rows import Priorities
from submerge.client.incarnation import ClientIncarnation
from submerge.client.monitor import Judgement, NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.judge.decision import Mask
from submerge.judge.prepare import TOO_LARGE, Block, Fill, RowClock, prepare
from submerge.pca.expectation import Guesses
from submerge.pca.subspace import LARGEST
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Effect, NewCertificate, Note, Now, Scored, Send
from submerge.protocol.messages import Model, ScoreSketches, Stamp
from submerge.protocol.names import RandomSource
from submerge.protocol.score_trail import NO_TRAIL, level_of
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries, Summary
from submerge.stats.quantile_sketch import SketchTally

# Devices speak at their own times, and one that is away for an hour must not keep all others from
# being measured. Its gaps are filled with its mean so far, as known ones are filled with the
# model's mean before there is a model. A channel that has never come has none: its rows wait for
# it.


class FirstMeans:
    """The means of channels, in their units."""

    def __init__(self, width: int, offsets: tuple[float, ...] = ()) -> None:
        self._sums, self._counts = np.zeros(width), np.zeros(width)
        self._offsets = np.array(offsets) if len(offsets) == width else np.full(width, np.nan)

    def see(self, rows: Array) -> None:
        """Take rows (n, channels); NaN is a gap, and numbers that no engine takes are none."""
        known = np.abs(rows) < LARGEST
        self._sums += np.where(known, rows, 0.0).sum(axis=0)
        self._counts += known.sum(axis=0)

    def filled(self, rows: Array) -> Array:
        """Return rows (n, channels) with the mean in each gap whose channel has one."""
        with np.errstate(invalid="ignore"):
            means = np.where(self._counts > 0, self._sums / self._counts, self._offsets)
        return np.asarray(np.where(np.isnan(rows), means, rows))


class Ingest:
    """The way of a client's readings into its incarnation.

    rng : Draws the sample that settles gamma.
    monitor : None before the first row under a settled schema.
    trail : How close rows came to an alarm, by the minute; lost with the process.
    """

    def __init__(self, summaries: Summaries, rng: RandomSource, settings: ClientSettings) -> None:
        self._summaries, self._rng, self._settings = summaries, rng, settings
        self._spe, self._t2, self._linear = SketchTally(), SketchTally(), SketchTally()
        self._distance = SketchTally()
        self.monitor: NodeMonitor | None = None
        self._kept: MonitorState | None = None
        self._learnt: tuple[ClientIncarnation | None, int, Summary | None] = None, 0, None
        self._first_means: FirstMeans | None = None  # while the scaling is open, or none is learnt
        self._drill: ClientDrill | None = None
        self.drilled: DrillAnswer | None = None
        self.trail = NO_TRAIL
        self._clock = RowClock(0.0 if settings.alarms is None else settings.alarms.period_s)

    def load(self, kept: MonitorState | None) -> None:
        """Take the monitor's state from the process before."""
        self._kept = kept

    @property
    def kept(self) -> MonitorState | None:
        """What the next process has to know; None if there is nothing."""
        return self._kept if self.monitor is None else self.monitor.kept

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The open one, and those that ended last."""
        if self.monitor is None:
            return () if self._kept is None else self._kept.detector.alarms
        return self.monitor.alarms

    def monitor_for(self, current: ClientIncarnation) -> NodeMonitor | None:
        """Return the monitor for that incarnation's schema; None while it is not settled."""
        if not current.learns:
            return None
        if self.monitor is None or self.monitor.fingerprint != current.fingerprint:
            self.monitor = NodeMonitor(self._settings, current.schema, self._summaries, self.kept)
        return self.monitor

    def alarm_status(self, now: Now) -> AlarmStatus | None:
        """Return the alarm status of a report, if there is any."""
        return None if self.monitor is None else self.monitor.alarm_status(now)

    def apply(
        self, desired_states: Iterable[DesiredState], current: ClientIncarnation, now: Now
    ) -> list[Note | NewCertificate]:
        """Apply the desired states of this node; return what follows from each that was new."""
        monitor, notes = self.monitor_for(current), list[Note | NewCertificate]()
        for desired in desired_states:
            if monitor is not None and desired.node == self._settings.node:
                before = monitor.desired
                if monitor.apply(desired, now):
                    notes.append(_applied_note(before, desired))
                    if desired.certificate != before.certificate:
                        notes.append(NewCertificate(desired.certificate))
                    if monitor.desired.drill > before.drill:
                        notes += self._begin_drill(monitor, now)
        return notes

    @property
    def drill_due_at(self) -> float:
        """When the next slice of a drill is due, on the steady clock; infinite without a drill."""
        return math.inf if self._drill is None else self._drill.due_at

    def drill_on(self, current: ClientIncarnation, now: Now) -> list[Effect]:
        """Do what is due of a drill, if one is under way; at its end, log and send the answer."""
        drill, monitor = self._drill, self.monitor
        if drill is None or monitor is None:
            return []
        drill.step(now)
        if not drill.done:
            return []
        self._drill, self.drilled = None, drill.answer or self.drilled
        note, answer, settings = drill.note(monitor.names), drill.answer, self._settings
        if answer is None or current.pin is None:
            return [note]
        stamp = Stamp(settings.node, settings.group, current.incarnation, current.seq)
        return [note, Send(settings.parent, answer.report(stamp, now))]

    def _begin_drill(self, monitor: NodeMonitor, now: Now) -> list[Note]:
        """Begin a drill that an operator has asked for; a later one takes its place."""
        task = monitor.drill_task()
        if task is None:
            return [
                Note("drill not done", {"why": "there is no model yet, or there are no alarms"})
            ]
        self._drill = ClientDrill(task, self._rng, now)
        return []

    @property
    def scores(self) -> ScoreSketches | None:
        """Sketches of recent scores, and the maxima of blocks; None before the first score."""
        spe, linear = self._spe.sketch, self._linear.sketch
        maxima = None if self.monitor is None else self.monitor.maxima
        # Maxima outlive the process: the group must not lose them while it begins again.
        if not spe.n and (maxima is None or not maxima.longest):
            return None
        distance = self._distance.sketch
        return ScoreSketches(
            spe,
            self._t2.sketch,
            linear if linear.n else None,
            maxima,
            distance if distance.n else None,
        )

    def read(
        self,
        rows: Array,
        current: ClientIncarnation,
        model: Model | None,
        now: Now,
        held: Mask | None = None,
    ) -> Scored | None:
        """Let an incarnation learn rows (n, channels), in their units; return their scores."""
        monitor = self.monitor_for(current)
        # Without a settled schema there can be no model, whatever a parent sends.
        if model is not None and (
            monitor is None or model.summary is None or model.fingerprint != current.fingerprint
        ):
            model = None
        clock, time = self._clock.read(now.steady)
        heard, rows = rows, rows if monitor is None else monitor.admit(rows)
        self._see(rows, current)
        block = prepare(
            rows,
            current.schema,
            fill=self._fill(current, model, now),
            when=self._settings.learn_when,
            largest=current.largest,
            lifts=current.learns,
            time=time,
            held=held,
            judges=model is not None,
        )
        self._clock = clock
        if monitor is not None:
            monitor.hear(heard, time, now)
        if current.schema.clip is not None:
            self._learn_each(heard, current, now)
        elif block.left_out:
            current.leave_out(block.why)
        judgement = None
        if monitor is not None and model is not None and len(block):
            judgement = monitor.judge(block, model, now)
            self._count(judgement, block)
        if len(block):
            share = None if monitor is None or judgement is None else monitor.closest
            self.trail = self.trail.add(now.wall, level_of(share))
        self._learn(block if judgement is None else judgement.block, judgement, current, now)
        if monitor is None or judgement is None:
            return None
        return Scored(
            block,
            judgement.scores,
            judgement.decision,
            judgement.model.version,
            now.wall > judgement.model.expires,
            monitor.r2 if block.gaps is not None else None,
        )

    def _learn(
        self, block: Block, judgement: Judgement | None, current: ClientIncarnation, now: Now
    ) -> None:
        """Let an incarnation, and the node's own mean, learn what the decision allows."""
        monitor, rows, features = (
            self.monitor if current.learns else None,
            block.rows,
            block.features,
        )
        raw = np.zeros((len(rows), 1), dtype=bool)
        learnt = np.full(len(rows), monitor is None or not monitor.withholds)
        clipped = rows
        if judgement is not None:
            decision = judgement.decision
            raw, learnt = judgement.raw[:, None], ~decision.withheld
            # At normal distances from the mean: else one day at a hundred times that distance
            # would outweigh everything that the fleet has learnt.
            clipped = decision.clipped(rows, judgement.center)
        lifted = features
        if clipped is not rows:
            lifted = clipped if current.schema.linear else current.schema.features.lift(clipped)
        if monitor is not None:
            # If an alarm's rows are learnt, the mean follows them unclipped.
            own_rows = np.where(raw, rows, clipped)[learnt]
            own_features = np.where(raw, features, lifted)[learnt]
            gaps = None if block.gaps is None else block.gaps[learnt]
            monitor.learn(own_rows, own_features, block.time, gaps)
            offset = monitor.offset if judgement is None else judgement.offset
            if offset is not None:
                clipped = clipped - offset
                lifted = clipped if current.schema.linear else current.schema.features.lift(clipped)
        if current.schema.clip is not None:
            return  # `_learn_each` does so
        beyond = 0 if block.beyond is None else int(np.count_nonzero(block.beyond))
        current.leave_out(np.full(beyond, TOO_LARGE, dtype=np.int8))
        current.withhold(int(np.count_nonzero(~learnt)) - beyond)
        priorities = self._priorities(int(np.count_nonzero(learnt)), current)
        guesses = None
        if block.gaps is not None:
            model = None if judgement is None else judgement.model.summary
            readings = None if model is None or not model.parts else model.parts[-1]
            guesses = Guesses(block.gaps[learnt], readings)
        current.learn(clipped[learnt], lifted[learnt], now, priorities, guesses)

    def _learn_each(self, rows: Array, current: ClientIncarnation, now: Now) -> None:
        """Let an incarnation learn rows where no row may decide what becomes of another."""
        # Neither by alarms nor by means (docs/privacy.md): whole rows, as they came.
        when = self._settings.learn_when
        block = prepare(rows, current.schema, fill=None, when=when, largest=current.largest)
        current.leave_out(block.why)
        if self.monitor is None or self.monitor.learns:
            current.learn(block.rows, block.features, now)
        else:
            current.withhold(len(block))

    def _count(self, judgement: Judgement, block: Block) -> None:
        """Count scores of rows that belong to no alarm, as of rows without gaps: limits follow."""
        scores, normal = judgement.scores, ~judgement.decision.alarmed
        if block.beyond is not None:
            normal &= ~block.beyond
        for tally, even in (
            (self._spe, scores.even["spe"]),
            (self._t2, scores.even["t2"]),
            (self._linear, scores.even.get("linear")),
            (self._distance, scores.even.get("distance")),
        ):
            if even is not None:
                tally.add(even[normal])

    def _priorities(self, n: int, current: ClientIncarnation) -> Priorities | None:
        """Draw priorities for the sample that settles gamma; None while moments alone do."""
        if current.learns or current.raw or current.schema.features.settled:
            return None
        return np.frombuffer(self._rng.bytes(8 * n), dtype="<u8")

    def _fill(self, current: ClientIncarnation, model: Model | None, now: Now) -> Fill | None:
        """Return what fills gaps, if they are: the model, else what was learnt here."""
        if not self._settings.fills_gaps:
            return None
        means = self._first_means
        if current.raw:
            return None if means is None else means.filled

        # Before either, the scaling's own offset, zero here; without one, the channel's mean.
        def fill(rows: Array) -> Array:
            if model is not None and self.monitor is not None:
                return self.monitor.filled(rows, model)
            normal = self._usual(current, now)
            if normal is not None:
                return self._summaries.filled(rows, normal)
            if current.schema.scaling is not None:
                return np.nan_to_num(rows)
            return rows if means is None else means.filled(rows)

        return fill

    def _see(self, rows: Array, current: ClientIncarnation) -> None:
        """Take rows (n, channels) into the means that fill gaps before all else is known."""
        # An engine learns a guess as a gap (`pca.expectation`); features of a guess are no gap.
        if not current.schema.linear or not (current.raw or not current.counts.learnt):
            self._first_means = None
            return
        if self._first_means is None:
            self._first_means = FirstMeans(current.schema.width, self._settings.offsets)
        if rows.ndim == 2 and rows.shape[1] == current.schema.width:
            self._first_means.see(rows)

    def _usual(self, current: ClientIncarnation, now: Now) -> Summary | None:
        """Return what was learnt here, again only once a tenth more was: each one is computed."""
        of, learnt, summary = self._learnt
        if summary is None or of is not current or current.counts.learnt > 1.1 * learnt:
            summary = current.summary(now)
            self._learnt = current, current.counts.learnt, summary
        return summary


def _applied_note(before: DesiredState, desired: DesiredState) -> Note:
    """Return the note that an operator's order has arrived."""
    what = "operator's verdicts received" if desired.verdicts else "desired state received"
    if desired.drill > before.drill:
        what = "drill asked for by operator"
    if desired.paused is not None and desired.paused != before.paused:
        what = f"learning {'paused' if desired.paused else 'resumed'} by operator"
    return Note(what, {"paused": desired.paused, "verdicts": len(desired.verdicts)})

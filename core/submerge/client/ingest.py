"""Ingest: the way of a client's readings: it prepares, scores and judges them, and learns them.

1. Rows are scored with the newest model before they are learnt.
2. Nothing of the model is learnt, except the values in filled gaps.
3. Every row counts, as learnt or as withheld.
4. The `Decision` alone says what is learnt; without a model to score with, all rows are learnt that
   no open alarm and no operator withholds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from submerge._linalg import Array
from submerge.client.incarnation import ClientIncarnation, Priorities
from submerge.client.monitor import Judgement, MonitorState, NodeMonitor
from submerge.judge.clock import RowClock
from submerge.judge.prepare import Block, Fill, prepare
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Note, Now, Scored
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.randomness import RandomSource
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.stats.quantile_sketch import SketchTally


class Ingest:
    """The way of a client's readings into its incarnation.

    Parameters
    ----------
    summaries : Summaries
    rng : RandomSource
        Draws which rows are in the sample that settles gamma.
    settings : ClientSettings

    Attributes
    ----------
    monitor : NodeMonitor or None
        None before the first row under a settled schema.
    """

    def __init__(self, summaries: Summaries, rng: RandomSource, settings: ClientSettings) -> None:
        self._summaries, self._rng, self._settings = summaries, rng, settings
        self._spe, self._t2, self._linear = SketchTally(), SketchTally(), SketchTally()
        self.monitor: NodeMonitor | None = None
        self._kept: MonitorState | None = None
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
    ) -> list[Note]:
        """Apply the desired states of this node; return a note for each that was new."""
        monitor, notes = self.monitor_for(current), list[Note]()
        for desired in desired_states:
            if monitor is not None and desired.node == self._settings.node:
                before = monitor.desired
                if monitor.apply(desired, now):
                    notes.append(_applied_note(before, desired))
        return notes

    @property
    def scores(self) -> ScoreSketches | None:
        """Sketches of recent scores, and the maxima of hours; None before the first score."""
        spe, linear = self._spe.sketch, self._linear.sketch
        maxima = None if self.monitor is None else self.monitor.maxima
        # Hours outlive the process: the group must not lose them while it begins again.
        if not spe.n and (maxima is None or not maxima.longest):
            return None
        return ScoreSketches(spe, self._t2.sketch, linear if linear.n else None, maxima)

    def read(
        self, rows: Array, current: ClientIncarnation, model: Model | None, now: Now
    ) -> Scored | None:
        """Let an incarnation learn rows (n, channels), in their units; return their scores.

        Raises
        ------
        ShapeError
            If they have another number of channels than the schema; nothing changes.
        """
        monitor = self.monitor_for(current)
        # Without a settled schema there can be no model, whatever a parent sends.
        if model is not None and (
            monitor is None or model.summary is None or model.fingerprint != current.fingerprint
        ):
            model = None
        clock, time = self._clock.read(now.steady)
        block = prepare(
            rows,
            current.schema,
            fill=self._fill(current, model, now),
            when=self._settings.learn_when,
            largest=current.largest,
            lifts=current.learns,
            time=time,
        )
        self._clock = clock
        current.withhold(block.left_out)
        judgement = None
        if monitor is not None and model is not None and len(block):
            judgement = monitor.judge(block, model, now)
            self._count(judgement)
        self._learn(block, judgement, current, now)
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
        alarmed = np.zeros(len(rows), dtype=bool)
        learnt = np.full(len(rows), monitor is None or not monitor.withholds)
        clipped = rows
        if judgement is not None:
            decision = judgement.decision
            alarmed, learnt = decision.alarmed, ~decision.withheld
            # At normal distances from the mean: else one day at a hundred times that distance
            # would outweigh everything that the fleet has learnt.
            clipped = decision.clipped(rows, judgement.center)
        lifted = features
        if clipped is not rows:
            lifted = clipped if current.schema.linear else current.schema.features.lift(clipped)
        if monitor is not None:
            # If an alarm's rows are learnt, the mean follows them unclipped.
            raw = alarmed[:, None]
            own_rows = np.where(raw, rows, clipped)[learnt]
            monitor.learn(own_rows, np.where(raw, features, lifted)[learnt], block.time)
        current.withhold(int(np.count_nonzero(~learnt)))
        priorities = self._priorities(int(np.count_nonzero(learnt)), current)
        current.learn(clipped[learnt], lifted[learnt], now, priorities)

    def _count(self, judgement: Judgement) -> None:
        """Count scores of rows that belong to no alarm: the group's limits follow from them.

        They are scaled to rows without gaps, so that limits mean the same with gaps.
        """
        scores, normal = judgement.scores, ~judgement.decision.alarmed
        for tally, even in (
            (self._spe, scores.even["spe"]),
            (self._t2, scores.even["t2"]),
            (self._linear, scores.even.get("linear")),
        ):
            if even is not None:
                tally.add(even[normal])

    def _priorities(self, n: int, current: ClientIncarnation) -> Priorities | None:
        """Draw priorities for the sample that settles gamma.

        None while the scaling is not known: without it, gamma follows from moments alone.
        """
        if current.learns or current.raw or current.schema.features.settled:
            return None
        return np.frombuffer(self._rng.bytes(8 * n), dtype="<u8")

    def _fill(self, current: ClientIncarnation, model: Model | None, now: Now) -> Fill | None:
        """Return what fills gaps: the model, else what was learnt here, if gaps are filled at all.

        Before either, the scaling's own offset, which is zero here; without a scaling, the row
        is withheld.
        """
        if not self._settings.fills_gaps or current.raw:
            return None

        def fill(rows: Array) -> Array:
            if model is not None and self.monitor is not None:
                return self.monitor.filled(rows, model)
            normal = current.summary(now)
            if normal is not None:
                return self._summaries.filled(rows, normal)
            return rows if current.schema.scaling is None else np.nan_to_num(rows)

        return fill


def _applied_note(before: DesiredState, desired: DesiredState) -> Note:
    """Return the note that an operator's order has arrived."""
    what = "operator's verdicts received" if desired.verdicts else "desired state received"
    if desired.paused is not None and desired.paused != before.paused:
        what = f"learning {'paused' if desired.paused else 'resumed'} by operator"
    return Note(what, {"paused": desired.paused, "verdicts": len(desired.verdicts)})

"""Intake: what becomes of a client's readings: prepared, scored, judged, and then learnt.

1. Rows are scored with the newest model before they are learnt.
2. Of the model nothing is learnt but what a gap was filled with.
3. Every row counts, as learnt or as withheld.
4. What is learnt follows from the `Decision` alone; without a model to score with, all is learnt
   that no open alarm and no operator withholds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from submerge._linalg import Array
from submerge.client.incarnation import ClientIncarnation, Priorities
from submerge.client.monitor import Judgement, Kept, NodeMonitor
from submerge.judge.clock import RowClock
from submerge.judge.prepare import Block, Fill, prepare
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Note, Now, Scored
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.stats.quantile_sketch import SketchTally


class Intake:
    """The way of a client's readings into its life.

    Parameters
    ----------
    summaries : Summaries
    rng : numpy.random.Generator
        For what decides which rows a fleet settles gamma by.
    settings : ClientSettings

    Attributes
    ----------
    lookout : Lookout or None
        None before the first row under a schema that is settled.
    """

    def __init__(
        self, summaries: Summaries, rng: np.random.Generator, settings: ClientSettings
    ) -> None:
        self._summaries, self._rng, self._settings = summaries, rng, settings
        self._spe, self._t2, self._linear = SketchTally(), SketchTally(), SketchTally()
        self.monitor: NodeMonitor | None = None
        self._kept: Kept | None = None
        self._clock = RowClock(0.0 if settings.alarms is None else settings.alarms.period_s)

    def load(self, kept: Kept | None) -> None:
        """Take what the process before remembered."""
        self._kept = kept

    @property
    def kept(self) -> Kept | None:
        """What the next process has to know; None if there is nothing."""
        return self._kept if self.monitor is None else self.monitor.kept

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The open one, and those that were over last."""
        if self.monitor is None:
            return () if self._kept is None else self._kept.watched.alarms
        return self.monitor.alarms

    def looks(self, current: ClientIncarnation) -> NodeMonitor | None:
        """Return what looks at readings of that life's schema."""
        if not current.learns:
            return None
        if self.monitor is None or self.monitor.fingerprint != current.fingerprint:
            self.monitor = NodeMonitor(self._settings, current.schema, self._summaries, self.kept)
        return self.monitor

    def alarm_status(self, now: Now) -> AlarmStatus | None:
        """Return what a report says of alarms, if there is anything to say."""
        return None if self.monitor is None else self.monitor.alarm_status(now)

    def apply(
        self, desired_states: Iterable[DesiredState], current: ClientIncarnation, now: Now
    ) -> list[Note]:
        """Do what an operator wants of this node; return a note for each wish that was news."""
        monitor, mine = self.looks(current), self._settings.node
        return [
            Note(
                "an operator's wish", {"paused": desired.paused, "verdicts": len(desired.verdicts)}
            )
            for desired in desired_states
            if monitor is not None and desired.node == mine and monitor.apply(desired, now)
        ]

    @property
    def scores(self) -> ScoreSketches | None:
        """How odd recent readings were, and hours; None before the first score of all."""
        spe, linear = self._spe.sketch, self._linear.sketch
        maxima = None if self.monitor is None else self.monitor.maxima
        # Hours are older than the process: its group must not lose them while it begins anew.
        if not spe.n and (maxima is None or not maxima.longest):
            return None
        return ScoreSketches(spe, self._t2.sketch, linear if linear.n else None, maxima)

    def read(
        self, rows: Array, current: ClientIncarnation, model: Model | None, now: Now
    ) -> Scored | None:
        """Let a life learn rows (n, channels), in their units; return how odd the model finds them.

        Raises
        ------
        ShapeError
            If they have another number of channels than the schema; nothing changes.
        """
        monitor = self.looks(current)
        # Of what is not settled nothing can be known, whatever a parent says.
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
        """Let a life, and the node's own mean, learn what was decided to be learnt."""
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
            # Off the mean by as much as is ordinary: else a day of what is a hundred times that
            # would be all that the fleet knows.
            clipped = decision.clipped(rows, judgement.center)
        lifted = features
        if clipped is not rows:
            lifted = clipped if current.schema.linear else current.schema.features.lift(clipped)
        if monitor is not None:
            # Where an alarm is learnt after all, or was accepted, the mean goes where rows are.
            raw = alarmed[:, None]
            own_rows = np.where(raw, rows, clipped)[learnt]
            monitor.learn(own_rows, np.where(raw, features, lifted)[learnt], block.time)
        current.withhold(int(np.count_nonzero(~learnt)))
        priorities = self._priorities(int(np.count_nonzero(learnt)), current)
        current.learn(clipped[learnt], lifted[learnt], now, priorities)

    def _count(self, judgement: Judgement) -> None:
        """Count scores of rows that belong to no alarm: the group's limits follow from them.

        As they compare with those of whole rows: so limits mean the same wherever gaps are.
        """
        scores, usual = judgement.scores, ~judgement.decision.alarmed
        for tally, even in (
            (self._spe, scores.even["spe"]),
            (self._t2, scores.even["t2"]),
            (self._linear, scores.even.get("linear")),
        ):
            if even is not None:
                tally.add(even[usual])

    def _priorities(self, n: int, current: ClientIncarnation) -> Priorities | None:
        """Draw what decides which rows a fleet settles gamma by.

        Where their scaling is not known either they have no common size: moments must do.
        """
        if current.learns or current.raw or current.schema.features.settled:
            return None
        return self._rng.integers(2**64, size=n, dtype=np.uint64)

    def _fill(self, current: ClientIncarnation, model: Model | None, now: Now) -> Fill | None:
        """Return what fills gaps: the model, else what was learnt here, if gaps are filled at all.

        Before either, the scaling's own offset, which is zero here; without a scaling nothing is
        known yet, and the row is withheld.
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

"""Intake: what becomes of a client's readings: scaled, filled, lifted, scored, and then learnt.

1. Rows are scored with the newest model before they are learnt.
2. Of the model nothing is learnt but what a gap was filled with.
3. Every row counts, as learnt or as withheld.
4. What is alarmed at is withheld (`lookout`), and so is whatever `learn_when` does not hold for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.incarnation import LARGEST_SCALED, ClientIncarnation, Priorities
from submerge.client.monitor import JudgedRows, Kept, NodeMonitor
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Now, Scored
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
        schema, monitor = current.schema, self.looks(current)
        scaled, gaps = schema.scaled(rows), None
        # Of what is not settled nothing can be known: not whatever a parent says.
        knows = model is not None and model.summary is not None and monitor is not None
        if model is not None and not (knows and model.fingerprint == current.fingerprint):
            model = None
        # Outside the operating state that is learnt, a row is none.
        meant = np.ones(len(rows), dtype=bool)
        if self._settings.learn_when is not None:
            meant = self._settings.learn_when.holds(rows)
        if self._settings.fills_gaps and not current.raw:
            gaps = np.isnan(scaled)
            scaled = self._filled(scaled, gaps, current, model, now)
        fine = current.usable(scaled) & meant
        features = scaled = scaled[fine]
        if current.learns and not schema.linear:
            features = schema.features.lift(scaled)
            # Products of readings may be too large where each of them is not.
            bearable = (np.abs(features) < LARGEST_SCALED).all(axis=1)
            fine[fine] = bearable
            scaled, features = scaled[bearable], features[bearable]
        current.withhold(len(rows) - len(scaled))
        scored: Scored | None = None
        judged: JudgedRows | None = None
        learnt = np.full(len(scaled), monitor is None or not monitor.withholds)
        if model is not None and monitor is not None and len(scaled):
            filled = None if gaps is None else gaps[fine]
            judged = monitor.judge(scaled, features, filled, model, now)
            learnt = ~judged.withheld
            self._count(judged)
            which, expired = np.flatnonzero(fine), now.wall > judged.model.expires
            scored = Scored(
                judged.spe,
                judged.t2,
                judged.linear,
                scaled,
                which,
                filled,
                judged.model.version,
                expired,
                judged.summary,
                judged.model.limits,
                judged.alarmed,
                judged.withheld,
                monitor.r2 if filled is not None and filled.any() else None,
            )
            current.withhold(int(np.count_nonzero(judged.withheld)))
        else:
            current.withhold(int(np.count_nonzero(~learnt)))
        raw, lifted = scaled, features
        if judged is not None and judged.clipped is not None:
            # Off the mean by as much as is ordinary: a day of what is a hundred times that would
            # be all that the fleet knows.
            mean = self._summaries.center(judged.summary)
            scaled = mean + judged.clipped[:, None] * (scaled - mean)
            features = scaled if schema.linear else schema.features.lift(scaled)
        if monitor is not None:
            anomalous = np.zeros(len(raw), dtype=bool) if judged is None else judged.alarmed
            # Where an alarm is learnt after all, or was accepted, the mean goes where rows are.
            moved = np.where(anomalous[:, None], raw, scaled)[learnt]
            monitor.learn(moved, np.where(anomalous[:, None], lifted, features)[learnt], now)
        scaled, features = scaled[learnt], features[learnt]
        current.learn(scaled, features, now, self._priorities(len(scaled), current))
        return scored

    def _count(self, judged: JudgedRows) -> None:
        """Count scores of rows that nobody was alarmed at."""
        usual = ~judged.alarmed
        tallies = (self._spe, judged.spe), (self._t2, judged.t2), (self._linear, judged.linear)
        for tally, reported in tallies:
            if reported is not None:
                tally.add(reported[usual])

    def _priorities(self, n: int, current: ClientIncarnation) -> Priorities | None:
        """Draw what decides which rows a fleet settles gamma by.

        Where their scaling is not known either they have no common size: moments must do.
        """
        if current.learns or current.raw or current.schema.features.settled:
            return None
        return self._rng.integers(2**64, size=n, dtype=np.uint64)

    def _filled(
        self,
        scaled: Array,
        gaps: npt.NDArray[np.bool_],
        current: ClientIncarnation,
        model: Model | None,
        now: Now,
    ) -> Array:
        """Fill the gaps of rows that show enough: by the model, else by what was learnt here.

        Before either, by the scaling's own offset, which is zero here; without a scaling
        nothing is known yet, and the row is withheld.
        """
        some = gaps.any(axis=1) & ~np.isinf(scaled).any(axis=1)
        some &= 2 * gaps.sum(axis=1) <= gaps.shape[1]
        if not some.any():
            return scaled
        if model is not None and self.monitor is not None:
            normal = self.monitor.normal(model)
        else:
            normal = current.summary(now)
        if normal is None and current.schema.scaling is None:
            return scaled
        scaled = scaled.copy()
        if normal is None:
            scaled[some] = np.nan_to_num(scaled[some])
        else:
            scaled[some] = self._summaries.filled(scaled[some], normal)
        return scaled

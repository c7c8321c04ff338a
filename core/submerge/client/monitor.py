"""Lookout: how one node looks at its readings: with which mean, by which model, for how long.

What it remembers outlives the process and every life, for it is never shipped: its own mean,
how its channels behave, the alarm that is open, and what an operator wants (docs/decisions/0017).
It belongs to one schema; under another it begins anew, but for the alarms that it tells of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.client.channels import Channels
from submerge.client.detector import AlarmDetector, Rows, Watched
from submerge.pca.reconstruct import Reconstruction
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Scoring, Summaries, Summary
from submerge.schema import Schema
from submerge.stats.block_maxima import HOUR_S, BlockMaxima, By
from submerge.stats.node_mean import HALF_LIFE_S, OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.run_lengths import RunLengths
from submerge.stats.stuck import Habits, StuckDetector


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What a node's next process looks with.

    Attributes
    ----------
    fingerprint : str
        Of the schema that it belongs to.
    own : OwnMean or None
        None unless center = "own".
    watched : Watched
    wish : Wish
    repeats : Repeats or None
    habits : Habits or None
    usual : Usual or None
        How its channels behave.
    reference : Model or None
        What the open alarm is judged by, since its rows are learnt; else None.
    held : OwnMean or None
        The mean that belongs to it.
    """

    fingerprint: str
    own: OwnMean | None
    watched: Watched
    desired: DesiredState
    reference: Model | None = None
    held: OwnMean | None = None
    run_lengths: RunLengths | None = None
    habits: Habits | None = None
    usual: ResidualScale | None = None


Gaps = npt.NDArray[np.bool_] | None

PATTERNS = 256
"""Patterns of gaps of which it is remembered what they take from scores."""

LEAST_LEFT = 0.25
"""Of a score: below it, gaps have taken so much that the rest says nothing."""


class JudgedRows(NamedTuple):
    """Rows as the node sees them.

    spe, t2, linear : (n,), as in `Scored`
    alarmed, withheld : (n,) of bool, rows of an alarm; rows that are not to be learnt
    tamed : (n,), by what to multiply what is learnt of the others, as it lies off the mean; None
        if they are learnt as they are
    model : by which they were judged
    summary : the model's, about the mean that they were judged about
    """

    spe: Array
    t2: Array
    linear: Array | None
    alarmed: npt.NDArray[np.bool_]
    withheld: npt.NDArray[np.bool_]
    clipped: Array | None
    model: Model
    summary: Summary


class NodeMonitor:
    """One node's, under one schema.

    Parameters
    ----------
    settings : ClientSettings
    schema : Schema
    summaries : Summaries
    kept : Kept, optional
        What the process before remembered, or the lookout under the schema before.

    Attributes
    ----------
    own : OwnMean or None
        None unless center = "own".
    wish : Wish
    """

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        kept: Kept | None = None,
    ) -> None:
        self.fingerprint = schema.fingerprint
        self.own: OwnMean | None = None
        if kept is not None and kept.desired.node != settings.node:
            # Another node's: it has got another name since.
            kept = replace(kept, desired=DesiredState(settings.node, 0), watched=Watched())
        self.desired = DesiredState(settings.node, 0) if kept is None else kept.desired
        self._summaries = summaries
        self._half_life_s = min(schema.half_life or HALF_LIFE_S, HALF_LIFE_S)
        self._reference: tuple[Model, OwnMean | None] | None = None
        self._scoring: tuple[Model, Scoring] | None = None
        self._heard: Model | None = None
        self._learnt_at: float | None = None
        self._lags, self._count = settings.lags, schema.width // settings.lags
        self._channels = Channels(StuckDetector(self._count), ResidualScale.none(self._count))
        if schema.center == "own":
            self.own = OwnMean.none(schema.width, None if schema.linear else schema.dim)
        watched = None if kept is None else kept.watched
        if kept is not None and kept.fingerprint == self.fingerprint:
            # A record is checked by itself; whether it is as wide as the schema is seen here.
            if self.own is not None and kept.own is not None and kept.own.is_like(self.own):
                self.own = kept.own
            run_lengths, habits, usual = kept.run_lengths, kept.habits, kept.usual
            if run_lengths is not None and habits is not None and usual is not None:
                widths = {len(run_lengths.last), len(habits.weight), len(usual.squares)}
                if widths == {self._count}:
                    self._channels = Channels(
                        StuckDetector(self._count, run_lengths, habits), usual
                    )
            fits = kept.held is None or (self.own is not None and kept.held.is_like(self.own))
            if kept.reference is not None and fits and settings.alarms is not None:
                self._reference = kept.reference, kept.held
        elif watched is not None:
            # Scores of another schema mean something else: what it tells of is all that stays.
            watched = watched.under_another_schema
        self._seen_at: float | None = None
        self._recalled: tuple[Model, Reconstruction | None] | None = None
        self._shares: dict[bytes, tuple[float, float]] = {}  # by pattern of gaps
        self._stuck = False
        self._period_s = 0.0 if settings.alarms is None else settings.alarms.period_s
        self._detector = (
            None
            if settings.alarms is None
            else AlarmDetector(settings.node, settings.alarms, schema.names[: self._count], watched)
        )
        if self._detector is not None:
            self._stuck = self._detector.recall_stuck(self._channels.stuck_detector.stuck)
        alarm = None if self._detector is None else self._detector.open
        self._held_for = 0 if alarm is None else alarm.number  # whose reference it is

    @property
    def kept(self) -> Kept:
        """What the next process has to know."""
        model, held = self._reference or (None, None)
        watched = Watched() if self._detector is None else self._detector.remembered
        channels = self._channels
        return Kept(
            self.fingerprint,
            self.own,
            watched,
            self.desired,
            model,
            held,
            channels.stuck_detector.run_lengths,
            channels.stuck_detector.habits,
            channels.usual,
        )

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The open one, and those that were over last."""
        return () if self._detector is None else self._detector.alarms

    @property
    def maxima(self) -> BlockMaxima | None:
        """What its scores came to, hour by hour; None if it raises no alarms."""
        return None if self._detector is None else self._detector.maxima

    @property
    def r2(self) -> Array:
        """(channels,), how well each can be told from the others: NaN while nobody knows."""
        return np.tile(self._channels.stuck_detector.r2, self._lags)

    @property
    def withholds(self) -> bool:
        """Whether whatever comes is not to be learnt, as far as is known without looking at it."""
        return not self.learns or (self._detector is not None and self._detector.withholds)

    @property
    def learns(self) -> bool:
        """Whether an operator lets it."""
        return not self.desired.paused  # None as well: nobody has said

    def alarm_status(self, now: Now) -> AlarmStatus | None:
        """Return what a report says of it."""
        if self._detector is None:
            return (
                AlarmStatus((0,) * 5, desired=self.desired.number) if self.desired.number else None
            )
        model = self._heard
        state = self._detector.state(
            ready=self.own is None or self.own.ready,
            paused=not self.learns,
            stale=model is not None and now.wall > model.expires,
        )
        return self._detector.alarm_status(state, self.desired.number)

    def meet_another(self) -> None:
        """Speak to another parent: that has numbers of its own."""
        self.desired = replace(self.desired, number=0)

    def apply(self, desired: DesiredState, now: Now) -> bool:
        """Do what an operator wants, unless it is known; return whether it was news."""
        if desired.number <= self.desired.number:
            return False
        self.desired = self.desired.after(desired, desired.number)
        if self._detector is not None:
            was = self._detector.open
            for number, accept in desired.verdicts:
                self._detector.decide(number, accept=accept, at=now.wall)
            if was is not None and self._detector.open is None:
                # What it took for its mean is no longer where it is.
                if self.own is not None:
                    self.own = self.own.restarted()
                self._reference = None
        return True

    # -- rows ----------------------------------------------------------------------

    def normal(self, model: Model) -> Summary:
        """Return what the model to judge by says, about the mean to judge about."""
        return self._placed(*self._chosen(model))

    def _placed(self, model: Model, own: OwnMean | None) -> Summary:
        return model.summary if own is None else self._summaries.placed(model.summary, own)

    def judge(
        self, rows: Array, features: Storage, gaps: Gaps, model: Model, now: Now
    ) -> JudgedRows:
        """Score rows (n, channels), scaled and filled, and their features; watch what that says.

        gaps : (n, channels), true where a number was filled in; None if none was
        """
        if model is not self._heard:
            self._heard = model
            if self._detector is not None:
                self._detector.hear(model.maxima)
        chosen, own = self._chosen(model)
        spe, t2, linear = self._scorer(chosen).scores(rows, features, own)
        if own is not None:
            spe, t2 = spe / own.excess, t2 / own.excess
            linear = None if linear is None else linear / own.excess
        placed = self._placed(chosen, own)
        alarmed = np.zeros(len(rows), dtype=bool)
        withheld, clipped = np.full(len(rows), not self.learns), None
        if self._detector is not None:
            scores: dict[By, Array] = {"spe": spe, "t2": t2}
            if linear is not None:
                scores["linear"] = linear
            self._even_out(scores, gaps, chosen)
            alarmed, held = self._watch(self._detector, scores, rows, gaps, chosen, own, now)
            withheld |= held
            if self.own is None or self.own.ready:
                settled = self.own is None or self.own.settled
                clipped = self._detector.clipped(scores, alarmed, settled=settled)
            self._hold(chosen, own)
        return JudgedRows(spe, t2, linear, alarmed, withheld, clipped, chosen, placed)

    def _watch(
        self,
        detector: AlarmDetector,
        scores: dict[By, Array],
        rows: Array,
        gaps: Gaps,
        model: Model,
        own: OwnMean | None,
        now: Now,
    ) -> tuple[Rows, Rows]:
        """Let the sentry judge, and channels speak for themselves."""
        ready, settled = self.own is None or self.own.ready, self.own is None or self.own.settled
        passed_s, recall = self._passed(len(rows), now), self._recall(model)
        if recall is None or not ready:
            return detector.judge(
                scores, now, ready=ready, settled=settled, stuck=False, version=model.version
            )
        centered = rows - (self._summaries.center(model.summary) if own is None else own.rows)
        errors = recall.left_out(centered)
        worst = self._channels.score(recall, errors) if settled else None
        if worst is not None:
            scores["channel"] = worst
        alarmed, held = detector.judge(
            scores, now, ready=True, settled=settled, stuck=self._stuck, version=model.version
        )
        loud = alarmed & detector.loud
        if loud.any():
            # Not by rows that are calm again: they are odd by whatever comes.
            shares = self._channels.blame(recall, centered[loud])
            detector.accuse(shares, int(np.count_nonzero(loud)))
        n = self._count
        usual = ~alarmed if settled else np.zeros(len(rows), dtype=bool)
        gaps = None if gaps is None else gaps[:, :n]
        self._channels.see(rows[:, :n], gaps, errors, usual, passed_s)
        self._stuck = detector.find_stuck(self._channels.stuck_detector.stuck, now, model.version)
        return alarmed, held

    def _even_out(self, scores: dict[By, Array], gaps: Gaps, model: Model) -> None:
        """Bring scores of rows with gaps to what whole rows come to: what is filled is not odd."""
        if gaps is None or not gaps.any():
            return
        factor_spe, factor_t2 = np.ones(len(gaps)), np.ones(len(gaps))
        for i in np.flatnonzero(gaps.any(axis=1)).tolist():
            pattern = gaps[i].tobytes()
            if pattern not in self._shares:
                if len(self._shares) >= PATTERNS:
                    self._shares.clear()
                self._shares[pattern] = self._summaries.shrunk(~gaps[i], model.summary)
            spe, t2 = self._shares[pattern]
            # Not beyond: of a row with few channels left a score says little.
            factor_spe[i], factor_t2[i] = max(spe, LEAST_LEFT), max(t2, LEAST_LEFT)
        scores["spe"], scores["t2"] = scores["spe"] / factor_spe, scores["t2"] / factor_t2

    def _recall(self, model: Model) -> Reconstruction | None:
        """What the model makes of each channel: worked out once, for the newest."""
        if self._recalled is None or self._recalled[0] is not model:
            recall = self._summaries.reconstruction(model.summary, self._count)
            self._recalled = model, recall
            self._shares.clear()
        return self._recalled[1]

    def _passed(self, rows: int, now: Now) -> float:
        """How much time rows stand for; a sensor that was silent for a day said nothing of it."""
        last, self._seen_at = self._seen_at, now.steady
        if self._period_s:
            return rows * self._period_s
        return 0.0 if last is None else min(now.steady - last, HOUR_S)

    def learn(self, rows: Array, features: Storage, now: Now) -> None:
        """Take in rows that are learnt: the node's own mean is theirs."""
        if self.own is None or not len(rows):
            return
        last, self._learnt_at = self._learnt_at, now.steady
        passed_s = 0.0 if last is None else now.steady - last
        if self._period_s:
            passed_s = len(rows) * self._period_s
        kept = 2.0 ** -min(passed_s / self._half_life_s, 1000.0)
        if not self._period_s:
            # A day without readings is not a day that was seen.
            passed_s = min(passed_s, HOUR_S)
        self.own = self.own.after(rows, features, kept=kept, passed_s=passed_s)

    def _chosen(self, model: Model) -> tuple[Model, OwnMean | None]:
        if self._reference is not None:
            return self._reference
        own = self.own if self.own is not None and self.own.ready else None
        return model, own

    def _hold(self, model: Model, own: OwnMean | None) -> None:
        """Hold an alarm to what raised it, once its rows are learnt: else they would clear it."""
        detector = self._detector
        alarm = None if detector is None else detector.open
        if alarm is None or alarm.number != self._held_for:
            self._held_for = 0 if alarm is None else alarm.number
            if self._reference is not None and self._reference[1] is not None:
                # It is back where it was before; what was learnt meanwhile was the fault.
                self.own = self._reference[1]
            self._reference = None
        if (
            detector is not None
            and alarm is not None
            and not detector.withholds
            and self._reference is None
        ):
            detector.freeze()
            self._reference = model, own

    def _scorer(self, model: Model) -> Scoring:
        """What scores with a model: made once, for the newest."""
        if self._scoring is None or self._scoring[0] is not model:
            self._scoring = model, self._summaries.scorer(model.summary)
        return self._scoring[1]

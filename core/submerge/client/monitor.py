"""Lookout: how one node looks at its readings: with which mean, by which model, for how long.

What it remembers outlives the process and every life, for it is never shipped: its own mean,
how its channels behave, the alarm that is open, and what an operator wants (docs/decisions/0017).
It belongs to one schema; under another it begins anew, but for the alarms that it tells of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array, Storage
from submerge.client.channels import ChannelState
from submerge.client.detect import detect
from submerge.client.detector import AlarmDetector, Situation, Watched
from submerge.judge.clock import RowTime
from submerge.judge.decision import Decision
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.node_mean import HALF_LIFE_S, OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.run_lengths import RunLengths
from submerge.stats.stuck import Habits


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

    def of_node(self, node: str) -> Kept:
        """Return what of it holds for a node that may have got another name since."""
        if self.desired.node == node:
            return self
        return replace(self, desired=DesiredState(node, 0), watched=Watched())

    def of_schema(self, schema: Schema, channels: int) -> Kept:
        """Return what of it holds under a schema.

        A record is checked by itself; whether it is as wide as the schema is seen here.
        """
        if self.fingerprint != schema.fingerprint:
            # Scores of another schema mean something else: what it tells of is all that stays.
            watched = self.watched.under_another_schema
            return Kept(schema.fingerprint, _no_mean(schema), watched, self.desired)
        kept, own = self, _no_mean(schema)
        if own is None or self.own is None or not self.own.is_like(own):
            kept = replace(kept, own=own)
        if kept.channels is None or kept.channels.widths != {channels}:
            kept = replace(kept, run_lengths=None, habits=None, usual=None)
        if self.held is not None and (own is None or not self.held.is_like(own)):
            kept = replace(kept, reference=None, held=None)
        return kept

    @property
    def channels(self) -> ChannelState | None:
        """How its channels behave, if all parts of that are known."""
        if self.run_lengths is None or self.habits is None or self.usual is None:
            return None
        return ChannelState(self.run_lengths, self.habits, self.usual)


class Judgement(NamedTuple):
    """What came of a block.

    scores : RowScores
    decision : Decision
    model : Model, by which its rows were scored
    center : (channels,), where they were measured from
    """

    scores: RowScores
    decision: Decision
    model: Model
    center: Array


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
    fingerprint : str
    own : OwnMean or None
        None unless center = "own".
    wish : Wish
    detector : AlarmDetector or None
        None if it raises no alarms.
    """

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        kept: Kept | None = None,
    ) -> None:
        node, self._lags = settings.node, settings.lags
        self._count = schema.width // settings.lags
        if kept is None:
            kept = Kept(schema.fingerprint, _no_mean(schema), Watched(), DesiredState(node, 0))
        kept = kept.of_node(node).of_schema(schema, self._count)
        self.fingerprint, self.own, self.desired = kept.fingerprint, kept.own, kept.desired
        self._summaries = summaries
        self._half_life_s = min(schema.half_life or HALF_LIFE_S, HALF_LIFE_S)
        self._channels = kept.channels or ChannelState.none(self._count)
        self._reference: tuple[Model, OwnMean | None] | None = None
        self._scoring: tuple[Model, ScoringModel] | None = None
        self._heard: Model | None = None
        self._unlearnt_s = 0.0  # by which its mean has aged since rows were learnt
        self._held_for = 0  # the number of the alarm whose reference it is
        self.detector: AlarmDetector | None = None
        if settings.alarms is not None:
            names = schema.names[: self._count]
            self.detector = AlarmDetector.of(
                node, settings.alarms, names, kept.watched, self._channels
            )
            if kept.reference is not None:
                self._reference = kept.reference, kept.held
            alarm = self.detector.log.open
            self._held_for = 0 if alarm is None else alarm.number

    @property
    def kept(self) -> Kept:
        """What the next process has to know."""
        model, held = self._reference or (None, None)
        watched = Watched() if self.detector is None else self.detector.kept
        channels = self.channels
        return Kept(
            self.fingerprint,
            self.own,
            watched,
            self.desired,
            model,
            held,
            channels.run_lengths,
            channels.habits,
            channels.usual,
        )

    @property
    def channels(self) -> ChannelState:
        """How its channels behave."""
        return self._channels if self.detector is None else self.detector.channels

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The open one, and those that were over last."""
        return () if self.detector is None else self.detector.log.alarms

    @property
    def maxima(self) -> BlockMaxima | None:
        """What its scores came to, hour by hour; None if it raises no alarms."""
        return None if self.detector is None else self.detector.hours.tally.maxima

    @property
    def r2(self) -> Array:
        """(channels,), how well each can be told from the others: NaN while nobody knows."""
        return np.tile(self.channels.stuck_detector.r2, self._lags)

    @property
    def withholds(self) -> bool:
        """Whether whatever comes is not to be learnt, as far as is known without looking at it."""
        return not self.learns or (self.detector is not None and self.detector.log.withholds)

    @property
    def learns(self) -> bool:
        """Whether an operator lets it."""
        return not self.desired.paused  # None as well: nobody has said

    def alarm_status(self, now: Now) -> AlarmStatus | None:
        """Return what a report says of it."""
        if self.detector is None:
            return (
                AlarmStatus((0,) * 5, desired=self.desired.number) if self.desired.number else None
            )
        model = self._heard
        state = self.detector.state(
            ready=self.own is None or self.own.ready,
            paused=not self.learns,
            stale=model is not None and now.wall > model.expires,
        )
        return self.detector.alarm_status(state, self.desired.number)

    def meet_another(self) -> None:
        """Speak to another parent: that has numbers of its own."""
        self.desired = replace(self.desired, number=0)

    def apply(self, desired: DesiredState, now: Now) -> bool:
        """Do what an operator wants, unless it is known; return whether it was news."""
        if desired.number <= self.desired.number:
            return False
        self.desired = self.desired.after(desired, desired.number)
        if self.detector is not None:
            was = self.detector.log.open
            for number, accept in desired.verdicts:
                self.detector = self.detector.decide(number, accept=accept, at=now.wall)
            if was is not None and self.detector.log.open is None:
                # What it took for its mean is no longer where it is.
                if self.own is not None:
                    self.own = self.own.restarted()
                self._reference = None
        return True

    # -- rows ----------------------------------------------------------------------

    def filled(self, rows: Array, model: Model) -> Array:
        """Return rows (n, channels), scaled, with each gap as it would most likely have been."""
        chosen, own = self._chosen(model)
        return self._scored_by(chosen).filled(rows, own)

    def judge(self, block: Block, model: Model, now: Now) -> Judgement:
        """Score the rows of a block, and say which of them are learnt."""
        if model is not self._heard:
            self._heard = model
            if self.detector is not None:
                self.detector = self.detector.with_peaks(model.maxima)
        chosen, own = self._chosen(model)
        scoring = self._scored_by(chosen)
        scores = score(block, scoring, own, self.channels.usual)
        decision = Decision.learn(len(block))
        if self.detector is not None:
            situation = Situation(
                now,
                chosen.version,
                ready=self.own is None or self.own.ready,
                settled=self.own is None or self.own.settled,
                paused=not self.learns,
            )
            self.detector, decision = detect(self.detector, block, scores, situation)
            self._hold(self.detector, chosen, own)
        elif not self.learns:
            decision = decision.withholding_all()
        return Judgement(scores, decision, chosen, scoring.center(own))

    def learn(self, rows: Array, features: Storage, time: RowTime) -> None:
        """Take in rows that are learnt: the node's own mean is theirs."""
        n = len(rows)
        self._unlearnt_s += time.elapsed_s(n)
        if self.own is None or not n:
            return
        kept = 2.0 ** -min(self._unlearnt_s / self._half_life_s, 1000.0)
        self._unlearnt_s = 0.0
        self.own = self.own.after(rows, features, kept=kept, passed_s=time.seen_s(n))

    def _chosen(self, model: Model) -> tuple[Model, OwnMean | None]:
        if self._reference is not None:
            return self._reference
        own = self.own if self.own is not None and self.own.ready else None
        return model, own

    def _hold(self, detector: AlarmDetector, model: Model, own: OwnMean | None) -> None:
        """Hold an alarm to what raised it, once its rows are learnt: else they would clear it."""
        alarm = detector.log.open
        number = 0 if alarm is None else alarm.number
        if number != self._held_for:
            self._held_for = number
            if self._reference is not None and self._reference[1] is not None:
                # It is back where it was before; what was learnt meanwhile was the fault.
                self.own = self._reference[1]
            self._reference = None
        if alarm is not None and not detector.log.withholds and self._reference is None:
            self._reference = model, own

    def _scored_by(self, model: Model) -> ScoringModel:
        """What scores with a model: made once, for the newest."""
        if self._scoring is None or self._scoring[0] is not model:
            scoring = ScoringModel(
                self._summaries, model.scoring_summary, model.limits, self._count
            )
            self._scoring = model, scoring
        return self._scoring[1]


def _no_mean(schema: Schema) -> OwnMean | None:
    """The mean of a node that has read nothing; None where the group has one mean."""
    if schema.center != "own":
        return None
    return OwnMean.none(schema.width, None if schema.linear else schema.dim)

"""NodeMonitor: how one node judges its readings: about which mean, and by which model.

Its state outlives the process and every incarnation, because it is never sent: its own mean, the
behaviour of its channels, the open alarm, and the desired state (docs/decisions/0017). It belongs
to one schema; under another it begins again, except for its alarms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array, Storage
from submerge.client.channels import ChannelState
from submerge.client.detect import detect
from submerge.client.detector import AlarmDetector, DetectorState, Situation
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
class MonitorState:
    """What a monitor keeps for the node's next process.

    Attributes
    ----------
    fingerprint : str
        Of its schema.
    own : OwnMean or None
        None unless center = "own".
    detector : DetectorState
    desired : DesiredState
    run_lengths : RunLengths or None
    habits : Habits or None
    residual_scale : ResidualScale or None
        The behaviour of its channels.
    reference : Model or None
        The model that the open alarm is held to while its rows are learnt; else None.
    held : OwnMean or None
        The mean that belongs to it.
    """

    fingerprint: str
    own: OwnMean | None
    detector: DetectorState
    desired: DesiredState
    reference: Model | None = None
    held: OwnMean | None = None
    run_lengths: RunLengths | None = None
    habits: Habits | None = None
    residual_scale: ResidualScale | None = None

    def of_node(self, node: str) -> MonitorState:
        """Return what stays valid if the node has another name now."""
        if self.desired.node == node:
            return self
        return replace(self, desired=DesiredState(node, 0), detector=DetectorState())

    def of_schema(self, schema: Schema, channels: int) -> MonitorState:
        """Return what stays valid under a schema.

        The record was checked by itself; its width is compared with the schema here.
        """
        if self.fingerprint != schema.fingerprint:
            # Scores of another schema mean something else: only the alarms stay.
            detector = self.detector.under_another_schema
            return MonitorState(schema.fingerprint, _no_mean(schema), detector, self.desired)
        kept, own = self, _no_mean(schema)
        if own is None or self.own is None or not self.own.is_like(own):
            kept = replace(kept, own=own)
        if kept.channels is None or kept.channels.widths != {channels}:
            kept = replace(kept, run_lengths=None, habits=None, residual_scale=None)
        if self.held is not None and (own is None or not self.held.is_like(own)):
            kept = replace(kept, reference=None, held=None)
        return kept

    @property
    def channels(self) -> ChannelState | None:
        """The behaviour of its channels, if all parts of it are known."""
        if self.run_lengths is None or self.habits is None or self.residual_scale is None:
            return None
        return ChannelState(self.run_lengths, self.habits, self.residual_scale)


class Judgement(NamedTuple):
    """The scores of a block, and the decision on it.

    scores : RowScores
    decision : Decision
    model : Model, by which its rows were scored
    center : (channels,), the mean that they were measured from
    """

    scores: RowScores
    decision: Decision
    model: Model
    center: Array


class NodeMonitor:
    """Judges the readings of one node, under one schema.

    Parameters
    ----------
    settings : ClientSettings
    schema : Schema
    summaries : Summaries
    kept : MonitorState, optional
        From the process before, or from the monitor under the schema before.

    Attributes
    ----------
    fingerprint : str
    own : OwnMean or None
        None unless center = "own".
    desired : DesiredState
    detector : AlarmDetector or None
        None if it raises no alarms.
    """

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        kept: MonitorState | None = None,
    ) -> None:
        node, self._lags = settings.node, settings.lags
        self._count = schema.width // settings.lags
        if kept is None:
            kept = MonitorState(
                schema.fingerprint, _no_mean(schema), DetectorState(), DesiredState(node, 0)
            )
        kept = kept.of_node(node).of_schema(schema, self._count)
        self.fingerprint, self.own, self.desired = kept.fingerprint, kept.own, kept.desired
        self._summaries = summaries
        self._half_life_s = min(schema.half_life or HALF_LIFE_S, HALF_LIFE_S)
        self._channels = kept.channels or ChannelState.none(self._count)
        self._reference: tuple[Model, OwnMean | None] | None = None
        self._scoring: tuple[Model, ScoringModel] | None = None
        self._heard: Model | None = None
        self._unlearnt_s = 0.0  # the age of its mean since rows were learnt
        self._held_for = 0  # the number of the alarm that the reference is for
        self.detector: AlarmDetector | None = None
        if settings.alarms is not None:
            names = schema.names[: self._count]
            self.detector = AlarmDetector.of(
                node, settings.alarms, names, kept.detector, self._channels
            )
            if kept.reference is not None:
                self._reference = kept.reference, kept.held
            alarm = self.detector.log.open
            self._held_for = 0 if alarm is None else alarm.number

    @property
    def kept(self) -> MonitorState:
        """What the next process has to know."""
        model, held = self._reference or (None, None)
        watched = DetectorState() if self.detector is None else self.detector.kept
        channels = self.channels
        return MonitorState(
            self.fingerprint,
            self.own,
            watched,
            self.desired,
            model,
            held,
            channels.run_lengths,
            channels.habits,
            channels.residual_scale,
        )

    @property
    def channels(self) -> ChannelState:
        """The behaviour of its channels."""
        return self._channels if self.detector is None else self.detector.channels

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The open one, and those that ended last."""
        return () if self.detector is None else self.detector.log.alarms

    @property
    def maxima(self) -> BlockMaxima | None:
        """The block maxima of its hours; None if it raises no alarms."""
        return None if self.detector is None else self.detector.hours.tally.maxima

    @property
    def r2(self) -> Array:
        """(channels,), how well the others predict each: NaN while that is not known."""
        return np.tile(self.channels.stuck_detector.r2, self._lags)

    @property
    def withholds(self) -> bool:
        """Whether the next rows are not learnt, as far as that is known before they are scored."""
        return not self.learns or (self.detector is not None and self.detector.log.withholds)

    @property
    def learns(self) -> bool:
        """Whether learning is not paused."""
        return not self.desired.paused  # None as well: never set

    def alarm_status(self, now: Now) -> AlarmStatus | None:
        """Return the alarm status of a report, if there is any."""
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

    def change_parent(self) -> None:
        """Go over to another parent, which counts its own numbers."""
        self.desired = replace(self.desired, number=0)

    def apply(self, desired: DesiredState, now: Now) -> bool:
        """Apply a desired state if it is newer; return whether it was."""
        if desired.number <= self.desired.number:
            return False
        self.desired = self.desired.after(desired, desired.number)
        if self.detector is not None:
            was = self.detector.log.open
            for number, accept in desired.verdicts:
                self.detector = self.detector.decide(number, accept=accept, at=now.wall)
            if was is not None and self.detector.log.open is None:
                # The accepted rows have another mean than before.
                if self.own is not None:
                    self.own = self.own.restarted()
                self._reference = None
        return True

    # -- rows ----------------------------------------------------------------------

    def filled(self, rows: Array, model: Model) -> Array:
        """Return rows (n, channels), scaled, with the most likely value in each gap."""
        reference, own = self._reference_for(model)
        return self._scoring_model(reference).filled(rows, own)

    def judge(self, block: Block, model: Model, now: Now) -> Judgement:
        """Score the rows of a block, and decide which of them are learnt."""
        if model is not self._heard:
            self._heard = model
            if self.detector is not None:
                self.detector = self.detector.with_maxima(model.maxima)
        reference, own = self._reference_for(model)
        scoring = self._scoring_model(reference)
        scores = score(block, scoring, own, self.channels.residual_scale)
        decision = Decision.learn(len(block))
        if self.detector is not None:
            situation = Situation(
                now,
                reference.version,
                ready=self.own is None or self.own.ready,
                settled=self.own is None or self.own.settled,
                paused=not self.learns,
            )
            self.detector, decision = detect(self.detector, block, scores, situation)
            self._hold(self.detector, reference, own)
        elif not self.learns:
            decision = decision.withholding_all()
        return Judgement(scores, decision, reference, scoring.center(own))

    def learn(self, rows: Array, features: Storage, time: RowTime) -> None:
        """Take rows that are learnt into the node's own mean."""
        n = len(rows)
        self._unlearnt_s += time.elapsed_s(n)
        if self.own is None or not n:
            return
        kept = 2.0 ** -min(self._unlearnt_s / self._half_life_s, 1000.0)
        self._unlearnt_s = 0.0
        self.own = self.own.after(rows, features, kept=kept, passed_s=time.seen_s(n))

    def _reference_for(self, model: Model) -> tuple[Model, OwnMean | None]:
        """Return the model and the mean to score with: those that the open alarm is held to."""
        if self._reference is not None:
            return self._reference
        own = self.own if self.own is not None and self.own.ready else None
        return model, own

    def _hold(self, detector: AlarmDetector, model: Model, own: OwnMean | None) -> None:
        """Hold an alarm to its model and mean once its rows are learnt: learning would end it."""
        alarm = detector.log.open
        number = 0 if alarm is None else alarm.number
        if number != self._held_for:
            self._held_for = number
            if self._reference is not None and self._reference[1] is not None:
                # The node is back at its mean from before; meanwhile the fault was learnt.
                self.own = self._reference[1]
            self._reference = None
        if alarm is not None and not detector.log.withholds and self._reference is None:
            self._reference = model, own

    def _scoring_model(self, model: Model) -> ScoringModel:
        """Return what scores with a model, made once for the newest."""
        if self._scoring is None or self._scoring[0] is not model:
            scoring = ScoringModel(
                self._summaries, model.scoring_summary, model.limits, self._count
            )
            self._scoring = model, scoring
        return self._scoring[1]


def _no_mean(schema: Schema) -> OwnMean | None:
    """Return the mean of a node without readings; None if the group has one mean."""
    if schema.center != "own":
        return None
    return OwnMean.none(schema.width, None if schema.linear else schema.dim)

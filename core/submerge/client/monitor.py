"""NodeMonitor: how one node judges its readings: about which mean, and by which model.

Its state is never sent, and outlives every incarnation (docs/decisions/0017).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.client.alarms.asides import SETTLES, Asides, ScoredRows, needed_rows
from submerge.client.alarms.detect import detect, hear
from submerge.client.alarms.detector import (
    AlarmDetector,
    ChannelState,
    DetectorState,
    Situation,
    row_statistics,
)
from submerge.client.alarms.highest import LEAST_ROWS
from submerge.client.alarms.new_level import NewLevel, OpenDays, lasting_s
from submerge.client.drill import DrillTask
from submerge.client.monitor_state import MonitorState, no_mean, no_rows
from submerge.drill.response import NodeScorer
from submerge.judge.decision import Decision, Mask
from submerge.judge.prepare import Block, RowTime
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.pca.own_scatter import WIDEST, OwnScatter, covariance_of
from submerge.pca.subspace import LARGEST
from submerge.protocol.alarm_status import Alarm, AlarmStatus, Waiting
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.node_mean import HALF_LIFE_S, READY, OwnMean
from submerge.stats.resolution import Resolution, Steps
from submerge.stats.statistic import By, raised_by

UNSURE_S = 7200.0
"""Time until it is known how a channel varies that came late."""

MOST_ROWS, MOST_NUMBERS = 256, 256 * 400
"""Newest rows, and numbers in them, that a client holds."""


class RecentRows:
    """The newest prepared rows of a client, lags included, in a ring."""

    def __init__(self, width: int) -> None:
        most = max(1, min(MOST_ROWS, MOST_NUMBERS // width))
        self._ring: Storage = np.empty((most, width), dtype=np.float32)
        self._at = np.zeros(most)
        self._next = self._held = 0

    def add(self, block: Block, wall: float = 0.0) -> None:
        """Add the rows of a block that came at a wall time, gaps as gaps."""
        most = len(self._ring)
        rows = block.rows[-most:]
        places = (self._next + np.arange(len(rows))) % most
        self._ring[places] = rows
        all_rows = len(block.why)
        each_s = block.time.seen_s(all_rows) / max(1, all_rows)
        self._at[places] = wall - each_s * (all_rows - 1 - block.which[-most:])
        if block.gaps is not None:
            gaps = self._ring[places]
            gaps[block.gaps[-most:]] = np.nan
            self._ring[places] = gaps
        self._next = (self._next + len(rows)) % most
        self._held = min(self._held + len(rows), most)

    @property
    def rows(self) -> Array:
        """(n, width), oldest first, in float64: a copy."""
        return np.asarray(self._ring[self._order], dtype=np.float64)

    @property
    def times(self) -> Array:
        """(n,), when they came, Unix seconds."""
        return np.asarray(self._at[self._order])

    @property
    def _order(self) -> npt.NDArray[np.intp]:
        return (self._next - self._held + np.arange(self._held, dtype=np.intp)) % len(self._ring)


class Judgement(NamedTuple):
    """A block's scores by a model, measured from a center (channels,), and the decision on it."""

    scores: RowScores
    decision: Decision
    model: Model
    center: Array
    block: Block  # with gaps in place of what is withheld of a row
    raw: Mask  # (n,), rows of an alarm that the node's own mean follows unclipped
    offset: Array | None = None  # how far that was from the level before, as in `MonitorState`


class NodeMonitor:
    """Judges the readings of one node under one schema, from what the monitor before has kept.

    own : A mean of its own, if center = "own", or once an alarm has settled.
    """

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        kept: MonitorState | None = None,
    ) -> None:
        node, self._lags = settings.node, settings.lags
        self._schema, self._count = schema, schema.width // settings.lags
        self._fills_gaps = settings.fills_gaps
        if kept is None:
            kept = MonitorState(
                schema.fingerprint, no_mean(schema), DetectorState(), DesiredState(node, 0)
            )
        kept = kept.of_node(node).of_schema(schema, self._count)
        self.fingerprint, self.own, self.desired = kept.fingerprint, kept.own, kept.desired
        self.offset, self._level, self._no_rows = kept.offset, kept.level, no_rows(schema)
        self._days = OpenDays()
        self._since: OwnScatter | None = None  # of rows learnt since an alarm is open
        self._summaries = summaries
        self._half_life_s = min(schema.half_life or HALF_LIFE_S, HALF_LIFE_S)
        self._channels = kept.channels or ChannelState.none(self._count)
        self._resolution = kept.resolution or Resolution.none(self._count)
        self.scatter = kept.scatter
        fits = schema.width <= WIDEST and summaries.exact != "never"
        self._keeps_scatter = schema.center == "own" and schema.linear and fits
        self._steps: Steps | None = None  # as they are, the same object while they are the same
        self._reference: tuple[Model, OwnMean | None] | None = None
        self._scoring: tuple[Model, ScoringModel] | None = None
        self._heard: Model | None = None
        self._kinds: tuple[By, ...] = raised_by(factors=False)
        self._first = np.zeros((2, schema.width))  # sums and counts of readings before it is ready
        ready = self.own is not None and self.own.ready and kept.resolution is not None
        self._late = np.isnan(self._resolution.last) & ready  # channels without a level yet
        self._coming = np.zeros((2, self._count))  # sums and counts of their first readings
        self._unsure = kept.unsure  # (channels,), noise until it is known how they vary
        self._timed = False  # whether the limits knew how long a row is
        self._unlearnt_s = 0.0  # the age of its mean since rows were learnt
        self._held_for = 0  # the number of the alarm that the reference is for
        self._asides = Asides()
        self.detector: AlarmDetector | None = None
        self.recent_rows = RecentRows(schema.width)
        if settings.alarms is not None:
            names = schema.names[: self._count]
            self.detector = AlarmDetector.of(
                *(node, settings.alarms, names, kept.detector, self._channels, schema.scaling)
            )
            self.detector = replace(
                self.detector,
                silences=kept.silences,
                duty=kept.duty,
                departures=kept.departures,
            )
            if schema.linear:
                self._asides, self.detector = Asides.restored(self.detector)
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
            self._level,
            self.offset,
            None if np.isnan(self._resolution.last).all() else self._resolution,
            None if self.scatter is None else self.scatter.kept,
            None if self.detector is None else self.detector.silences,
            self._unsure,
            None if self.detector is None else self.detector.duty,
            None if self.detector is None else self.detector.departures,
        )

    @property
    def channels(self) -> ChannelState:
        return self._channels if self.detector is None else self.detector.channels

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The open one, and those that ended last."""
        return () if self.detector is None else self.detector.log.listed

    @property
    def names(self) -> tuple[str, ...]:
        """Of its channels, without lags."""
        return self._schema.names[: self._count]

    @property
    def maxima(self) -> BlockMaxima | None:
        """The block maxima of its hours; None if it raises no alarms."""
        return None if self.detector is None else self.detector.hours.maxima

    @property
    def closest(self) -> float | None:
        """How close the rows of the newest minute came to an alarm; None without limits."""
        return None if self.detector is None else self.detector.closeness.share

    @property
    def r2(self) -> Array:
        """(channels,), how well the others predict each: NaN while that is not known."""
        return np.tile(self.channels.stuck_detector.r2, self._lags)

    @property
    def withholds(self) -> bool:
        """Whether the next rows are not learnt, as far as that is known before they are scored."""
        aside = self._asides.withholds
        return not self.learns or (
            self.detector is not None and (aside or self.detector.log.withholds)
        )

    @property
    def learns(self) -> bool:
        return not self.desired.paused  # None as well: never set

    def alarm_status(self, now: Now) -> AlarmStatus | None:
        """Return the alarm status of a report, if there is any."""
        if self.detector is None:
            return (
                AlarmStatus((0,) * 5, desired=self.desired.number) if self.desired.number else None
            )
        model = self._heard
        state = self.detector.state(
            ready=model is None or self._is_ready(model),
            paused=not self.learns,
            stale=model is not None and now.wall > model.expires,
        )
        status = self.detector.alarm_status(state, self.desired.number)
        return replace(status, waiting=self.waiting)

    @property
    def waiting(self) -> Waiting | None:
        """What it waits for before it can have limits."""
        if self._heard is None or not varies(self._heard):
            return Waiting("model")
        if self.own is not None and not self.own.ready:
            return Waiting("mean", self.own.count, READY)
        if self.detector is not None and not self.detector.limits.known:
            scored = self.detector.highest.counted
            return Waiting("limits", scored, LEAST_ROWS) if scored < LEAST_ROWS else None
        return None

    def change_parent(self) -> None:
        """Go over to another parent, which counts its own numbers."""
        self.desired = replace(self.desired, number=0)

    def apply(self, desired: DesiredState, now: Now) -> bool:
        """Apply a desired state if it is newer; return whether it was."""
        if desired.number <= self.desired.number:
            return False
        self.desired = self.desired.after(desired, desired.number)
        for number, accept in desired.verdicts:
            if self.detector is not None:
                self._decide(self.detector, number, accept=accept, at=now.wall)
        return True

    def _decide(self, detector: AlarmDetector, number: int, *, accept: bool, at: float) -> None:
        """Take a person's verdict on an alarm."""
        aside = self._asides.of(number)
        if aside is not None:
            self._asides, self.detector = self._asides.judged(detector, aside, accept=accept, at=at)
            if accept and self._scoring is not None:
                self._move_to(aside.channels, self._scoring[1].center(self.own))
            return
        was, detector = detector.log.open, detector.decide(number, accept=accept, at=at)
        if was is not None and detector.log.open is None:
            # The accepted rows have another mean than before.
            if self.own is not None:
                self.own = self.own.restarted()
                detector = replace(detector, channels=detector.channels.relocated())
            self._reference = None
        self.detector = detector

    def _move_to(self, channels: Mask, center: Array) -> None:
        """Move the mean of some channels to where the newest rows are."""
        newest, at = self.recent_rows.rows[-SETTLES:], np.tile(channels, self._lags)
        known = ~np.isnan(newest)
        n = known.sum(axis=0)
        mean = np.where(known, newest, 0.0).sum(axis=0) / np.maximum(n, 1)
        rows = np.where(at & (n > 0), mean, center)
        own = self.own or self._no_rows.after(rows[None], rows[None], kept=1.0, passed_s=0.0)
        self.own = replace(own, rows=rows)
        self._move(np.zeros(len(rows)))  # a mean without an offset is forgotten

    def filled(self, rows: Array, model: Model) -> Array:
        """Return rows (n, channels), scaled, with the most likely value in each gap."""
        reference, own = self._reference_for(model)
        return self._scoring_model(reference).filled(rows, own)

    def admit(self, rows: Array) -> Array:
        """Return rows (n, channels), in units, with gaps where a channel has no level here yet.

        The first readings of one that is heard for the first time are its level. For two hours
        noise is added, of one scale at first: how it varies is not known.
        """
        late = self._late
        if self.own is None or rows.ndim != 2 or rows.shape[1] != len(late) or not late.any():
            return rows
        known = (np.abs(rows) < LARGEST) & late
        self._coming += [np.where(known, rows, 0.0).sum(axis=0), known.sum(axis=0)]
        sums, counts = self._coming
        come = late & (counts >= READY)
        if come.any():
            means = np.tile(sums / np.maximum(counts, 1), self._lags)
            levels, at = self._schema.scaled(means[None])[0], np.tile(come, self._lags)
            # Lives of the node merge as if it had always been where fillings were.
            moved = np.where(at, levels - self.own.rows, 0.0)
            self._move(moved)
            self.own = own = replace(self.own, rows=self.own.rows + moved)
            if self._reference is not None and (held := self._reference[1]) is not None:
                held = replace(held, rows=np.where(at, own.rows, held.rows))
                self._reference = self._reference[0], held
            self._late = late & ~come
            unsure = np.zeros(len(at)) if self._unsure is None else self._unsure
            self._unsure, self._scoring = np.where(at, 1.0, unsure), None
        return np.asarray(np.where(late, np.nan, rows))

    def hear(self, rows: Array, time: RowTime, now: Now) -> None:
        """Take rows (n, channels) as they come, NaN for gaps: a channel may have fallen silent."""
        if self.detector is None or not len(rows):
            return
        version = 0 if self._heard is None else self._heard.version
        passed_s = time.seen_s(len(rows))
        self.detector = hear(self.detector, rows, passed_s, now.wall, version)

    def judge(self, block: Block, model: Model, now: Now) -> Judgement:
        """Score the rows of a block, and decide which of them are learnt."""
        offset, (reference, own) = self.offset, self._reference_for(model)
        # Of the statistics that rows are scored with, which may be those of an earlier model.
        kinds = raised_by(factors=bool(reference.factors))
        timed = self.detector is not None and self.detector.row_s > 0
        if model is not self._heard or kinds != self._kinds or timed is not self._timed:
            self._heard, self._kinds, self._timed = model, kinds, timed
            if self.detector is not None:
                # A group whose models carry noise has none.
                maxima = self.maxima if model.epsilon else model.maxima
                self.detector = self.detector.with_maxima(
                    maxima, kinds, model.widened, model.block_s, model.counts.learnt
                )
        scoring = self._scoring_model(reference)
        block = self._read(block)
        scores = score(block, scoring, own, self.channels.residual_scale)
        decision = Decision.learn(len(block))
        raw = decision.alarmed
        if self.detector is not None:
            self.recent_rows.add(block, now.wall)
            situation = Situation(
                now,
                reference.version,
                ready=self._is_ready(reference),
                settled=self.own is None or self.own.settled,
                paused=not self.learns,
            )
            rows = ScoredRows(block, scores, scoring, own, self.channels.residual_scale, self._lags)
            decision, block, raw = self._watch(self.detector, rows, situation, reference)
        elif not self.learns:
            decision = decision.withholding(True)
        if block.beyond is not None:
            decision = decision.withholding(block.beyond)
        return Judgement(scores, decision, reference, scoring.center(own), block, raw, offset)

    def _watch(
        self, detector: AlarmDetector, rows: ScoredRows, situation: Situation, model: Model
    ) -> tuple[Decision, Block, Mask]:
        """Return the decision on rows, the block to learn, and rows that the mean follows as is."""
        asides, block, now = self._asides, rows.block, situation.now
        rest, scores = rows.without(asides.channels)
        whole = (block, rows.scores) if asides.each and rows.scores is not None else None
        detector, decision = detect(detector, rest, scores, situation, whole)
        raw, parts = decision.alarmed, np.zeros(block.rows.shape, dtype=bool)
        self._hold(detector, model, rows.own)
        seeks, still = block.beyond is None, asides.channels
        if seeks:
            mine = None if still is None else ~still
            detector, self._level = self._seek_level(
                *(detector, self._level, rows, rest, decision.alarmed, still, mine, now)
            )
            detector = self._outlast(detector, rest, scores, now)
            if detector.log.open is None:
                self._reference, self._held_for, self._since = None, 0, None
        followed = []
        for each in asides.each if situation.ready else ():
            others = asides.others(each, detector.log)
            part, scores = rows.without(others)
            aside, own, close = each.after(detector, part, scores, situation)
            if self._fills_gaps:
                parts |= own.withheld[:, None] & np.tile(each.channels, self._lags)
                factors = own.factors
                if factors is not None:
                    factors = np.where(own.withheld, 1.0, factors)
                raw = raw | (own.alarmed & ~own.withheld)
                own = Decision(own.alarmed, np.zeros_like(own.withheld), factors)
            else:
                raw = raw | own.alarmed
            decision = decision.joined(own)
            if seeks:
                alone, level = self._seek_level(
                    *(aside.at(detector), aside.level, rows, part, own.alarmed),
                    *(others, each.channels, now),
                )
                aside = replace(aside, log=alone.log, recent=alone.recent, level=level)
                detector = replace(detector, channels=alone.channels)
            detector = replace(detector, closeness=close)
            followed.append(aside)
        if followed:
            asides = replace(asides, each=tuple(followed))
            asides, detector = asides.without_ended(detector, now.wall)
        asides, due = asides.with_rows(detector, len(block))
        if due and self._schema.linear:
            channels = asides.to_set_aside(detector, self._newest(rows, needed_rows(detector)))
            if channels is not None:
                asides, detector = asides.with_alarm(detector, channels, self._level)
                self._level = None
        self._asides, self.detector = asides, detector
        if parts.any():
            block = block.without(parts, partial(rows.model.filled, own=rows.own))
            if block.gaps is not None:
                # As a row with fewer than half of its channels is.
                decision = decision.withholding(2 * block.gaps.sum(axis=1) > block.rows.shape[1])
        return decision, block, raw

    def _newest(self, rows: ScoredRows, n: int) -> ScoredRows:
        """Return the newest n rows, of earlier blocks as well."""
        known = self.recent_rows.rows[-n:]
        filled = rows.model.filled(known, rows.own)
        gaps, steps = np.isnan(known), self._steps
        block = replace(rows.block, rows=filled, features=filled, gaps=gaps, steps=steps)
        return replace(rows, block=block, scores=None)

    def _read(self, block: Block) -> Block:
        """Return a block with the steps of its readings."""
        self._resolution, steps = self._resolution.after(block.known(self._count))
        if steps is not None or self._steps is None:
            self._steps = self._resolution.steps
        return replace(block, steps=self._steps if steps is None else steps)

    @property
    def scored_by(self) -> int:
        """Version of the model that rows are scored by now; 0 without one."""
        return 0 if self._heard is None else self._reference_for(self._heard)[0].version

    def drill_task(self) -> DrillTask | None:
        """Return what a drill works with; None before a model, or without alarms."""
        detector, model = self.detector, self._heard
        if detector is None or model is None:
            return None
        reference, own = self._reference_for(model)
        settled = self.own is None or self.own.settled
        limits = {kind: detector.limit(kind, settled=settled) for kind in detector.limits.known}
        return DrillTask(
            self.desired.drill,
            self.fingerprint,
            NodeScorer(
                self._scoring_model(reference),
                self._schema,
                own,
                self.channels.residual_scale,
                steps=self._steps,
            ),
            self.recent_rows.rows,
            {kind: limit for kind, limit in limits.items() if limit < math.inf},
            detector.settings,
            1 / detector.limits.provisional_s
            if detector.limits.provisional_s
            else detector.settings.often_per_s(detector.row_s),
        )

    def learn(
        self, rows: Array, features: Storage, time: RowTime, gaps: Mask | None = None
    ) -> None:
        """Take rows that are learnt into the node's own mean; `gaps` in them were filled."""
        n = len(rows)
        self._unlearnt_s += time.elapsed_s(n)
        if self._unsure is not None:
            unsure = np.maximum(0.0, self._unsure - time.seen_s(n) / UNSURE_S)
            self._unsure = unsure if unsure.any() else None
        if self.own is None or not n:
            return
        kept = 2.0 ** -min(self._unlearnt_s / self._half_life_s, 1000.0)
        self._unlearnt_s = 0.0
        if self._keeps_scatter and self.own.ready:
            # Filled values would vary less. What an open alarm learns may be a fault.
            whole = rows if gaps is None else rows[~gaps.any(axis=1)]
            held = self.scatter if self._reference is None else self._since
            scatter = (held or OwnScatter.none(self._schema.width)).after(
                whole - self.own.rows, kept
            )
            if self._reference is None:
                self.scatter = scatter
            else:
                self._since = scatter
        was, self.own = self.own, self.own.after(rows, features, kept=kept, passed_s=time.seen_s(n))
        if not was.ready:
            if not was.count:
                self._first = np.zeros((2, rows.shape[1]))
            known = np.ones(rows.shape, dtype=bool) if gaps is None else ~gaps
            self._first += np.where(known, [rows, np.ones(rows.shape)], 0.0).sum(axis=1)
            sums, counts = self._first
            # What filled them was not about this mean. A channel that stands still varies by less.
            mean = np.where(counts > 0, sums / np.maximum(counts, 1), self.own.rows)
            self.own = replace(self.own, rows=mean)
            if self.own.ready:
                self._late = counts[: self._count] == 0

    def _is_ready(self, model: Model) -> bool:
        """Whether scores by a model mean anything yet."""
        return varies(model) and (self.own is None or self.own.ready)

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
            self._held_for, self._level = number, None
            self._days, self._since = OpenDays(), None
            if self._reference is not None and self._reference[1] is not None:
                # The node is back at its mean from before; meanwhile the fault was learnt.
                self.own = self._reference[1]
            self._reference = None
        held = detector.log.serious is not None and not detector.log.withholds
        if held and self._reference is None:
            self._reference = model, own

    def _move(self, by: Array) -> None:
        self.offset = by if self.offset is None else self.offset + by

    def _seek_level(
        self,
        detector: AlarmDetector,
        level: NewLevel | None,
        rows: ScoredRows,
        block: Block,
        alarmed: Mask,
        others: Mask | None,
        channels: Mask | None,
        now: Now,
    ) -> tuple[AlarmDetector, NewLevel | None]:
        """Return a detector, and where the rows of its open alarm are; it ends if they stay there.

        block : The rows without `others`, the channels of other alarms.
        channels : (n,), whose level is moved; None for all.
        """
        alarm, limits = detector.log.open, detector.limits.known
        unjudged = alarm is not None and not alarm.verdict and not detector.stuck
        if not unjudged or not limits or not self.learns or not len(block):
            return detector, None
        level, about = level or NewLevel(self._no_rows), None
        if level.mean.ready:
            about = rows.about(level.mean, others, channels)
        level = level.after(block, alarmed, about, detector)
        log = replace(detector.log, patience=level.patience(detector.log.held_s))
        detector = replace(detector, log=log)
        waits = detector.log.withholds and detector.log.serious is not None
        if waits or not level.holds(detector.settings.of, lasting_s(detector)):
            return detector, level
        if level.has_grown(rows.model, rows.own, detector):
            return detector, None
        center = rows.model.center(rows.own)
        moved = level.mean.rows - center
        if channels is None:
            self.own = level.mean
        else:
            moved = np.where(np.tile(channels, self._lags), moved, 0.0)
            # Another alarm may have moved it in the same block.
            mean = replace(level.mean, rows=center) if self.own is None else self.own
            self.own = replace(mean, rows=mean.rows + moved)
        self._move(moved)
        self._unlearnt_s = 0.0
        return detector.settle(now.wall, moved[: self._count]), None

    def _outlast(
        self, detector: AlarmDetector, block: Block, scores: RowScores, now: Now
    ) -> AlarmDetector:
        """Return a detector whose alarm ends if a day of it was no worse than the one before."""
        alarm = detector.log.serious
        if alarm is None or alarm.verdict or detector.stuck or not (self.learns and len(block)):
            return detector
        sizes = scores.even.get("distance", scores.spe)
        self._days = self._days.after(sizes, block.time.seen_s(len(block)))
        if detector.log.withholds or not self._days.alike:
            return detector
        # What is usual of the node is measured again.
        self.own, self._unlearnt_s = (self.own or self._no_rows).restarted(), 0.0
        if self._since is not None:
            self.scatter = (self.scatter or OwnScatter.none(self._schema.width)).with_newer(
                self._since
            )
        return detector.begun_again(now.wall)

    def _scoring_model(self, model: Model) -> ScoringModel:
        """Return what scores with a model, made for the newest, and as the node's scatter grows."""
        own, factors = self.scatter, model.factors
        more = own is not None and len(factors) == 1 and not own.waits
        if own is not None and more:
            self.scatter = own = own.taken_in(
                covariance_of(factors[0], model.scoring_summary.parts[-1])
            )
        if more or self._scoring is None or self._scoring[0] is not model:
            scoring = ScoringModel(
                self._summaries.at(model.rank),
                model.scoring_summary,
                model.limits,
                self._count,
                factors,
                own,
                self._unsure,
            )
            self._scoring = model, scoring
        return self._scoring[1]


def varies(model: Model) -> bool:
    """Whether anything varied in the rows that a model is of."""
    # Where a fleet stood still until now, every other reading is infinitely far off: that says
    # nothing, and would withhold all rows from which a model could follow.
    parts = model.scoring_summary.parts
    return not parts or any(part.rank for part in parts)


class NewestScore(NamedTuple):
    """The newest row's statistic closest to its limit, as compared; limit 0 while there is none."""

    kind: By
    value: float
    limit: float

    @property
    def share(self) -> float | None:
        """The value over its limit: above 1 there is an alarm. None without a limit."""
        return self.value / self.limit if self.limit else None


def newest_score(monitor: NodeMonitor) -> NewestScore | None:
    """Return it for any thread, in O(kinds * of); None before the first row was scored."""
    detector, own = monitor.detector, monitor.own
    if detector is None:
        return None
    kinds, scores = detector.recent.kinds, detector.recent.scores
    of, after = detector.settings.of, detector.settings.after
    if not kinds or scores.shape[1] < of:
        return None
    settled = own is None or own.settled
    values = row_statistics(kinds, scores[:, -of:], of, after)[:, -1].tolist()
    found = []
    for kind, value in zip(kinds, values, strict=True):
        limit = detector.limit(kind, settled=settled)
        # After a restart the scores before an open alarm's first row are infinite.
        if math.isfinite(value):
            found.append(NewestScore(kind, value, limit if 0 < limit < math.inf else 0.0))
    # Without limits it is the statistic by which alarms will be raised first.
    return max(found, key=lambda each: each.share or 0.0, default=None)

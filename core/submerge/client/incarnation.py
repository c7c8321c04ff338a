"""ClientIncarnation: one incarnation of a client, from zero to its last report.

It never resumes from disk: a process that comes back starts another incarnation, and sends what it
had kept of this one as a final report under this one's name (`Checkpoint`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.client.few_rows import FewRows, Priorities, no_rows
from submerge.client.measurement import MeasuredRows, MeasuringMemory
from submerge.judge.prepare import GAPS, LARGEST_SCALED, LEAD_IN, OTHER_STATE, REASONS, TOO_LARGE
from submerge.pca.expectation import Guesses
from submerge.pca.own_scatter import OwnScatter
from submerge.pca.subspace import LARGEST, Subspace
from submerge.protocol.alarm_status import AlarmStatus
from submerge.protocol.machine import Now
from submerge.protocol.messages import (
    Answer,
    Counts,
    Incarnation,
    Pin,
    Report,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.score_trail import NO_TRAIL, ScoreTrail
from submerge.protocol.summaries import NO_METHOD, Learner, Method, Summaries, Summary
from submerge.schema import Schema
from submerge.stats.moments import Moments, pooled


@dataclass(frozen=True, slots=True)
class RowAccount:
    learnt: int = 0
    waiting: int = 0  # for a parent, or a settled schema; the next start sends them
    lost: int = 0  # learnt here, and no parent gets them any more
    withheld: int = 0  # because of an alarm, or because an operator has paused learning
    lead_in: int = 0  # too few rows before them for their lags
    other_state: int = 0  # outside `learn when`
    gaps: int = 0  # that could not be filled
    too_large: int = 0  # rows with numbers that are too large
    only_measured: int = 0  # the fleet's scaling; there was no memory to keep them

    @property
    def rows(self) -> int:
        """All rows: the sum of all fates."""
        return sum(getattr(self, each.name) for each in fields(self))

    @property
    def shown(self) -> dict[str, int]:
        """The fates as a line shows them: the first three always, others if there are any."""
        known = {each.name: int(getattr(self, each.name)) for each in fields(self)}
        always = {"learnt", "waiting", "lost"}
        return {fate: n for fate, n in known.items() if n or fate in always}

    @property
    def given_up(self) -> RowAccount:
        """The same, where what waits is lost."""
        return replace(self, waiting=0, lost=self.lost + self.waiting)

    def __add__(self, other: Self) -> RowAccount:
        names = (each.name for each in fields(self))
        return RowAccount(**{name: getattr(self, name) + getattr(other, name) for name in names})


def advice(account: RowAccount, *, has_parent: bool, unsettled: int) -> str:
    """Return what a person may do about rows that are not learnt, in one line; empty if nothing."""
    if account.lost:
        if has_parent:
            return "see the lines above that begin with `lost`"
        return "check the way to the parent: what a client reads before it reaches one is lost"
    if unsettled:
        return "the scaling is still measured: the next start after that learns what waits"
    if account.waiting:
        return "start the client again when it can reach its parent: it then sends what waits"
    return ""


def _method(learner: Learner | None, own: OwnScatter | None) -> Method:
    method = NO_METHOD if learner is None else learner.method
    if own is None or not own.weight:
        return method
    return method._replace(own_share=round(1 - own.share, 3), unlike=round(own.unlike, 3))


FADE_STEPS = 64  # steps in a half-life, at least: the weight of no row is wrong by more than 1.1 %


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """An incarnation on disk: it is sent as a final report if the process ends."""

    report: Report
    # None before the first join: such a checkpoint is never sent, it could bind to a second parent.
    pin: Pin | None
    delivered: int  # readings of it that the parent had confirmed
    measured: MeasuredRows | None = None  # the readings, if they only served to settle the schema

    @property
    def undelivered(self) -> int:
        """Readings that are lost if it is refused: no parent has them, but for their moments."""
        delivered = self.delivered if self.measured is None else 0
        return self.report.counts.generated - delivered


class ClientIncarnation:
    """One uninterrupted run.

    learns, raw : Whether everything that learning needs is settled; whether not even the scaling.
    lost : Readings that earlier incarnations could not deliver: it declares them as lost.
    together : So many rows are learnt at once, or more.
    pin : None before the first join.
    seq : Rises with every report and every checkpoint.
    delivered, held : Readings of it that the parent holds, and those of them that are learnt.
    root, durable : The root's incarnation, and the newest seq that it surely holds.
    """

    def __init__(
        self,
        incarnation: Incarnation,
        schema: Schema,
        summaries: Summaries,
        now: Now,
        *,
        learns: bool,
        raw: bool,
        lost: int,
        together: int = 1,
    ) -> None:
        self.incarnation = incarnation
        self.schema = schema
        self.fingerprint = schema.fingerprint
        self.counts = Counts(lost=lost)
        self.pin: Pin | None = None
        self.seq = self.delivered = self.held = self.durable = 0
        self.root: Incarnation | None = None
        self.shown: Summary | None = None
        """The summary of the newest confirmed report."""
        self._summaries = summaries
        self._learner: Learner | None = summaries.learner(schema) if learns else None
        self._moments: Moments | None = None
        self._measuring = None if learns else MeasuringMemory(schema, summaries)
        self._faded_at = now.steady
        self._not_learnt = RowAccount()
        self._together, self.few = together, no_rows(schema)
        self._guessed_by: Subspace | None = None
        self.raw = raw

    @property
    def learns(self) -> bool:
        """False while it only gathers moments, because the scaling or gamma is not known yet."""
        return self._learner is not None

    @property
    def early(self) -> int:
        """Readings that it has learnt before it had any parent; 0 once it has one."""
        return self.counts.learnt if self.pin is None else 0

    @property
    def undelivered(self) -> int:
        """Readings that are lost if it ends here."""
        return self.counts.generated - self.delivered

    @property
    def generated(self) -> int:
        """Readings that it has seen, with those that wait to be learnt."""
        return self.counts.generated + len(self.few)

    @property
    def progress(self) -> tuple[int, int, Pin | None]:
        """A checkpoint is due only if this changes."""
        return self.generated, self.delivered, self.pin

    @property
    def largest(self) -> float:
        """The bound of scaled numbers that are learnt; without a scale, what NumPy can sum."""
        return LARGEST if self.raw else LARGEST_SCALED

    @property
    def account(self) -> RowAccount:
        """What has become of its rows; those that no parent has learnt wait."""
        held = self.held if self.learns else 0
        waiting = self.counts.learnt - held + len(self.few)
        return replace(self._not_learnt, learnt=held, waiting=waiting)

    def withhold(self, rows: int) -> None:
        """Count readings that are not learnt because of an alarm or an operator."""
        self._not_learnt += RowAccount(withheld=rows)
        self.counts = self.counts + Counts(withheld=rows)

    def leave_out(self, why: npt.NDArray[np.int8]) -> None:
        """Count readings that cannot be learnt, by `prepare`'s reasons (n,)."""
        n = np.bincount(why, minlength=len(REASONS)).tolist()
        self._not_learnt += RowAccount(
            lead_in=n[LEAD_IN], other_state=n[OTHER_STATE], gaps=n[GAPS], too_large=n[TOO_LARGE]
        )
        self.counts = self.counts + Counts(withheld=sum(n[1:]))

    def learn(
        self,
        rows: Array,
        features: Storage,
        now: Now,
        priorities: Priorities | None = None,
        gaps: Guesses | None = None,
    ) -> None:
        """Take in usable rows (n, channels), scaled if that is known, and features (n, dim)."""
        if not len(rows):
            return
        if self._together == 1:
            self._learn(rows, features, now, priorities, gaps)
            return
        if gaps is not None and gaps.model is not None:
            self._guessed_by = gaps.model
        mask = np.zeros(rows.shape, dtype=bool) if gaps is None else gaps.mask
        at = np.full(len(rows), now.steady)
        self.hold(FewRows(np.asarray(rows), mask, at, self.schema.canonical, priorities), now)

    def hold(self, few: FewRows, now: Now) -> None:
        """Take in rows under its schema, and learn all but the newest if they are enough."""
        self.few = self.few.joined(few) if len(self.few) else few
        older = len(self.few) - self._together
        if older >= self._together:
            self._learn_few(self.few[:older], now)
            self.few = self.few[older:]

    def learn_few(self, now: Now) -> None:
        """Learn the rows that wait, if they are enough, since no more may come."""
        if len(self.few) >= self._together:
            self._learn_few(self.few, now)
            self.few = no_rows(self.schema)

    def _learn_few(self, few: FewRows, now: Now) -> None:
        # As of when they came: what has waited for a night has faded.
        for part in few.spans((self.schema.half_life or math.inf) / FADE_STEPS):
            rows, features = part.rows, part.rows
            if self._learner is not None and not self.schema.linear:
                features = self.schema.features.lift(rows)
            guesses = Guesses(part.gaps, self._guessed_by) if part.gaps.any() else None
            at = now._replace(steady=float(part.at[-1]))
            self._learn(rows, features, at, part.priorities, guesses)

    def _learn(
        self,
        rows: Array,
        features: Storage,
        now: Now,
        priorities: Priorities | None,
        gaps: Guesses | None,
    ) -> None:
        half_life = self.schema.half_life
        if not self.counts.learnt:
            self._faded_at = min(self._faded_at, now.steady)
        if half_life and now.steady - self._faded_at >= half_life / FADE_STEPS:
            for memory in (self._learner, self._measuring):
                if memory is not None:
                    memory.fade(self._age_factor(now))
            self._faded_at = now.steady
        if self._learner is not None:
            self._learner.learn(rows, features, gaps)
        if self._measuring is not None:
            self._measuring.learn(rows, gaps)
            new = Moments.of(rows, priorities)
            self._moments = new if self._moments is None else pooled(self._moments, new)
        self.counts = self.counts + Counts(learnt=len(rows))

    def declare(self, lost: int) -> None:
        self.counts = self.counts + Counts(lost=lost)

    def summary(self, now: Now) -> Summary | None:
        """Return the summary as of now; None before the first row."""
        if self._learner is None or not self.counts.learnt:
            return None
        return self._summaries.faded(self._learner.summary(), self._age_factor(now))

    def report(
        self,
        node: str,
        group: str,
        now: Now,
        *,
        version: int,
        lifetime: int,
        scores: ScoreSketches | None,
        alarm_status: AlarmStatus | None = None,
        trail: ScoreTrail = NO_TRAIL,
        own: OwnScatter | None = None,
    ) -> Report:
        """Return a report of everything that it has seen, under the next number."""
        self.seq += 1
        return Report(
            stamp=Stamp(node, group, self.incarnation, self.seq),
            final=False,
            # Before the first join it is pinned to an incarnation that does not exist.
            pinned=Incarnation(0, 0) if self.pin is None else self.pin.incarnation,
            fence=b"",
            fingerprint=self.fingerprint,
            summary=self.summary(now),
            moments=self._moments,
            counts=self.counts,
            as_of=now.wall,
            synced=now.synced,
            version=version,
            lifetime=lifetime,
            scores=scores,
            alarm_status=alarm_status,
            trail=trail,
            method=_method(self._learner, own),
        )

    def checkpoint(self, report: Report, now: Now) -> Checkpoint:
        """Return `report` as the last report of this incarnation; its trail is the process's."""
        measured = self.measured(now)
        final = replace(report, final=True, trail=NO_TRAIL)
        return Checkpoint(final, self.pin, self.delivered, measured)

    def measured(self, now: Now) -> MeasuredRows | None:
        """Return the readings that have only been measured; None if it learns, or has none."""
        measuring = self._measuring
        return None if measuring is None else measuring.kept(self._age_factor(now))

    def confirm(self, report: Report) -> None:
        self.delivered, self.shown = report.counts.generated, report.summary
        self.held = report.counts.learnt

    def hear(self, answer: Answer) -> None:
        """Take what the root holds from an answer; another root begins at 0."""
        if answer.root is not None:
            known = self.durable if answer.root == self.root else 0
            # An older answer may come later.
            self.root, self.durable = answer.root, max(known, answer.durable)

    def _age_factor(self, now: Now) -> float:
        if not self.schema.half_life:
            return 1.0
        # 2^-1000 of a reading is still a number; a summary of weight zero is invalid.
        halvings = (now.steady - self._faded_at) / self.schema.half_life
        return float(2.0 ** -min(halvings, 1000.0))

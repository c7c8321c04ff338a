"""PendingFinals: final reports of a client's earlier incarnations that are not delivered yet.

What is refused, never had a parent, or is pushed out by newer ones, the running incarnation
declares lost. What was measured waits as in `measurement`, and is kept until it is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge.client.incarnation import Checkpoint, ClientIncarnation, RowAccount
from submerge.client.measurement import successors_report
from submerge.protocol.machine import Effect, Keep, Note, Now, Records, Send
from submerge.protocol.messages import ANOTHER, Answer, Incarnation, Pin, Reason, Report, binds
from submerge.protocol.names import RandomSource
from submerge.protocol.retry import Retry
from submerge.protocol.session import ParentSession, is_whole
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries

CHECKPOINT, PAST = ("checkpoint",), ("past",)
"""Records that a client keeps: of the running incarnation, and of those before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What earlier incarnations left on disk."""

    finals: tuple[Checkpoint, ...] = ()
    absorbed: Incarnation | None = None  # its checkpoint is already handled
    lost: int = 0  # readings that the next one declares
    lifetime: int = 0  # readings of all


@dataclass(slots=True, eq=False)
class PendingFinal:
    """A final that waits: as it is kept, when it is due, and the report that is sent."""

    kept: Checkpoint
    retry: Retry
    report: Report

    @property
    def measures(self) -> bool:
        """Whether it is sent for its moments, and waits for a settled schema after that."""
        return self.kept.measured is not None and self.report.moments is not None


SERVED = (Reason.ACK, Reason.STALE, Reason.SCHEMA, Reason.EQUIVOCATION, Reason.SHRUNK)
"""Answers after which a final that measures waits: its readings are still to be counted."""


class PendingFinals:
    """Final reports that wait for an answer; `past` is as on disk."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self.past = Past()
        self._waiting: list[PendingFinal] = []
        self._closed = RowAccount()  # of incarnations of this process, without rows that wait
        self._own = set[Incarnation]()  # those of this process whose finals wait

    @property
    def waiting(self) -> int:
        return sum(final.retry.at < np.inf for final in self._waiting)

    @property
    def measured(self) -> int:
        """Readings that wait for the fleet to settle its schema."""
        return sum(each.report.counts.learnt for each in self._waiting if each.measures)

    def measured_by(self, fingerprint: str) -> int:
        """Number of readings that wait, of those that were measured under one schema."""
        return sum(
            each.kept.report.counts.learnt
            for each in self._waiting
            if each.measures and each.kept.report.fingerprint == fingerprint
        )

    @property
    def from_before(self) -> int:
        """Readings of earlier processes that wait for an answer, or for a settled schema."""
        return self._waiting_of(own=False)

    def account(self, current: ClientIncarnation, *, ends: bool = False) -> RowAccount:
        """Return what became of each row; once it `ends`, rows not kept for a parent are lost."""
        last, few = current.account, len(current.few)
        if ends:
            last = replace(last, waiting=last.waiting - few, lost=last.lost + few)
        if ends and current.pin is None:
            last = last.given_up
        return self._closed + RowAccount(waiting=self._waiting_of(own=True)) + last

    def _waiting_of(self, *, own: bool) -> int:
        reports = (each.kept.report for each in self._waiting)
        return sum(
            report.counts.learnt
            for report in reports
            if (report.stamp.incarnation in self._own) == own
        )

    def due_at(self, session: ParentSession) -> float:
        """Return when the next final is due that may be sent."""
        times = (each.retry.at for each in self._waiting if _may_go(each, session))
        return min(times, default=np.inf)

    def load(self, kept: Records, effects: list[Effect]) -> None:
        """Load the records; the last incarnation's checkpoint becomes a final."""
        past: Past = kept.get(PAST, Past())
        last: Checkpoint | None = kept.get(CHECKPOINT)
        finals, lost, lifetime = list(past.finals), past.lost, past.lifetime
        absorbed = past.absorbed
        # A write may have failed that would have deleted the checkpoint of one that is held.
        known = {absorbed, *(final.report.stamp.incarnation for final in finals)}
        if last is not None and last.report.stamp.incarnation not in known:
            absorbed = last.report.stamp.incarnation
            # Its own report declares what it knew as lost then.
            lost = max(0, lost - last.report.counts.lost)
            lifetime = max(lifetime, last.report.lifetime)
            if self.may_send(last):
                finals.append(last)
            else:
                lost += last.report.counts.generated
                effects.append(lost_note(last.report, last.undelivered, "kept before a join"))
        most = self._settings.finals
        lost += _pushed_out(finals[:-most], effects)
        self._waiting = [self._pending(final) for final in finals[-most:]]
        self.past = Past(tuple(finals[-most:]), absorbed, lost, lifetime)
        if last is not None:
            effects.append(Keep({PAST: self.past}))

    def may_send(self, last: Checkpoint) -> bool:
        """Return whether a checkpoint may be sent: unpinned, it could bind to a second parent."""
        return last.pin is not None

    def close(
        self, current: ClientIncarnation, last: Checkpoint, why: str, effects: list[Effect]
    ) -> None:
        """Note that an incarnation ended while its process goes on, with its last checkpoint."""
        # It is not sent; all that no parent has is lost but readings measured for one: they wait.
        counts, lost = last.report.counts, last.undelivered
        if last.measured is None or last.pin is None:
            effects.append(lost_note(last.report, lost, why))
            self._closed += current.account.given_up
        else:
            few = len(current.few)  # they are in no report
            self._closed += replace(current.account, waiting=0) + RowAccount(lost=few)
            self._own.add(current.incarnation)
            most, waiting = self._settings.finals, [*self._waiting, self._pending(last)]
            for each in waiting[:-most]:
                self._count(each, served=False)
            lost = _pushed_out([each.kept for each in waiting[:-most]], effects)
            self._waiting = waiting[-most:]
        self.past = Past(
            tuple(final.kept for final in self._waiting),
            last.report.stamp.incarnation,
            lost,
            self.past.lifetime + counts.learnt + counts.withheld,
        )
        effects.append(Keep({PAST: self.past, CHECKPOINT: None}))

    def send(
        self,
        now: Now,
        rng: RandomSource,
        effects: list[Effect],
        session: ParentSession,
        summaries: Summaries,
    ) -> None:
        """Send the finals that are due, as the parent takes them."""
        for each in self._waiting:
            if each.retry.at <= now.steady and _may_go(each, session):
                report = session.formed(each.report, summaries)
                effects.append(Send(self._settings.parent, report))
                each.retry.tried(now.steady, rng)

    def retry_now(self) -> None:
        """Make all finals due now, because the way is open again."""
        for each in self._waiting:
            if each.retry.at < np.inf:
                each.retry.now()

    def meet(
        self, pin: Pin, current: ClientIncarnation, summaries: Summaries, effects: list[Effect]
    ) -> None:
        """Bind the finals to the parent that answered, and its schema; drop others."""
        for final in list(self._waiting):
            if final.kept.pin is not None and not binds(final.kept.pin, pin):
                self._drop(final, ANOTHER, current, effects)
                continue
            before = final.report
            final.report = replace(final.kept.report, pinned=pin.incarnation)
            final.kept = replace(final.kept, report=final.report, pin=pin)
            final.retry = self._due()
            measured = final.kept.measured
            if measured is None:
                continue
            if not current.learns:
                if final.report.fingerprint != current.fingerprint:
                    # Of other channels: it is taken once these are settled, and not before.
                    final.retry.stop()
                continue
            if before.moments is None and before.fingerprint == current.fingerprint:
                final.report = replace(before, pinned=pin.incarnation)
                continue
            moved = successors_report(final.report, measured, current.schema, summaries)
            if moved is None:
                # Of channels that cannot be read as these: the parent would refuse it, again and
                # again.
                final.retry.stop()
                continue
            final.report = moved
            effects.append(_moved_note(final.kept.report, moved))

    def take_answer(
        self, answer: Answer, current: ClientIncarnation, effects: list[Effect]
    ) -> bool:
        """Take an answer that may be to a final; return whether one waits for a schema."""
        another = False
        for final in list(self._waiting):
            # A late answer to an earlier report of that incarnation does not count.
            if final.report.stamp != answer.stamp or final.report.pinned != answer.pinned:
                continue
            if final.kept.measured is not None and answer.reason is Reason.SCHEMA:
                final.retry.stop()
                another = True
            elif final.measures and answer.reason in SERVED:
                final.retry.stop()
            elif answer.reason is Reason.ACK:
                self._drop(final, None, current, effects)
            elif answer.reason is not Reason.UNAVAILABLE:
                self._drop(final, answer.reason.name.lower(), current, effects)
        return another

    def _drop(
        self,
        final: PendingFinal,
        why: str | None,
        current: ClientIncarnation,
        effects: list[Effect],
    ) -> None:
        """Remove a final: it was accepted, or its readings are lost."""
        self._waiting.remove(final)
        self._count(final, served=why is None)
        lost = self.past.lost
        if why is not None:
            lost += final.kept.undelivered
            current.declare(final.kept.undelivered)
            effects.append(lost_note(final.kept.report, final.kept.undelivered, why))
        finals = tuple(other.kept for other in self._waiting)
        self.past = replace(self.past, finals=finals, lost=lost)
        effects.append(Keep({PAST: self.past}))

    def _count(self, final: PendingFinal, *, served: bool) -> None:
        """Account for the rows of a final that leaves, if they are of this process."""
        name, measured = final.kept.report.stamp.incarnation, final.kept.report.counts.learnt
        if name not in self._own:
            return
        self._own.discard(name)
        learnt = final.report.counts.learnt
        moved = RowAccount(learnt=learnt, only_measured=measured - learnt)
        self._closed += moved if served else RowAccount(lost=measured)

    def _pending(self, final: Checkpoint) -> PendingFinal:
        return PendingFinal(final, self._due(), final.report)

    def _due(self) -> Retry:
        retry = Retry(self._settings.patience_s, self._settings.cap_s)
        retry.now()
        return retry


def _may_go(final: PendingFinal, session: ParentSession) -> bool:
    """Return whether a final may be sent: some wait for the answer to a join."""
    # It has to be known in which form the parent takes a whole scatter, for one number has one
    # content; and under which schema it takes what was measured.
    waits = final.kept.measured is not None or is_whole(final.report)
    return session.knows_form or not waits


def _pushed_out(finals: list[Checkpoint], effects: list[Effect]) -> int:
    """Return the readings of finals for which there is no room."""
    for final in finals:
        effects.append(lost_note(final.report, final.undelivered, "too many wait"))
    return sum(final.undelivered for final in finals)


def _moved_note(measured: Report, moved: Report) -> Note:
    """Return the note that readings go over to the settled schema, and how many of them."""
    learnt = moved.counts.learnt
    rest = measured.counts.learnt - learnt
    facts = {"report": measured, "moved": learnt, "only_measured": rest}
    return Note("measured readings moved", facts)


def lost_note(report: Report, readings: int, why: str) -> Note:
    """Return the note that an incarnation's undelivered readings are lost, its own alone."""
    own = report.counts.generated - report.counts.lost
    facts = {"report": report, "readings": min(readings, own), "why": why}
    return Note("lost", facts, "warning")

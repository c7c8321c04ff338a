"""PendingFinals: final reports of a client's earlier incarnations that are not delivered yet.

At each start the checkpoint of the incarnation before becomes a final report, under its own name
and parent; it is sent until it is accepted or refused. A final that is refused, that never had a
parent, or that newer ones push out is lost: the running incarnation declares its readings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge.client.incarnation import Checkpoint, ClientIncarnation
from submerge.protocol.machine import Effect, Keep, Note, Now, Records, Send
from submerge.protocol.messages import ANOTHER, Answer, Incarnation, Pin, Reason, Report, binds
from submerge.protocol.randomness import RandomSource
from submerge.protocol.report_form import is_whole
from submerge.protocol.retry import Retry
from submerge.protocol.session import ParentSession
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries

CHECKPOINT, PAST = ("checkpoint",), ("past",)
"""Records that a client keeps: of the running incarnation, and of those before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What earlier incarnations left behind, on disk.

    absorbed : the incarnation whose checkpoint is already handled
    lost : readings that the next incarnation declares
    lifetime : readings of all incarnations up to it
    """

    finals: tuple[Checkpoint, ...] = ()
    absorbed: Incarnation | None = None
    lost: int = 0
    lifetime: int = 0


class PendingFinals:
    """Final reports that wait for an answer.

    Attributes
    ----------
    past : Past
        As on disk.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self.past = Past()
        self._waiting: list[tuple[Checkpoint, Retry]] = []

    @property
    def waiting(self) -> int:
        """Number of finals that wait."""
        return len(self._waiting)

    def due_at(self, session: ParentSession) -> float:
        """Return when the next final is due that may be sent."""
        times = (retry.at for final, retry in self._waiting if _may_go(final, session))
        return min(times, default=np.inf)

    def load(self, kept: Records, effects: list[Effect]) -> None:
        """Load the records; the last incarnation's checkpoint becomes a final."""
        past: Past = kept.get(PAST, Past())
        last: Checkpoint | None = kept.get(CHECKPOINT)
        finals, lost, lifetime = list(past.finals), past.lost, past.lifetime
        absorbed = past.absorbed
        if last is not None and last.report.stamp.incarnation != absorbed:
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
        for final in finals[:-most]:
            lost += final.undelivered
            effects.append(lost_note(final.report, final.undelivered, "too many wait"))
        self._waiting = [(final, self._due()) for final in finals[-most:]]
        self.past = Past(tuple(finals[-most:]), absorbed, lost, lifetime)
        if last is not None:
            effects.append(Keep({PAST: self.past}))

    def may_send(self, last: Checkpoint) -> bool:
        """Return whether a checkpoint may be sent: unpinned, it could bind to a second parent."""
        return last.pin is not None

    def close(self, current: ClientIncarnation, effects: list[Effect]) -> None:
        """Note that an incarnation ended while its process goes on: its checkpoint is not sent."""
        counts = current.counts
        self.past = replace(
            self.past,
            absorbed=current.incarnation,
            lost=current.undelivered,
            lifetime=self.past.lifetime + counts.learnt + counts.withheld,
        )
        effects.append(Keep({PAST: self.past}))

    def send(
        self,
        now: Now,
        rng: RandomSource,
        effects: list[Effect],
        session: ParentSession,
        summaries: Summaries,
    ) -> None:
        """Send the finals that are due, as the parent takes them."""
        for final, retry in self._waiting:
            if retry.at <= now.steady and _may_go(final, session):
                report = session.formed(final.report, summaries)
                effects.append(Send(self._settings.parent, report))
                retry.tried(now.steady, rng)

    def retry_now(self) -> None:
        """Make all finals due now, because the way is open again."""
        for _, retry in self._waiting:
            retry.now()

    def meet(self, pin: Pin, current: ClientIncarnation, effects: list[Effect]) -> None:
        """Bind the finals to the parent that answered; drop those that it may not count."""
        for final, _ in list(self._waiting):
            self._rebind(final, pin, current, effects)

    def take_answer(
        self, answer: Answer, current: ClientIncarnation, effects: list[Effect]
    ) -> None:
        """Take an answer that may be to a final; only its own parent can accept or refuse it."""
        for final, _ in list(self._waiting):
            # A late answer to an earlier report of that incarnation does not count.
            if final.report.stamp != answer.stamp or final.report.pinned != answer.pinned:
                continue
            if answer.reason is Reason.ACK:
                self._drop(final, None, current, effects)
            elif answer.reason is not Reason.UNAVAILABLE:
                self._drop(final, answer.reason.name.lower(), current, effects)

    def _rebind(
        self, final: Checkpoint, pin: Pin, current: ClientIncarnation, effects: list[Effect]
    ) -> None:
        if final.pin is not None and not binds(final.pin, pin):
            self._drop(final, ANOTHER, current, effects)
            return
        i = next(i for i, (other, _) in enumerate(self._waiting) if other is final)
        report = replace(final.report, pinned=pin.incarnation)
        self._waiting[i] = replace(final, report=report, pin=pin), self._due()

    def _drop(
        self, final: Checkpoint, why: str | None, current: ClientIncarnation, effects: list[Effect]
    ) -> None:
        """Remove a final: it was accepted, or its readings are lost."""
        self._waiting = [pair for pair in self._waiting if pair[0] is not final]
        lost = self.past.lost
        if why is not None:
            lost += final.undelivered
            current.declare(final.undelivered)
            effects.append(lost_note(final.report, final.undelivered, why))
        finals = tuple(other for other, _ in self._waiting)
        self.past = replace(self.past, finals=finals, lost=lost)
        effects.append(Keep({PAST: self.past}))

    def _due(self) -> Retry:
        retry = Retry(self._settings.patience_s, self._settings.cap_s)
        retry.now()
        return retry


def _may_go(final: Checkpoint, session: ParentSession) -> bool:
    """Return whether a final may be sent: a whole scatter waits for the answer to a join.

    It has to be known in which form the parent takes it: one number has one content.
    """
    return session.knows_form or not is_whole(final.report)


def lost_note(report: Report, readings: int, why: str) -> Note:
    """Return the note that an incarnation's undelivered readings are lost.

    What it declares of incarnations before it is left out: each loss has had a note already.

    readings : undelivered ones, with what it declares
    """
    own = report.counts.generated - report.counts.lost
    return Note("lost", {"report": report, "readings": min(readings, own), "why": why})

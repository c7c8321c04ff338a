"""ClientNode: every decision of an edge client, and none of its I/O (docs/protocol.md, 4)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from submerge.client.few_rows import FewRows
from submerge.client.fleet_view import MODEL, FleetView
from submerge.client.incarnation import ClientIncarnation
from submerge.client.ingest import Ingest
from submerge.client.monitor import NodeMonitor
from submerge.client.pending_finals import CHECKPOINT, PAST, PendingFinals
from submerge.errors import UsageError
from submerge.protocol.alarm_changes import diff, is_urgent
from submerge.protocol.alarm_status import Alarm, Waiting
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import (
    Alarmed,
    Answered,
    Consult,
    Effect,
    Event,
    Flush,
    Keep,
    Key,
    Linked,
    Note,
    Now,
    Reading,
    Received,
    Records,
    Send,
    Start,
    Tick,
    refusal_note,
    settled_note,
)
from submerge.protocol.messages import (
    ANOTHER,
    BEHIND,
    MOST_BODY,
    Answer,
    DrillTaken,
    Hello,
    Incarnation,
    Join,
    Joined,
    Message,
    Model,
    Pin,
    Question,
    QuestionPace,
    QuestionReply,
    Reason,
    ReplyTaken,
    Report,
    Stamp,
    binds,
)
from submerge.protocol.names import RandomSource
from submerge.protocol.session import TWIN_S, Contradictions, ParentSession
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema

DECOMPOSED = 300
"""Dimensions up to which a summary is decomposed whole when it is read: an eigenproblem of that
size. Of more, directions are learnt, and reading costs little."""


class ReportNews:
    """The news of one incarnation since its newest report.

    built : Readings in that report.
    look_at : At so many readings it is looked whether the subspace has turned.
    """

    def __init__(self, settings: ClientSettings, summaries: Summaries, *, alarms: bool) -> None:
        self.built, self.alarms = 0, alarms
        self._settings, self._summaries = settings, summaries
        self.look_at = settings.min_turned_rows

    def has_news(self, current: ClientIncarnation) -> bool:
        """Return whether a report is worth its bytes."""
        enough = 1 if self.built else self._settings.min_rows
        is_any = bool(self.built or current.counts.generated)
        return self.alarms or (is_any and current.generated - self.built >= enough)

    def waiting(self, current: ClientIncarnation) -> list[Note]:
        """Note what the first report waits for; nothing if only for a first row."""
        settings, rows = self._settings, current.generated
        together = 2 * settings.together if settings.together > 1 else 1
        least = max(settings.min_rows, together)
        waits = not self.built and not self.alarms and max(rows, 1) < least
        return [Note(Waiting("report", rows, least).words, {})] if waits else []

    def has_grown(self, current: ClientIncarnation) -> bool:
        """Return whether a report would contain anything new."""
        return self.alarms or current.generated > self.built

    def has_turned(self, current: ClientIncarnation, now: Now) -> bool:
        """Return whether the subspace has turned so far that a report should be sent early."""
        if current.counts.learnt < self.look_at:
            return False
        self.look_at = current.counts.learnt + self._rows_apart(current)
        after = None if current.shown is None else current.summary(now)
        if current.shown is None or after is None:
            return False
        return self._summaries.turn_degrees(current.shown, after) > self._settings.turned_by

    def _rows_apart(self, current: ClientIncarnation) -> int:
        """Return the rows between two looks: as many as dimensions, where each is decomposed."""
        pieces = () if current.shown is None else current.shown.pieces
        dims = [piece.dim for piece in pieces if piece.dim <= DECOMPOSED]
        return max([self._settings.min_turned_rows, *dims])

    def mark_reported(self, current: ClientIncarnation) -> None:
        """Note that a report with everything was made."""
        self.built, self.alarms = current.generated, False


BURST, PER_S = 8.0, 2.0
"""Questions at once, and a second: a small machine has readings to take. Others get no reply."""

TOPICS = ("settings", "recent", "values")  # what can be asked of a client


class Consulting:
    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._pace = QuestionPace(BURST, PER_S)

    def receive(self, question: Question, current: ClientIncarnation, now: Now) -> list[Effect]:
        settings, pin = self._settings, current.pin
        if pin is None or not self._pace.admits(now.steady):
            return []
        expected = pin.incarnation, settings.node, settings.group
        if (question.pinned, question.node, question.group) != expected:
            return []
        if question.path or question.topic == "nodes":
            problem = f"{settings.node} is a client: no node reports to it"
        elif question.topic in TOPICS:
            return [Consult(question)]
        else:
            problem = f"{settings.node} is a client, and knows nothing of {question.topic}"
        return self.answer(Answered(question, b"", problem), current)

    def answer(self, answered: Answered, current: ClientIncarnation) -> list[Effect]:
        """Reply to a question, with what the driver says to it."""
        settings, body, problem = self._settings, answered.body, answered.problem
        if len(body) > MOST_BODY:
            body, problem = b"", f"{settings.node} has a reply that is too large to be sent"
        stamp = Stamp(settings.node, settings.group, current.incarnation, current.seq)
        reply = QuestionReply(stamp, answered.question.number, body, problem)
        return [Send(settings.parent, reply)]


MONITOR = ("lookout",)
"""The record that keeps its monitor and its alarms; the key is bytes in checkpoints."""


class ClientNode:
    """One edge client.

    Parameters
    ----------
    settings : ClientSettings
    schema : Schema
        Of what its sensors send. Without scaling or gamma it takes the fleet's, if there is one.
    summaries : Summaries
    rng : RandomSource
        For names and waits. Two nodes must never share the state of one.

    Attributes
    ----------
    current : ClientIncarnation
    finals : PendingFinals
    fleet : FleetView
        What it knows of its fleet.
    """

    current: ClientIncarnation

    def __init__(
        self, settings: ClientSettings, schema: Schema, summaries: Summaries, rng: RandomSource
    ) -> None:
        self.settings = settings
        self.finals = PendingFinals(settings)
        self.fleet = FleetView(schema, learns_scaling=settings.learns_scaling)
        self._summaries, self._rng = summaries, rng
        self._ingest = Ingest(summaries, rng, settings)
        self._session = ParentSession.of(settings)
        self._news = ReportNews(settings, summaries, alarms=False)
        self._checkpoint_at = math.inf
        self._kept: tuple[int, int, Pin | None] = 0, 0, None  # what the newest checkpoint knew
        self._boot: int | None = None
        self._ending = False
        self._contradictions, self._consulting = Contradictions(), Consulting(settings)

    @property
    def model(self) -> Model | None:
        return self.fleet.model

    @property
    def monitor(self) -> NodeMonitor | None:
        """What judges its readings; None before the first row under a settled schema."""
        return self._ingest.monitor

    @property
    def lifetime(self) -> int:
        """Readings that it has seen since it was set up, as far as it remembers."""
        counts = self.current.counts
        return self.finals.past.lifetime + counts.learnt + counts.withheld

    @property
    def acknowledged(self) -> int:
        """The newest seq of this incarnation that the parent is known to hold."""
        return self._session.acked

    @property
    def all_delivered(self) -> bool:
        """Whether the parent holds everything that it has seen, in earlier incarnations too."""
        return self.current.delivered == self.current.counts.generated and not self.finals.waiting

    @property
    def wakes_at(self) -> float:
        """When a `Tick` may change something, on the steady clock, if nothing else comes in."""
        news, session = self._news.has_news(self.current), self._session
        due = min(session.due_at(news=news), self.finals.due_at(session), self._ingest.drill_due_at)
        return due if self._kept == self.current.progress else min(due, self._checkpoint_at)

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Return the effects of an event, in order; UsageError if the first is not `Start`."""
        if isinstance(event, Start) == hasattr(self, "current"):
            raise UsageError(f"the first event is Start, and it comes once, got {event!r}")
        effects: list[Effect] = []
        match event:
            case Start():
                self._start(event.kept, now, effects)
            case Reading():
                self._ending = False
                before = self._ingest.alarms
                scored = self._ingest.read(event.rows, self.current, self.model, now, event.held)
                effects += [] if scored is None else [scored]
                self._publish_alarms(before, now, effects)
            case Received():
                self._receive(event.message, now, effects)
            case Linked():
                self._session.reopen()
                self.finals.retry_now()
            case Flush():
                self.current.learn_few(now)
                if few := len(self.current.few):
                    facts = {"readings": few, "least": self.settings.together}
                    effects.append(Note("too few readings to report", facts))
                self._session.hurry()
                self._checkpoint_at, self._ending = now.steady, True
            case Answered():
                effects += self._consulting.answer(event, self.current)
            case Tick():
                effects += self._ingest.drill_on(self.current, now)  # readings go first
        self._advance(now, effects)
        return effects

    def _start(self, kept: Records, now: Now, effects: list[Effect]) -> None:
        self.finals.load(kept, effects)
        self._ingest.load(kept.get(MONITOR))
        if (model := kept.get(MODEL)) is not None:
            self.fleet.recall(model)
        self._checkpoint_at = now.steady + self.settings.checkpoint_every_s
        self._begin(now, lost=self.finals.past.lost)
        self._ingest.monitor_for(self.current)
        if self._ingest.alarms:
            effects.append(Alarmed(self._ingest.alarms))

    def _begin(self, now: Now, *, lost: int, floor: int = 0) -> None:
        """Start an incarnation, from zero; it has to join before it may report."""
        self.current = ClientIncarnation(
            *(Incarnation.draw(now.wall_ms, floor, self._rng), self.fleet.schema),
            *(self._summaries, now),
            learns=self.fleet.is_settled,
            raw=self.fleet.is_raw,
            lost=lost,
            together=self.settings.together,
        )
        self._kept = 0, 0, None
        # The parent drops the alarms of the incarnation before: this one reports them at once.
        self._news = ReportNews(self.settings, self._summaries, alarms=bool(self._ingest.alarms))
        self._session = ParentSession.of(self.settings)
        self._session.delay(now.steady, self._rng)
        self._session.join.now()

    def _end(self, why: str, now: Now, effects: list[Effect], *, floor: int = 0) -> None:
        """End the incarnation; the next one declares what this one could not deliver."""
        # What waits ends with it: another process may have the same memory, and no later name would
        # tell that both hold these rows.
        self.current.learn_few(now)
        last, few = self.current.checkpoint(self._report(now), now), len(self.current.few)
        self.finals.close(self.current, last, why, effects)
        self._begin(now, lost=self.finals.past.lost, floor=floor)
        self._declare(few, "the incarnation that they waited in has ended", effects)

    def _carry(self, few: FewRows, now: Now, effects: list[Effect]) -> None:
        """Let an incarnation that begins take the rows that waited in the one before."""
        current = self.current
        taken = few.under(current.schema)
        current.hold(taken, now)
        why = "they waited to be learnt under another schema"
        self._declare(len(few) - len(taken), why, effects)

    def _declare(self, lost: int, why: str, effects: list[Effect]) -> None:
        if lost:
            self.current.declare(lost)
            facts = {"readings": lost, "why": why}
            effects.append(Note("waiting readings lost", facts, "warning"))

    def _receive(self, message: Message, now: Now, effects: list[Effect]) -> None:
        match message:
            case Joined():
                self._take_joined(message, now, effects)
            case Answer() if message.stamp.incarnation == self.current.incarnation:
                self._take_answer(message, now, effects)
            case Answer():
                other = self.finals.take_answer(message, self.current, effects)
                if other or message.reason is Reason.WRONG_PARENT:
                    self._session.rejoin()  # after the join, finals are sent or dropped
            case Hello() if message.node == self.settings.parent:
                pin = self.current.pin
                other = pin is None or pin.incarnation != message.incarnation
                if message.boot != self._boot or other:
                    self._session.take_hello(now.steady, self._rng, first=self._boot is None)
                    self._boot = message.boot
            case Hello():
                facts = {"expected": self.settings.parent, "got": message.node}
                effects.append(Note("another parent answers", facts, "warning"))
            case Model() if message.group == self.settings.group:
                current = self.current
                effects += self.fleet.receive(message, current.fingerprint, self._session)
            case Question():
                effects += self._consulting.receive(message, self.current, now)
            case _ if not isinstance(message, DrillTaken | ReplyTaken):
                effects.append(Note("ignored", {"message": type(message).__name__}))

    def _take_joined(self, joined: Joined, now: Now, effects: list[Effect]) -> None:
        current, session = self.current, self._session
        # Only the answer to the pending join: an earlier one may name a dead parent.
        if not session.awaits_joined or joined.stamp.incarnation != current.incarnation:
            return
        if joined.reason is Reason.STALE:
            if current.pin is not None:
                self._end("stale", now, effects, floor=joined.floor)
                return
            # No node knows it by this name yet: it takes another.
            current.incarnation = Incarnation.draw(now.wall_ms, joined.floor, self._rng)
            session.join.again()
            return
        if joined.reason is not Reason.ACK or joined.pinned is None:
            session.join.unanswered = False
            if joined.reason is not Reason.UNAVAILABLE:
                effects.append(refusal_note("join", joined))
            return
        pin = Pin(self.settings.parent, joined.pinned, joined.top)
        if joined.schema and joined.schema != current.schema.canonical:
            self._adopt(joined.schema, pin, now, effects)
        elif not self.keeps_incarnation(current.pin, pin):
            self._end(ANOTHER, now, effects)
        elif joined.stamp.seq > current.seq:
            self._end(BEHIND, now, effects)
        else:
            monitor = self._ingest.monitor_for(current)
            if current.pin != pin and monitor is not None:
                monitor.change_parent()
            before, current.pin = current.pin, pin
            if before is None and self._kept[0]:
                # After a kill, one of before the join is given up: also what is reported by then.
                self._kept = current.progress
                checkpoint = current.checkpoint(self._report(now), now)
                effects.append(Keep({CHECKPOINT: checkpoint, PAST: self.finals.past}))
            self.finals.meet(pin, current, self._summaries, effects)
            if session.take_joined(joined.stamp.seq, whole_scatter=joined.whole_scatter):
                current.delivered = current.held = 0
            effects += self._news.waiting(current)

    def keeps_incarnation(self, old: Pin | None, new: Pin) -> bool:
        """Return whether the incarnation goes on under another pin."""
        return binds(old, new)

    def _adopt(self, canonical: bytes, pin: Pin, now: Now, effects: list[Effect]) -> None:
        """Take the fleet's schema: the same channels, and what it has settled since."""
        if (refusal := self.fleet.adopt(canonical)) is not None:
            effects.append(refusal)
            return
        effects.append(settled_note(self.fleet.schema))
        current, counts = self.current, self.current.counts
        if counts.generated > counts.lost or current.pin is not None:
            if current.pin is None and not current.learns:
                current.pin = pin  # it has joined: what it has measured is for this parent
            self._end("the fleet has settled another schema", now, effects)
        else:
            self._begin(now, lost=counts.lost)
            self._carry(current.few, now, effects)

    def _take_answer(self, answer: Answer, now: Now, effects: list[Effect]) -> None:
        current, session = self.current, self._session
        if current.pin is None or answer.pinned != current.pin.incarnation:
            # It is from a store that this incarnation does not belong to, or no longer does.
            if answer.reason is Reason.WRONG_PARENT:
                session.rejoin()
            return
        match answer.reason:
            case Reason.ACK:
                if (taken := session.confirm(answer.newest)) is not None:
                    current.confirm(taken)
                current.hear(answer)
                self._apply(answer.desired_states, now, effects)
            case Reason.STALE:
                self._end("stale", now, effects, floor=answer.floor)
            case Reason.SHRUNK | Reason.EQUIVOCATION:
                self._end(answer.reason.name.lower(), now, effects, floor=answer.floor)
                if self._contradictions.add(now.steady):
                    effects.append(Note("copy suspected", {"silent_s": TWIN_S}, "warning"))
                    self._session.silent_until = now.steady + TWIN_S
            case Reason.SCHEMA:
                session.rejoin()
            case Reason.UNAVAILABLE:
                pass  # the back-off continues
            case _:
                effects.append(refusal_note("report", answer))

    def _publish_alarms(self, before: tuple[Alarm, ...], now: Now, effects: list[Effect]) -> None:
        """Keep alarms that began, ended or got a verdict, and only then report them."""
        alarms = self._ingest.alarms
        events = [event for event in diff(before, alarms) if event.kind != "worse"]
        effects += [Keep({MONITOR: self._ingest.kept}), Alarmed(alarms)] if events else []
        if is_urgent(events):
            self._news.alarms = True
            self._session.soon(now.steady)

    def _apply(self, states: tuple[DesiredState, ...], now: Now, effects: list[Effect]) -> None:
        """Apply desired states, and confirm them with the next report."""
        before, notes = self._ingest.alarms, self._ingest.apply(states, self.current, now)
        if notes:
            effects += [*notes, Keep({MONITOR: self._ingest.kept})]
            self._publish_alarms(before, now, effects)
            self._news.alarms = True
            self._session.soon(now.steady)

    def _advance(self, now: Now, effects: list[Effect]) -> None:
        self.finals.send(now, self._rng, effects, self._session, self._summaries)
        if self._news.has_turned(self.current, now):
            self._session.soon(now.steady)
        if self._session.due_at(news=self._news.has_news(self.current)) <= now.steady:
            self._send_due(now, effects)
        worth = self.current.progress
        # At its end also what the parent confirmed: else the next process would not know it.
        if (self._checkpoint_at <= now.steady or self._ending) and worth != self._kept:
            self._kept = worth
            self._checkpoint_at = now.steady + self.settings.checkpoint_every_s
            checkpoint = self.current.checkpoint(self._report(now), now)
            # PAST goes with it: its own last write may have failed, and its checkpoint goes now.
            past, few = self.finals.past, len(self.current.few) if self._ending else 0
            # Of a process that ends, the next one declares them lost.
            past = replace(past, lost=past.lost + few)
            records: dict[Key, Any] = {CHECKPOINT: checkpoint, PAST: past}
            if self._ingest.kept is not None:
                records[MONITOR] = self._ingest.kept
            effects.append(Keep(records))

    def _send_due(self, now: Now, effects: list[Effect]) -> None:
        """Send a join, or the pending report, or a newer one in its place."""
        settings, current, session = self.settings, self.current, self._session
        if session.joining or session.joins_again_first() or current.pin is None:
            stamp = Stamp(settings.node, settings.group, current.incarnation, current.seq)
            schema, shares = self.fleet.configured.canonical, settings.share_points
            join = Join(stamp, b"", (), schema, current.early, shares)
            effects.append(Send(settings.parent, join))
            session.join.tried(now.steady, self._rng)
            return
        if session.pending is None or session.forced or self._news.has_grown(current):
            report = session.formed(self._report(now), self._summaries)
            session.queue_report(report, now.steady, self._rng)
            self._news.mark_reported(current)
        if session.pending is not None:
            # It is the same report, also if it is bound to another root since it was made.
            session.pending = replace(session.pending, pinned=current.pin.incarnation)
            effects.append(Send(settings.parent, session.pending))
            session.mark_sent(now.steady, self._rng)

    def _report(self, now: Now) -> Report:
        report = self.current.report(
            *(self.settings.node, self.settings.group, now),
            version=self.fleet.version,
            lifetime=self.lifetime,
            scores=self._ingest.scores,
            alarm_status=self._ingest.alarm_status(now),
            trail=self._ingest.trail,
            own=None if (monitor := self._ingest.monitor) is None else monitor.scatter,
        )
        model = self.fleet.model
        return report if model is None else replace(report, told=model.told)

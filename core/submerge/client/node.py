"""ClientNode: every decision of an edge client, and none of its I/O.

1. It joins before it reports; a parent's incarnation, once joined, is the one it keeps to.
2. It scores readings with the newest model before it learns them; of the model nothing is
   learnt but what a gap was filled with.
3. A report says everything; a newer one takes the place of one that is still unanswered.
4. A life never resumes from disk. What was kept of it is sent again as its final report.
5. Whatever cannot be delivered is declared lost, in the reports of the life that follows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from submerge.client.incarnation import Life
from submerge.client.ingest import Intake
from submerge.client.pending_finals import CHECKPOINT, PAST, Finals, given_up
from submerge.errors import PeerError, UsageError
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.desired_state import Wish
from submerge.protocol.machine import (
    Alarmed,
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
    refused,
    settled,
)
from submerge.protocol.messages import (
    ANOTHER,
    BEHIND,
    HIGHEST,
    Answer,
    Hello,
    Incarnation,
    Join,
    Joined,
    Message,
    Model,
    Pin,
    Reason,
    Report,
    Stamp,
    binds,
)
from submerge.protocol.session import Tether
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries
from submerge.schema import Schema, differences

TWIN_S = 3600.0
"""Contradicted twice within this time, a client keeps silent for as long."""

MODEL = ("model",)
"""The record that keeps the newest model; a client can do without any of its records."""

LOOKOUT = ("lookout",)
"""The record that keeps how it looks at its readings, and its alarms."""


class ClientNode:
    """One edge client.

    Parameters
    ----------
    settings : ClientSettings
    schema : Schema
        What its sensors send. Without scaling, or gamma, it takes the fleet's, if there is one.
    summaries : Summaries
    rng : numpy.random.Generator
        For names and waits. Two nodes must never share the same state of one.

    Attributes
    ----------
    life : Life
    finals : Finals
    model : Model or None
        The newest, for scoring.
    """

    life: Life

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        rng: np.random.Generator,
    ) -> None:
        self.settings = settings
        self.finals = Finals(settings)
        self.model: Model | None = None
        self._schema, self._summaries, self._rng = schema, summaries, rng
        self._asked = schema
        self._intake = Intake(summaries, rng, settings)
        self._tether = self._new_tether()
        self._built = 0  # readings in the newest report
        self._news = False  # of alarms, that the newest report does not say
        self._look_at = settings.min_turned_rows
        self._checkpoint_at = math.inf
        self._kept: tuple[int, int, Pin | None] = 0, 0, None  # what the newest checkpoint knew
        self._boot: int | None = None
        self._ending = False
        self._contradicted_at = -math.inf

    @property
    def lifetime(self) -> int:
        """Readings that it ever saw, as far as it remembers."""
        counts = self.life.counts
        return self.finals.past.lifetime + counts.learnt + counts.withheld

    @property
    def acknowledged(self) -> int:
        """The newest seq of this life that the parent is known to hold."""
        return self._tether.acked

    @property
    def told(self) -> bool:
        """Whether the parent holds everything that it has seen, earlier lives included."""
        generated = self.life.counts.generated
        return self.life.delivered == generated and not self.finals.waiting

    @property
    def wakes_at(self) -> float:
        """When a `Tick` may change something, on the steady clock, if nothing else comes in."""
        due = min(self._tether.due_at(news=self._has_news()), self.finals.due_at)
        return due if self._kept == self._worth_keeping() else min(due, self._checkpoint_at)

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Return what is to be done about an event, in order.

        Raises
        ------
        ShapeError
            If a reading has another number of channels than the schema; nothing changes.
        UsageError
            If the first event is not `Start`, or another is.
        """
        if isinstance(event, Start) == hasattr(self, "life"):
            raise UsageError(f"the first event is Start, and it comes once, got {event!r}")
        effects: list[Effect] = []
        match event:
            case Start():
                self._start(event.kept, now, effects)
            case Reading():
                self._ending = False
                before = self._intake.alarms
                scored = self._intake.read(event.rows, self.life, self.model, now)
                effects += [] if scored is None else [scored]
                self._tell_alarms(before, now, effects)
            case Received():
                self._receive(event.message, now, effects)
            case Linked():
                self._tether.linked()
                self.finals.linked()
            case Flush():
                self._tether.hurry()
                self._checkpoint_at, self._ending = now.steady, True
            case _:
                pass  # a tick: what is due is due below
        self._advance(now, effects)
        return effects

    # -- lives -----------------------------------------------------------------

    def _start(self, kept: Records, now: Now, effects: list[Effect]) -> None:
        self.finals.load(kept, effects)
        self._intake.load(kept.get(LOOKOUT))
        model: Model | None = kept.get(MODEL)
        if model is not None:
            self._use(model)
            if not self._is_settled:
                self._recall_schema(model)
        self._checkpoint_at = now.steady + self.settings.checkpoint_every_s
        self._begin(now, lost=self.finals.past.lost)
        self._intake.looks(self.life)
        if self._intake.alarms:
            effects.append(Alarmed(self._intake.alarms))

    @property
    def _is_settled(self) -> bool:
        """Whether nothing of the schema is left for the fleet to say."""
        return not self._is_raw and self._schema.features.settled

    @property
    def _is_raw(self) -> bool:
        """Whether readings have no common size yet."""
        return self.settings.learns_scaling and self._schema.scaling is None

    def _recall_schema(self, model: Model) -> None:
        """Take what the fleet settled from the model; the next join says whether it holds."""
        try:
            schema = Schema.parse(model.schema)
        except PeerError:
            return  # of a later form: it is settled at the join
        if schema.is_like(self._asked):
            self._schema = schema

    def _begin(self, now: Now, *, lost: int, floor: int = 0) -> None:
        """Start a life, from zero; it has to join before it may speak."""
        self.life = Life(
            Incarnation.drawn(now.wall_ms, floor, self._rng),
            self._schema,
            self._summaries,
            now,
            learns=self._is_settled,
            raw=self._is_raw,
            lost=lost,
        )
        self._built, self._kept = 0, (0, 0, None)
        # Its parent forgets with the life before what that told: of an alarm it hears at once.
        self._news = bool(self._intake.alarms)
        self._look_at = self.settings.min_turned_rows
        self._tether = self._new_tether()
        self._tether.delay(now.steady, self._rng)
        self._tether.join.now()

    def _end(self, why: str, now: Now, effects: list[Effect], *, floor: int = 0) -> None:
        """Give the life up; the next one declares what this one could not deliver."""
        lost = self.life.undelivered
        effects.append(given_up(self._report(now), lost, why))
        self.finals.closes(self.life, effects)
        self._begin(now, lost=lost, floor=floor)

    # -- what comes in ---------------------------------------------------------

    def _receive(self, message: Message, now: Now, effects: list[Effect]) -> None:
        match message:
            case Joined():
                self._joined(message, now, effects)
            case Answer() if message.stamp.incarnation == self.life.incarnation:
                self._answered(message, now, effects)
            case Answer():
                if message.reason is Reason.WRONG_PARENT:
                    self._tether.rejoin()  # having met it, finals are sent or given up
                self.finals.answered(message, self.life, effects)
            case Hello() if message.node == self.settings.parent:
                pin = self.life.pin
                other = pin is None or pin.incarnation != message.incarnation
                if message.boot != self._boot or other:
                    self._tether.greeted(now.steady, self._rng, first=self._boot is None)
                    self._boot = message.boot
            case Hello():
                facts = {"expected": self.settings.parent, "got": message.node}
                effects.append(Note("another parent answers", facts))
            case Model() if message.group == self.settings.group:
                self._take(message, effects)
            case _:
                effects.append(Note("ignored", {"message": type(message).__name__}))

    def _joined(self, joined: Joined, now: Now, effects: list[Effect]) -> None:
        life, tether = self.life, self._tether
        # Only the answer to the join that is pending: one from before may name a dead parent.
        if not tether.asked or joined.stamp.incarnation != life.incarnation:
            return
        if joined.reason is Reason.STALE and life.pin is None:
            # Nobody knows it by this name yet: another will do.
            life.incarnation = Incarnation.drawn(now.wall_ms, joined.floor, self._rng)
            tether.join.again()
        elif joined.reason is Reason.STALE:
            self._end("stale", now, effects, floor=joined.floor)
        elif joined.reason is not Reason.ACK or joined.pinned is None:
            tether.join.unanswered = False
            if joined.reason is not Reason.UNAVAILABLE:
                effects.append(refused("join", joined))
        elif joined.schema and joined.schema != life.schema.canonical:
            self._adopt(joined.schema, now, effects)
        else:
            pin = Pin(self.settings.parent, joined.pinned, joined.top)
            if not self.keeps_life(life.pin, pin):
                self._end(ANOTHER, now, effects)
            elif joined.stamp.seq > life.seq:
                self._end(BEHIND, now, effects)
            else:
                lookout = self._intake.looks(life)
                if life.pin != pin and lookout is not None:
                    lookout.meet_another()
                life.pin = pin
                self.finals.meet(pin, life, effects)
                if tether.joined(joined.stamp.seq):
                    life.delivered = 0

    def keeps_life(self, old: Pin | None, new: Pin) -> bool:
        """Return whether the life goes on under another pin."""
        return binds(old, new)

    def _adopt(self, canonical: bytes, now: Now, effects: list[Effect]) -> None:
        """Take the fleet's schema: the same channels, and what it has settled since."""
        try:
            schema = Schema.parse(canonical)
        except PeerError as error:
            effects.append(Note("schema refused", {"why": str(error)}))
            return
        if not schema.is_like(self._asked):
            # Scaling and gamma are the fleet's; what the channels are, the sensors say.
            lines = differences(schema, self._asked)
            effects.append(Note("schema refused", {"lines": lines}))
            return
        self._schema = schema
        effects.append(settled(schema))
        counts = self.life.counts
        if counts.generated > counts.lost or self.life.pin is not None:
            why = "the fleet has settled its schema: what came before only measured for it"
            self._end(why, now, effects)
        else:
            self._begin(now, lost=counts.lost)

    def _answered(self, answer: Answer, now: Now, effects: list[Effect]) -> None:
        life, tether = self.life, self._tether
        if life.pin is None or answer.pinned != life.pin.incarnation:
            # It is from a store that this life does not belong to, or no longer.
            if answer.reason is Reason.WRONG_PARENT:
                tether.rejoin()
            return
        match answer.reason:
            case Reason.ACK:
                taken = tether.confirmed(answer.newest)
                if taken is not None:
                    life.confirm(taken)
                life.hear(answer)
                self._obey(answer.wishes, now, effects)
            case Reason.STALE:
                self._end("stale", now, effects, floor=answer.floor)
            case Reason.SHRUNK | Reason.EQUIVOCATION:
                self._end(answer.reason.name.lower(), now, effects, floor=answer.floor)
                self._suspect_a_twin(now, effects)
            case Reason.SCHEMA:
                tether.rejoin()
            case Reason.UNAVAILABLE:
                pass  # the back-off goes on
            case _:
                effects.append(refused("report", answer))

    def _suspect_a_twin(self, now: Now, effects: list[Effect]) -> None:
        """Another process speaks as this one did: once it may be chance, twice it is a copy.

        Two copies that share even their random numbers would reset each other for ever.
        """
        if now.steady - self._contradicted_at < TWIN_S:
            effects.append(Note("copy suspected", {"silent_s": TWIN_S}))
            self._tether.silent_until = now.steady + TWIN_S
        self._contradicted_at = now.steady

    def _take(self, model: Model, effects: list[Effect]) -> None:
        """Keep a model that is newer, of this node's own schema."""
        if model.fingerprint != self.life.fingerprint:
            if model.schema != self._asked.canonical:
                self._tether.rejoin()  # the fleet may have settled on a scaling, or a gamma
        elif model.version <= HIGHEST and model.version > self._version:
            self._use(model)
            effects.append(Keep({MODEL: self.model}))

    def _use(self, model: Model) -> None:
        """Score with a model; with the last that knew something, if a root begins anew."""
        old = self.model
        if old is not None and old.fingerprint == model.fingerprint:
            if model.summary is None:
                model = replace(model, summary=old.summary, limits=old.limits)
            if model.peaks is None:
                # Where all below begin anew at once, for a moment nobody tells of hours.
                model = replace(model, peaks=old.peaks)
        self.model = model

    # -- alarms ----------------------------------------------------------------

    def _tell_alarms(self, before: tuple[Alarm, ...], now: Now, effects: list[Effect]) -> None:
        """Keep alarms that began or are over, and only then tell of them."""
        alarms = self._intake.alarms
        if [(each.number, each.ended, each.verdict) for each in alarms] == [
            (each.number, each.ended, each.verdict) for each in before
        ]:
            return
        effects += [Keep({LOOKOUT: self._intake.kept}), Alarmed(alarms)]
        self._news = True
        self._tether.soon(now.steady)

    def _obey(self, wishes: tuple[Wish, ...], now: Now, effects: list[Effect]) -> None:
        """Do what an operator wants, and say with the next report that it was heard."""
        lookout = self._intake.looks(self.life)
        for wish in wishes:
            before = self._intake.alarms
            if lookout is None or wish.node != self.settings.node or not lookout.obey(wish, now):
                continue
            facts = {"paused": wish.paused, "verdicts": len(wish.verdicts)}
            effects += [Note("an operator's wish", facts), Keep({LOOKOUT: self._intake.kept})]
            self._tell_alarms(before, now, effects)
            self._news = True
            self._tether.soon(now.steady)

    # -- what is due -----------------------------------------------------------

    def _advance(self, now: Now, effects: list[Effect]) -> None:
        self.finals.send(now, self._rng, effects)
        self._watch_turn(now)
        if self._tether.due_at(news=self._has_news()) <= now.steady:
            self._speak(now, effects)
        worth = self._worth_keeping()
        # At its end also what the parent confirms: else it would be missed where it is held.
        if (self._checkpoint_at <= now.steady or self._ending) and worth != self._kept:
            self._kept = worth
            self._checkpoint_at = now.steady + self.settings.checkpoint_every_s
            checkpoint = self.life.checkpoint(self._report(now))
            # With what earlier lives left: their write may have failed, and this one takes
            # the place of the last that could have brought it back.
            records: dict[Key, Any] = {CHECKPOINT: checkpoint, PAST: self.finals.past}
            if self._intake.kept is not None:
                records[LOOKOUT] = self._intake.kept
            effects.append(Keep(records))

    def _has_news(self) -> bool:
        """Whether there is enough to report that the newest report does not say."""
        settings, generated = self.settings, self.life.counts.generated
        if self._news:
            return True
        enough = settings.min_new_rows if self._built else settings.min_rows
        return generated - self._built >= enough

    def _speak(self, now: Now, effects: list[Effect]) -> None:
        """Ask to join, or send the pending report, or a newer one in its place."""
        settings, life, tether = self.settings, self.life, self._tether
        if tether.joining or tether.knocks_instead() or life.pin is None:
            stamp = Stamp(settings.node, settings.group, life.incarnation, life.seq)
            effects.append(Send(settings.parent, Join(stamp, b"", (), self._asked.canonical)))
            tether.join.tried(now.steady, self._rng)
            return
        grown = life.counts.generated > self._built or self._news
        if tether.pending is None or tether.forced or grown:
            tether.says(self._report(now), now.steady, self._rng)
            self._built, self._news = life.counts.generated, False
        if tether.pending is not None:
            # Bound to another root since it was built, it is still the same report.
            tether.pending = replace(tether.pending, pinned=life.pin.incarnation)
            effects.append(Send(settings.parent, tether.pending))
            tether.tried(now.steady, self._rng)

    def _watch_turn(self, now: Now) -> None:
        """Do not wait for the clock where what is shown has turned."""
        settings, life = self.settings, self.life
        if life.counts.learnt < self._look_at:
            return
        self._look_at = life.counts.learnt + settings.min_turned_rows
        if life.shown is not None and life.learns:
            turned = self._summaries.moved(life.shown, life.summary(now))
            if turned > settings.turned_by:
                self._tether.soon(now.steady)

    def _report(self, now: Now) -> Report:
        lookout = self._intake.lookout
        return self.life.report(
            self.settings.node,
            self.settings.group,
            now,
            version=self._version,
            lifetime=self.lifetime,
            scores=self._intake.scores,
            vigil=None if lookout is None else lookout.vigil(now),
        )

    @property
    def _version(self) -> int:
        return 0 if self.model is None else self.model.version

    def _worth_keeping(self) -> tuple[int, int, Pin | None]:
        """What a checkpoint would say: while it does not change, there is nothing to keep."""
        return self.life.counts.generated, self.life.delivered, self.life.pin

    def _new_tether(self) -> Tether:
        settings = self.settings
        return Tether(settings.report_every_s, settings.patience_s, settings.cap_s)

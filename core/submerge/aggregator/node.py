"""AggregatorNode: every decision of an aggregator; the root is one without a parent.

1. An incarnation belongs to one parent incarnation for ever, here and below (docs/protocol.md, 5).
   An aggregator that changes its parent, or gains or loses one, begins an empty store.
2. A store that is not pinned yet names no incarnation: it answers every child "not now".
3. The changes of a message are kept in one transaction, before it is acknowledged.
4. A store that is a copy, or older than its parent remembers, is given up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from submerge.aggregator.group import Group, GroupPlan, answer_join
from submerge.aggregator.operators.histories import apply as apply_to_histories
from submerge.aggregator.operators.histories import check
from submerge.aggregator.operators.inquiries import Asker, Inquiries
from submerge.aggregator.operators.orders import Order, apply_order, keep_bans, take_orders
from submerge.aggregator.operators.quarantine import QuarantineEntry
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.upward import Lineage
from submerge.errors import PeerError, UsageError
from submerge.protocol.alarm_status import Waiting
from submerge.protocol.desired_state import DesiredState, DesiredStates
from submerge.protocol.history import History
from submerge.protocol.machine import (
    Answered,
    Ask,
    Effect,
    Event,
    Flush,
    ForgetHistory,
    Keep,
    Key,
    Linked,
    NewCertificate,
    Note,
    Now,
    Publish,
    PushHistory,
    Received,
    Records,
    Replied,
    Send,
    Start,
    refusal_note,
    settled_note,
)
from submerge.protocol.messages import (
    ANOTHER,
    BEHIND,
    Answer,
    DrillReport,
    DrillTaken,
    FromBelow,
    Hello,
    Incarnation,
    Join,
    Joined,
    Message,
    Model,
    Pin,
    Question,
    QuestionReply,
    Reason,
    ReplyTaken,
    Report,
    Stamp,
    binds,
)
from submerge.protocol.names import RandomSource
from submerge.protocol.settings import AggregatorSettings


def send_due(node: AggregatorNode, group: Group, now: Now, effects: list[Effect]) -> None:
    """Join the parent, or send it a report of the rows."""
    upward, session, parent = group.upward, group.upward.session, str(node.settings.parent)
    if session.joining or session.joins_again_first() or node.pin is None:
        stamp = Stamp(node.settings.node, group.name, node.incarnation, upward.line.seq)
        join = Join(stamp, upward.line.fence, upward.line.past, group.plan.configured)
        effects.append(Send(parent, join))
        session.join.tried(now.steady, node.rng)
        return
    if session.pending is None or session.forced or upward.changed:
        report = group.report(node.settings.node, node.incarnation, now)
        if report is not None:
            effects.extend(group.influence_notes())
            upward.queue_report(report, now.steady, node.rng)
            upward.changed = group.holds_back
        elif group.ledger is not None:
            session.put_off(now.steady, node.rng)
    if session.pending is not None:
        # It is the same report, also if it is bound to another root or under another fence.
        session.pending = replace(
            session.pending, pinned=node.pin.incarnation, fence=upward.line.fence
        )
        effects.append(Send(parent, session.pending))
        session.mark_sent(now.steady, node.rng)


def take_reply(
    node: AggregatorNode, group: Group, reply: Joined | Answer, now: Now, effects: list[Effect]
) -> None:
    if isinstance(reply, Joined):
        _take_joined(node, group, reply, now, effects)
    else:
        _take_answer(node, group, reply, now, effects)


def _take_joined(
    node: AggregatorNode, group: Group, joined: Joined, now: Now, effects: list[Effect]
) -> None:
    # Only the answer to the pending join of this process.
    if not group.upward.session.awaits_joined:
        return
    line, pinned = group.upward.line, joined.pinned
    if joined.reason is Reason.VERSION:  # another version echoes no fence
        effects.append(refusal_note("join", joined))
        return
    if joined.stamp.incarnation != node.incarnation or joined.fence != line.fence:
        return
    if joined.reason in (Reason.LINEAGE, Reason.STALE):
        node.renew(joined.reason.name.lower(), now, effects, floor=joined.floor)
    elif joined.reason is not Reason.ACK or pinned is None:
        group.upward.session.join.unanswered = False
        if joined.reason is not Reason.UNAVAILABLE:
            effects.append(refusal_note("join", joined))
    else:
        pin = Pin(str(node.settings.parent), pinned, joined.top)
        if not node.keeps_store(node.pin, pin):
            node.renew(ANOTHER, now, effects)
        elif node.is_behind(joined.stamp.seq, line.seq):
            node.renew(BEHIND, now, effects)
        else:
            _take_place(node, group, pin, joined, effects)


def _take_place(
    node: AggregatorNode, group: Group, pin: Pin, joined: Joined, effects: list[Effect]
) -> None:
    """Take the parent's consent, its schema and its pin."""
    # Without a schema there is nothing to report, and it would try to for ever.
    if joined.schema != group.canonical or group.ledger is None:
        try:
            node.learn_schema(group, joined.schema)
        except PeerError as error:
            effects.append(Note("schema refused", {"why": str(error)}, "warning"))
            return
    if node.pin != pin:
        node.settle(pin, effects)
    upward = group.upward
    upward.line = replace(upward.line, admitted=upward.line.fence)
    if upward.session.take_joined(joined.stamp.seq, whole_scatter=joined.whole_scatter):
        group.stir()


def _take_answer(
    node: AggregatorNode, group: Group, answer: Answer, now: Now, effects: list[Effect]
) -> None:
    # Only answers to this store and this process: a twin's answers may arrive here, too.
    if answer.stamp.incarnation != node.incarnation:
        return
    session = group.upward.session
    if answer.fence != group.upward.line.fence:
        return
    if node.pin is None or answer.pinned != node.pin.incarnation:
        # It is from a store that this one does not belong to, or no longer does.
        if answer.reason is Reason.WRONG_PARENT:
            session.rejoin()
        return
    if answer.reason in (Reason.STALE, Reason.EQUIVOCATION):
        node.renew(answer.reason.name.lower(), now, effects, floor=answer.floor)
    elif node.is_behind(answer.newest, group.upward.line.seq):
        node.renew(BEHIND, now, effects)
    elif answer.reason is Reason.FENCED and not session.joining:
        group.upward.draw_fence(node.rng)
    elif answer.reason is Reason.SCHEMA:
        session.rejoin()
    elif answer.reason is Reason.ACK:
        group.upward.take_acknowledgement(answer)
        arrived = group.desired_states.take(answer.desired_states, now.wall_ms)
        if arrived:
            effects += take_orders(node._groups, group, arrived, now)
            effects += [
                NewCertificate(each.certificate)
                for held, each in arrived
                if each.node == node.settings.node
                if each.certificate not in (b"", held.certificate)
            ]
            # The next report confirms how far they have arrived, and its answer brings more.
            group.stir()
            session.soon(now.steady)
    elif answer.reason is not Reason.UNAVAILABLE:
        effects.append(refusal_note("report", answer))


STORE = ("store",)  # the record of the store's identity


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """The store's incarnation, and the parent that it belongs to; None for a root's."""

    incarnation: Incarnation
    pin: Pin | None


class StoreRecords:
    """What a store holds, beside rows and histories; another may begin with the next write."""

    def __init__(self, kept: Records | None = None, *, is_new: bool = False) -> None:
        self._known: Records = {} if kept is None else kept
        self._is_new = is_new

    def keep(self, identity: StoreIdentity | None, groups: Iterable[Group]) -> Keep | None:
        """Return the write of all changes, or None; there is no identity before a parent."""
        writes: dict[Key, Any] = {}
        held: dict[Key, Any] = {}
        if identity is not None:
            held[STORE] = identity
            for group in groups:
                held |= group.records()
                writes |= group.take_changes()
        else:
            # A store without a parent holds nothing yet, except bans and other orders.
            for group in groups:
                held |= {k: v for k, v in group.orders().items() if v or k in self._known}
        writes |= {key: new for key, new in held.items() if self._known.get(key) != new}
        self._known = {**self._known, **held} if identity is None else held
        if not writes and not self._is_new:
            return None
        keep, self._is_new = Keep(writes, new_store=self._is_new), False
        return keep


class AggregatorNode:
    """One aggregator.

    Parameters
    ----------
    settings : AggregatorSettings
    plans : mapping of str to GroupPlan
        By the groups' names.
    rng : RandomSource
        For names and waits. Two nodes must never share the state of one.

    Attributes
    ----------
    incarnation : Incarnation
        The store's.
    pin : Pin or None
        The parent of the store; None for a root, and before the first join.
    settled : bool
        Whether it is a root's, or pinned: it may answer children.
    """

    incarnation: Incarnation

    def __init__(
        self, settings: AggregatorSettings, plans: Mapping[str, GroupPlan], rng: RandomSource
    ) -> None:
        if not plans:
            raise UsageError("an aggregator serves one group or more, got none")
        self.settings, self._plans, self.rng = settings, plans, rng
        self.pin: Pin | None = None
        self.settled = False
        self.inquiries = Inquiries()
        self._groups: dict[str, Group] = {}
        self._boot = 0
        self._parent_boot: int | None = None
        self._records = StoreRecords()
        self._tidy_at = -math.inf

    @property
    def top(self) -> bool:
        return self.settings.parent is None

    @property
    def unreported(self) -> bool:
        """Whether the parent has not yet confirmed everything that is held here."""
        if self.top:
            return False
        return any(
            (group.upward.changed and not group.holds_back) or group.upward.session.pending
            for group in self._groups.values()
            if group.ledger is not None
        )

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(self._plans)

    @property
    def wakes_at(self) -> float:
        """When a `Tick` may change something, on the steady clock, if nothing else comes in."""
        return min(self._tidy_at, *(group.wakes_at for group in self._groups.values()))

    def plan(self, group: str) -> GroupPlan:
        return self._plans[group]

    def ledger(self, group: str) -> Ledger | None:
        """Return a group's rows; None while its schema is not known."""
        return self._groups[group].ledger

    def waiting(self, group: str) -> Waiting | None:
        """Return what a group waits for; None once it has a model."""
        return self._groups[group].waiting

    def model(self, group: str) -> Model | None:
        return self._groups[group].model

    def root(self, group: str) -> Incarnation | None:
        """Return the incarnation of the root's store; None while it is not known."""
        return self.incarnation if self.top else self._groups[group].upward.root

    def excluded(self, group: str) -> tuple[frozenset[str], Mapping[str, QuarantineEntry]]:
        """Return which nodes of a group are banned, and which are quarantined, and why."""
        return self._groups[group].banned, self._groups[group].quarantine.quarantined

    def early(self, group: str) -> int:
        """Return the readings that clients had learnt before they joined here."""
        return self._groups[group].first_readings.total

    def check_history(self, order: PushHistory, now: Now) -> History:
        """Return a history as its group would take it; see `histories.objections.check`."""
        group = self._groups[order.group]
        return check(group, order, self.incarnation if self.top else None, now)

    def histories(self, group: str) -> Mapping[str, History]:
        """Return what a group's root merges beside the rows, by name."""
        return self._groups[group].histories.by_name

    def desired_states(self, group: str) -> Mapping[str, DesiredState]:
        return self._groups[group].desired_states.by_node

    def drills(self, group: str) -> Mapping[str, DrillReport]:
        """Return the newest answers to drills of a group's nodes, here and below."""
        return self._groups[group].drills.by_node

    def load(self, kept: Records, now: Now) -> list[Effect]:
        """Take what a store holds, as `Start` does, and do nothing that is due: to look at it."""
        self._start(kept, now, effects := list[Effect]())
        return effects

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Return the effects of an event, in order."""
        if isinstance(event, Start) == bool(self._groups):
            raise UsageError(f"the first event is Start, and it comes once, got {event!r}")
        effects: list[Effect] = []
        match event:
            case Start():
                self._start(event.kept, now, effects)
            case Received():
                self._receive(event.message, event.shared, now, effects)
            case Linked():
                for group in self._groups.values():
                    group.upward.session.reopen()
            case Flush():
                for group in self._groups.values():
                    group.flush()
            case _ if isinstance(event, Order):
                apply_order(self._groups, event, now, effects)
            case Ask() | Answered():
                effects += self._inquire(event, now)
            case PushHistory() | ForgetHistory() if event.group in self._groups:
                root = self.incarnation if self.top else None
                effects += apply_to_histories(self._groups[event.group], event, root, now)
            case _:
                pass  # a tick: what is due is due below
        from_below = isinstance(event, Received) and isinstance(event.message, FromBelow)
        if self.settled and not from_below:  # a child's message has one answer
            for group in self._groups.values():
                effects += group.push_orders(self.incarnation, now, top=self.top)
        self._advance(now, effects)
        return self._committed(effects)

    def _committed(self, effects: list[Effect]) -> list[Effect]:
        """Put a `Keep` of all changes before the effects that rest on it."""
        identity = StoreIdentity(self.incarnation, self.pin) if self.settled else None
        keep = self._records.keep(identity, self._groups.values())
        return effects if keep is None else [keep, *effects]

    def _start(self, kept: Records, now: Now, effects: list[Effect]) -> None:
        self._boot = int(self.rng.integers(2**63))
        for name, plan in self._plans.items():
            group = self._groups[name] = Group(name, plan, self.settings)
            group.banned = kept.get(("banned", name), frozenset())
            slips = kept.get(("suspected", name), {})
            group.quarantine.load(kept.get(("quarantined", name), {}), slips, now)
            states, heard = kept.get(("wishes", name)), kept.get(("heard", name), 0)
            if ("elapsed", name) not in kept:
                heard = 0  # an earlier version confirmed bans that it did not read
            group.desired_states = DesiredStates(states, heard)
        keep_bans(self._groups, now)
        store: StoreIdentity | None = kept.get(STORE)
        if store is None or not self._ours(store):
            why = "there was none" if store is None else "the old one is of another parent"
            self.renew(why, now, effects)
            return
        self.incarnation, self.pin, self.settled = store.incarnation, store.pin, True
        self._records = StoreRecords(kept)
        for name, group in self._groups.items():
            text, configured = kept.get(("schema", name), b""), kept.get(("asked", name), b"")
            canonical = group.plan.opens_with(text, configured, top=self.top)
            if canonical:
                self.learn_schema(group, canonical, kept=(kept, now))
            group.version = kept.get(("version", name), 0)
            read = {} if group.ledger is None else group.ledger.read
            known = {canonical, *(each.canonical for each in read.values())}
            if group.plan.chooses_rank and text in known:
                group.rank = kept.get(("rank", name), 0)
            group.published = kept.get(("release", name))
            group.upward.line = kept.get(("line", name), Lineage())
            if not self.top:
                group.upward.draw_fence(self.rng)
        self._greet(effects)

    def _ours(self, store: StoreIdentity) -> bool:
        """Return whether a store belongs to the parent that is configured now."""
        if store.pin is None:
            return self.top
        return store.pin.parent == self.settings.parent

    def renew(self, why: str, now: Now, effects: list[Effect], *, floor: int = 0) -> None:
        """Begin an empty store: rows that were not reported above are gone."""
        effects.append(Note("new store", {"why": why}))
        self.incarnation = Incarnation.draw(now.wall_ms, floor, self.rng)
        self.pin, self.settled = None, self.top
        self._records = StoreRecords(is_new=True)
        for name, plan in self._plans.items():
            old = self._groups[name]
            group = self._groups[name] = Group(name, plan, self.settings)
            # A new store keeps bans, quarantine and desired states.
            group.banned, group.quarantine = old.banned, old.quarantine
            group.desired_states = old.desired_states
            group.first_readings = old.first_readings
            if plan.schema is not None:
                self.learn_schema(group, plan.schema.canonical)
            if not self.top:
                group.upward.draw_fence(self.rng)
        if self.top:
            self._greet(effects)

    def settle(self, pin: Pin, effects: list[Effect]) -> None:
        """Pin the store to a parent; what was only in memory is kept with the pin."""
        self.pin, self.settled = pin, True
        for group in self._groups.values():
            # Another parent counts its own numbers.
            group.desired_states.heard = 0
        self._greet(effects)

    def _greet(self, effects: list[Effect]) -> None:
        effects.append(Publish(Hello(self.settings.node, self.incarnation, self.top, self._boot)))

    def learn_schema(
        self, group: Group, canonical: bytes, *, kept: tuple[Records, Now] | None = None
    ) -> None:
        """Let a group go over to a schema; see `Group.learn_schema`."""
        group.learn_schema(canonical, self.incarnation.created_ms / 1000, kept=kept)

    def _receive(self, message: Message, shared: bool, now: Now, effects: list[Effect]) -> None:
        match message:
            case Join():
                self._admit(message, effects)
            case Report():
                self._take_report(message, shared, now, effects)
            case Joined() | Answer() if not self.top:
                group = self._groups.get(message.stamp.group)
                if group is not None:
                    take_reply(self, group, message, now, effects)
            case Question() | QuestionReply() | ReplyTaken():
                effects += self._inquire(message, now)
            case DrillReport() | DrillTaken():
                effects += self._take_drill(message, now)
            case Hello() if message.node == self.settings.parent:
                other = self.pin is not None and message.incarnation != self.pin.incarnation
                if message.boot != self._parent_boot or other:
                    first, self._parent_boot = self._parent_boot is None, message.boot
                    for group in self._groups.values():
                        group.upward.session.take_hello(now.steady, self.rng, first=first)
            case Model() if not self.top and message.group in self._groups:
                if self._groups[message.group].take_model(message):
                    # It changes no row, so there is nothing to report.
                    effects.append(Publish(message))
            case _:
                effects.append(Note("ignored", {"message": type(message).__name__}))

    def _admit(self, join: Join, effects: list[Effect]) -> None:
        stamp, group = join.stamp, self._groups.get(join.stamp.group)
        if group is None:
            lines = (f"no group {stamp.group!r} here, but {', '.join(sorted(self._groups))}",)
            answer = Joined(stamp, Reason.SCHEMA, join.fence, None, self.top, 0, b"", lines)
        elif not self.settled:
            answer = Joined(stamp, Reason.UNAVAILABLE, join.fence, None, self.top, 0, b"")
        else:
            answer = answer_join(group, join, self.incarnation, top=self.top)
        effects.append(Send(stamp.node, answer))
        if group is not None and answer.reason is Reason.ACK:
            group.pushes.take_join(join, group.desired_states)
        model = None if group is None else group.model
        # A model of an earlier schema would only make the child join again.
        if model is not None and answer.reason is Reason.ACK and model.schema == answer.schema:
            effects.append(Send(stamp.node, model))

    def _take_report(self, report: Report, shared: bool, now: Now, effects: list[Effect]) -> None:
        stamp, group = report.stamp, self._groups.get(report.stamp.group)
        if group is None or not self.settled:
            effects.append(Send(stamp.node, Answer(stamp, Reason.UNAVAILABLE, report.fence)))
        elif report.pinned == self.incarnation:
            answer = group.judge_report(report, self.incarnation, now, top=self.top)
            effects += group.notes_on(report, answer.reason, now)
            effects.append(Send(stamp.node, answer))
            # What is sent to a banned node, it would receive.
            model = None if answer.reason is Reason.BANNED else group.model_for(report, now)
            if model is not None:
                effects.append(Send(stamp.node, model))
        elif not shared:
            # On a shared broker it may be another aggregator's; a hello corrects a lost child.
            wrong = Answer(stamp, Reason.WRONG_PARENT, report.fence, self.incarnation, self.top)
            effects.append(Send(stamp.node, wrong))

    def keeps_store(self, old: Pin | None, new: Pin) -> bool:
        """Return whether the store goes on under another pin (rule 1)."""
        return binds(old, new)

    def is_behind(self, newest: int, seq: int) -> bool:
        """Return whether the parent holds later reports than this store has sent (rule 4)."""
        return newest > seq

    def _inquire(
        self, what: Ask | Answered | Question | QuestionReply | ReplyTaken, now: Now
    ) -> list[Effect]:
        """Take a question or a reply, or what this node itself says to a question."""
        if isinstance(what, ReplyTaken):
            return []  # nothing waits for it
        question = what.question if isinstance(what, Ask | Answered) else what
        name = question.stamp.group if isinstance(question, QuestionReply) else question.group
        group = self._groups.get(name)
        if group is None:
            if isinstance(what, QuestionReply):
                return [Send(what.stamp.node, ReplyTaken(what.stamp, Reason.UNAVAILABLE))]
            problem = f"{self.settings.node} serves no group {name}"
            return [Replied(question.number, b"", problem)] if isinstance(what, Ask) else []
        ledger = group.ledger
        asker = Asker(
            Stamp(self.settings.node, name, self.incarnation, group.upward.line.seq),
            self.pin,
            lambda child: ledger is not None and bool(ledger.live(child)),
        )
        match what:
            case Ask():
                return self.inquiries.ask(what.question, asker, now)
            case Question():
                return self.inquiries.take_question(what, asker, now)
            case QuestionReply():
                return self.inquiries.take_reply(what, asker, now)
            case Answered() if self.pin is not None:
                reply = QuestionReply(asker.ours, what.question.number, what.body, what.problem)
                return [Send(self.pin.parent, reply)]
        return []

    def _take_drill(self, message: DrillReport | DrillTaken, now: Now) -> list[Effect]:
        """Hold what a drill below has found, or take the parent's answer; pass on what waits."""
        effects, stamp = list[Effect](), message.stamp
        group = self._groups.get(stamp.group)
        if isinstance(message, DrillReport):
            reason = Reason.UNAVAILABLE
            if group is not None and self.settled:
                banned = {stamp.node, message.node} & group.banned
                reason = Reason.BANNED if banned else group.drills.take(message, group.ledger)
            effects.append(Send(stamp.node, DrillTaken(stamp, reason)))
        parent = self.settings.parent
        if group is not None and parent is not None and self.pin is not None:
            report = group.drills.next_up(now, answered=isinstance(message, DrillTaken))
            if report is not None:
                seq = group.upward.line.seq
                ours = Stamp(self.settings.node, stamp.group, self.incarnation, seq)
                effects.append(Send(parent, report._replace(stamp=ours)))
        return effects

    def _advance(self, now: Now, effects: list[Effect]) -> None:
        tidies = self._tidy_at <= now.steady
        for group in self._groups.values():
            if tidies:
                group.tidy(now)
            if not self.top:
                if group.upward.due_at <= now.steady:
                    send_due(self, group, now, effects)
                effects.extend(group.take_rejections())
                continue
            known = group.canonical
            model = group.make_model(now)
            effects.extend(group.take_rejections())
            if group.canonical != known and group.ledger is not None:
                note, counted = settled_note(group.ledger.schema), {"group": group.name}
                effects.append(note._replace(facts=counted | note.facts))
            if model is not None:
                effects.extend(group.influence_notes())
                effects.append(Publish(model))
        if tidies:
            self._tidy_at = now.steady + self.settings.seal_after_s / 8

"""What an aggregator reports of a group to its parent; which answers count (`node`, rules 1, 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from submerge.aggregator.group import Group
from submerge.errors import PeerError
from submerge.protocol.desired_state import News
from submerge.protocol.machine import Effect, Note, Now, Send, refusal_note
from submerge.protocol.messages import (
    ANOTHER,
    BEHIND,
    Answer,
    Incarnation,
    Join,
    Joined,
    Pin,
    Reason,
    Stamp,
)
from submerge.protocol.names import RandomSource
from submerge.protocol.settings import AggregatorSettings


class StoreOwner(Protocol):
    """The node whose store a parent may keep or give up: what this module asks of it."""

    settings: AggregatorSettings
    incarnation: Incarnation
    pin: Pin | None
    rng: RandomSource

    def renew(self, why: str, now: Now, effects: list[Effect], *, floor: int = 0) -> None:
        """Begin an empty store."""

    def settle(self, pin: Pin, effects: list[Effect]) -> None:
        """Bind the store to a parent's incarnation."""

    def keeps_store(self, old: Pin | None, new: Pin) -> bool:
        """Return whether the store goes on under another pin (rule 1)."""

    def is_behind(self, newest: int, seq: int) -> bool:
        """Return whether the parent holds later reports than this store has sent (rule 4)."""

    def learn_schema(self, group: Group, canonical: bytes) -> None:
        """Take the group's schema from above."""

    def take_orders(self, group: Group, news: Iterable[News], now: Now) -> list[Note]:
        """Carry out what the parent says of nodes below; note what changes."""


def send_due(node: StoreOwner, group: Group, now: Now, effects: list[Effect]) -> None:
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
    node: StoreOwner, group: Group, reply: Joined | Answer, now: Now, effects: list[Effect]
) -> None:
    """Take the answer to a join, or to a report."""
    if isinstance(reply, Joined):
        _take_joined(node, group, reply, now, effects)
    else:
        _take_answer(node, group, reply, now, effects)


def _take_joined(
    node: StoreOwner, group: Group, joined: Joined, now: Now, effects: list[Effect]
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
    node: StoreOwner, group: Group, pin: Pin, joined: Joined, effects: list[Effect]
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
    node: StoreOwner, group: Group, answer: Answer, now: Now, effects: list[Effect]
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
            effects += node.take_orders(group, arrived, now)
            # The next report confirms how far they have arrived, and its answer brings more.
            group.stir()
            session.soon(now.steady)
    elif answer.reason is not Reason.UNAVAILABLE:
        effects.append(refusal_note("report", answer))

"""Inquiries: questions that pass through an aggregator, on their way down and back.

A question comes from the parent that this store is pinned to, or from an operator here. A reply is
taken from the child that was asked, once, and within `PATIENCE_S`. No store has any of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from submerge.protocol import messages
from submerge.protocol.machine import Consult, Effect, Now, Replied, Send

MOST_OPEN = 256  # questions that wait for a reply
BURST, PER_S = 64.0, 32.0  # questions at once, and a second: an aggregator has other things to do


class OpenQuestion(NamedTuple):
    """A question passed on to a child, for an operator `here` or the parent."""

    child: str
    group: str
    here: bool
    until: float


class Asker(NamedTuple):
    """Who this aggregator is to those that it asks; `has` tells of a child in the group."""

    ours: messages.Stamp
    pin: messages.Pin | None
    has: Callable[[str], bool]


class Inquiries:
    def __init__(self) -> None:
        self._open: dict[int, OpenQuestion] = {}
        self._pace = messages.QuestionPace(BURST, PER_S)

    def ask(self, question: messages.Question, asker: Asker, now: Now) -> list[Effect]:
        """Pass on an operator's question, which is for a node below."""
        passed = self._pass_on(question, asker, now, here=True)
        return [Replied(question.number, b"", passed) if isinstance(passed, str) else passed]

    def take_question(self, question: messages.Question, asker: Asker, now: Now) -> list[Effect]:
        pin, ours = asker.pin, asker.ours
        if pin is None or (question.pinned, question.node) != (pin.incarnation, ours.node):
            return []
        passed = self._pass_on(question, asker, now, here=False)
        if isinstance(passed, str):
            return [Send(pin.parent, messages.QuestionReply(ours, question.number, b"", passed))]
        return [passed]

    def take_reply(self, reply: messages.QuestionReply, asker: Asker, now: Now) -> list[Effect]:
        """Take a child's reply: it is for the parent, or for an operator here."""
        stamp, asked = reply.stamp, self._open.get(reply.number)
        if asked is None or (asked.child, asked.group) != stamp[:2] or asked.until < now.steady:
            return [Send(stamp.node, messages.ReplyTaken(stamp, messages.Reason.STALE))]
        del self._open[reply.number]
        effects: list[Effect] = [Send(stamp.node, messages.ReplyTaken(stamp, messages.Reason.ACK))]
        if asked.here:
            effects.append(Replied(reply.number, reply.body, reply.problem))
        elif asker.pin is not None:
            effects.append(Send(asker.pin.parent, reply._replace(stamp=asker.ours)))
        return effects

    def _pass_on(
        self, question: messages.Question, asker: Asker, now: Now, *, here: bool
    ) -> Effect | str:
        """Return what follows from a question, or why nothing does."""
        me, group = asker.ours, question.group
        if not self._admits(now):
            return f"{me.node} is asked too much at once: try again"
        if not question.path:
            return Consult(question)
        child, *below = question.path
        if not asker.has(child):
            return f"{child} does not report to {me.node} in group {group}"
        until = now.steady + messages.PATIENCE_S
        self._open[question.number] = OpenQuestion(child, group, here, until)
        pinned, path = me.incarnation, tuple(below)
        return Send(child, question._replace(node=child, pinned=pinned, path=path))

    def _admits(self, now: Now) -> bool:
        for number in [n for n, each in self._open.items() if each.until < now.steady]:
            del self._open[number]
        return len(self._open) < MOST_OPEN and self._pace.admits(now.steady)

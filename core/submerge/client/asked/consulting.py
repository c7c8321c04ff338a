"""Consulting: the questions that a client's parent passes on to it, and its replies.

A client has no nodes below it, and that is all that can be asked so far: it says so.
"""

from __future__ import annotations

from submerge.client.incarnation import ClientIncarnation
from submerge.protocol.machine import Effect, Now, Send
from submerge.protocol.messages import Stamp
from submerge.protocol.questions import Question, QuestionPace, QuestionReply
from submerge.protocol.settings import ClientSettings

BURST, PER_S = 8.0, 2.0
"""Questions at once, and a second: a small machine has readings to take. Others get no reply."""


class Consulting:
    """What a client does with questions."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._pace = QuestionPace(BURST, PER_S)

    def receive(self, question: Question, current: ClientIncarnation, now: Now) -> list[Effect]:
        """Reply to a question of the parent."""
        settings, pin = self._settings, current.pin
        if pin is None or not self._pace.admits(now.steady):
            return []
        expected = pin.incarnation, settings.node, settings.group
        if (question.pinned, question.node, question.group) != expected:
            return []
        problem = f"{settings.node} is a client: no node reports to it"
        stamp = Stamp(settings.node, settings.group, current.incarnation, current.seq)
        return [Send(settings.parent, QuestionReply(stamp, question.number, b"", problem))]

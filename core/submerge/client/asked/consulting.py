"""Consulting: the questions that a client's parent passes on to it, and its replies."""

from __future__ import annotations

from submerge.client.incarnation import ClientIncarnation
from submerge.protocol.machine import Answered, Consult, Effect, Now, Send
from submerge.protocol.messages import Stamp
from submerge.protocol.questions import Question, QuestionPace, QuestionReply
from submerge.protocol.settings import ClientSettings

BURST, PER_S = 8.0, 2.0
"""Questions at once, and a second: a small machine has readings to take."""


class Consulting:
    """What a client does with questions."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._pace = QuestionPace(BURST, PER_S)

    def receive(
        self, what: Question | Answered, current: ClientIncarnation, now: Now
    ) -> list[Effect]:
        """Take a question of the parent, or what the driver says to it."""
        pin, settings = current.pin, self._settings
        if pin is None:
            return []
        if isinstance(what, Answered):
            return [self._reply(current, what.question, what.body, what.problem)]
        expected = pin.incarnation, settings.node, settings.group
        if (what.pinned, what.node, what.group) != expected:
            return []
        if not self._pace.admits(now.steady):
            problem = f"{settings.node} is asked too much at once: try again"
        elif what.path:
            problem = f"{settings.node} is a client: no node reports to it"
        else:
            return [Consult(what)]
        return [self._reply(current, what, b"", problem)]

    def _reply(
        self, current: ClientIncarnation, question: Question, body: bytes, problem: str
    ) -> Send:
        node, group = self._settings.node, self._settings.group
        stamp = Stamp(node, group, current.incarnation, current.seq)
        return Send(self._settings.parent, QuestionReply(stamp, question.number, body, problem))

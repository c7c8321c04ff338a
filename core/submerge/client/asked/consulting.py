"""Consulting: the questions that a client's parent passes on to it, and its replies.

1. A question is taken from the parent that this incarnation is pinned to, in its group, and at
   most at a pace of `PER_S`. Others get no reply.
2. What a reply holds is the driver's: it has the configuration. `Consult` asks it, and `Answered`
   is what it says.
3. A client has no nodes below it, and says so.
"""

from __future__ import annotations

from submerge.client.incarnation import ClientIncarnation
from submerge.protocol.machine import Answered, Consult, Effect, Now, Send
from submerge.protocol.messages import Stamp
from submerge.protocol.questions import MOST_BODY, Question, QuestionPace, QuestionReply
from submerge.protocol.settings import ClientSettings

BURST, PER_S = 8.0, 2.0
"""Questions at once, and a second: a small machine has readings to take. Others get no reply."""

TOPICS = ("settings", "recent", "values")
"""What can be asked of a client."""


class Consulting:
    """What a client does with questions."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._pace = QuestionPace(BURST, PER_S)

    def receive(self, question: Question, current: ClientIncarnation, now: Now) -> list[Effect]:
        """Take a question of the parent."""
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

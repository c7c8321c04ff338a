"""Questions: what an operator asks of one node, down the tree, and its reply on the way up.

A question names the way: each aggregator takes its own next name off, and passes it on. A reply
goes the same way back. Neither changes a row or a store; both are sent once, and may be lost: who
asked waits for `PATIENCE_S` at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from submerge.protocol.messages import Incarnation, Reason, Stamp

PATIENCE_S = 10.0
"""A reply that comes later is dropped."""

MOST_BODY = 64 << 10
"""Bytes of a reply's body. What is longer comes in pages."""

MOST_STEP_S = 86_400
"""Seconds of the longest step."""

DEEPEST = 16
"""Names on the way of a question."""


class Question(NamedTuple):
    """A question to a node.

    node, group : the child that it is sent to, and one of its groups
    pinned : of the parent that sends it
    number : names it, for its reply; drawn by whom an operator asks
    path : names of the nodes below `node` on the way, the last one replies; empty: `node` does
    topic : "nodes" and "scores" of an aggregator; "settings" of any node; "recent" and "values" of
        a client. A node that does not know a topic says so
    about : of one node only; empty: of all
    after : a page begins after this name; empty: from the first
    since_s, step_s : of what happens over time: from this time on (Unix), in steps of so many
        seconds; 0 where a topic has none
    """

    node: str
    group: str
    pinned: Incarnation
    number: int
    path: tuple[str, ...]
    topic: str
    about: str = ""
    after: str = ""
    since_s: int = 0
    step_s: int = 0


class QuestionReply(NamedTuple):
    """The reply to a question.

    stamp : of the child that sends it: who replies, or an aggregator that passes it on
    number : the question's
    body : JSON; empty if there is none
    problem : why there is none, in one line
    """

    stamp: Stamp
    number: int
    body: bytes
    problem: str = ""


class ReplyTaken(NamedTuple):
    """That a reply has arrived.

    stamp : the reply's
    """

    stamp: Stamp
    reason: Reason


class QuestionPace:
    """Lets through so many questions at once, and then so many a second."""

    def __init__(self, burst: float, per_s: float) -> None:
        self._burst, self._per_s = burst, per_s
        self._left, self._at = burst, 0.0

    def admits(self, steady: float) -> bool:
        """Return whether one more may pass, and count it."""
        passed = max(0.0, steady - self._at)
        self._left, self._at = min(self._burst, self._left + self._per_s * passed), steady
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

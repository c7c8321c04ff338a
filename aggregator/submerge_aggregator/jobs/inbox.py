"""JobInbox: messages of jobs that wait to be computed, from children and from the parent.

1. Foreign bytes are decoded here; what cannot be decoded, comes under a false name, or is not for a
   child to send is counted, and changes nothing.
2. Messages are bounded by a rate and a budget of their own, of each child and of all: they count as
   other messages do, and take no place and no turn from a report.
3. Only what came from the parent may ask something of this node (`JobHeard.from_parent`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from submerge import PeerError
from submerge.jobs.machine import JobHeard, JobMessage, JobPiece
from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.downlink import Admits, Inbound
from submerge_aggregator.limits.budget import MessageBudget
from submerge_aggregator.refusals import Refusals
from submerge_proto.wire import jobs

PIECES_A_TOKEN = 8
"""A byte of a job's message counts as an eighth of one: it is stored, and not checked."""

PARENT = "the parent"
"""The name that its messages count against; no node has it."""


class QueuedMessage(NamedTuple):
    """A message that waits, and what it holds of the budget."""

    heard: JobHeard
    who: str
    size: int


class JobInbox:
    """What waits for the thread that computes. For the event loop.

    budget : Bytes that wait.
    admits : Whether a child may send one more message of a job.
    stir : Called when something has come.

    heard_bytes : Bytes of messages, without what the transport adds.
    """

    def __init__(
        self,
        budget: MessageBudget,
        admits: Admits,
        admission: AdmissionControl,
        refusals: Refusals,
        stir: Callable[[], None],
    ) -> None:
        self.budget, self.heard_bytes = budget, 0
        self._admits, self._admission, self._refusals = admits, admission, refusals
        self._stir = stir
        self._waiting: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def take(self, inbound: Inbound, *, open_: bool) -> None:
        """Take a child's message, or refuse it; `open_`: whether any is taken now."""
        inbound.done()  # it holds no place of the transport's while it waits here
        who, size = inbound.who, len(inbound.data)
        if not self._admits(who, size // PIECES_A_TOKEN):
            self._refusals.count("throttled", who, what="job message refused")
            inbound.refuse("too many messages of jobs: wait", "throttled")
            return
        message = self._read(inbound)
        if message is None:
            return
        if not open_ or not self.budget.takes(who, size):
            self._refusals.count("dropped", who, what="job message refused")
            inbound.refuse("no room now: send it again", "busy")
            return
        self._put(JobHeard(message, message.stamp.node, False), who, size)
        inbound.answer("job", b"")

    def _read(self, inbound: Inbound) -> JobMessage | None:
        """Return a child's message, if the child may send it; else count and refuse it."""
        try:
            message = jobs.decode(inbound.data)
        except PeerError as error:
            self._refuse(inbound, error.kind, str(error))
            return None
        name, group = message.stamp.node, message.stamp.group
        if inbound.node not in (None, name):
            self._refuse(inbound, "spoofed", f"it came as {inbound.node}, and names {name}")
            return None
        if message.up is not isinstance(message, JobPiece):
            self._refuse(inbound, "denied", "only a parent asks something of a node in a job")
            return None
        why = self._admission.objection_to_watch(inbound.identity, name, group)
        if why is not None:
            self._refuse(inbound, "denied", why)
            return None
        return message

    def _refuse(self, inbound: Inbound, reason: str, why: str) -> None:
        self._refusals.count(reason, inbound.who, what="job message refused", why=why)
        kind = "denied" if reason in ("denied", "spoofed") else "foreign"
        inbound.refuse(why, "denied" if kind == "denied" else "foreign")

    def take_of_parent(self, data: bytes, parent: str, node: str) -> None:
        """Take a message of the parent to this node."""
        what = "job message of the parent refused"
        try:
            message = jobs.decode(data)
        except PeerError as error:
            self._refusals.count(error.kind, what=what, why=str(error))
            return
        if message.stamp.node != node or message.up is isinstance(message, JobPiece):
            self._refusals.count("foreign_topic", what=what, why="it is not for this node")
            return
        if not self.budget.takes(PARENT, len(data)):
            self._refusals.count("dropped", what=what)
            return
        self._put(JobHeard(message, parent, True), PARENT, len(data))

    def _put(self, heard: JobHeard, who: str, size: int) -> None:
        self.heard_bytes += size
        self._waiting.append(QueuedMessage(heard, who, size))
        self._stir()

    def pop(self) -> JobHeard:
        """Return the oldest message; IndexError if none waits."""
        waiting = self._waiting.popleft()
        self.budget.release(waiting.who, waiting.size)
        return waiting.heard

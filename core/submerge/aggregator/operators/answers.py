"""What a parent answers a child's report, and what it sends a child between two reports.

Orders go down as desired states in answers. Brokers deliver messages twice, so an answer may come
again: a new order is sent at once, in the newest answer once more, and the child's next report
confirms it. If an answer gets lost, the next one has the order, too.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import Row
from submerge.aggregator.rows.refusals import RowVerdict
from submerge.aggregator.upward import Upward
from submerge.protocol.desired_state import DesiredStates
from submerge.protocol.machine import Effect, Now, Send
from submerge.protocol.messages import Answer, Incarnation, Join, Reason, Report, Stamp

CONFIRMS_S = 2.0
"""So long a child may take to confirm an order. Until then the answer to its report brings more,
and it is sent no other answer."""

MOST_CHILDREN = 65_536
"""Children that are remembered. The one that was heard longest ago is forgotten: it gets its orders
with the answer to its next report."""


class AnsweringGroup(Protocol):
    """A group, as far as answers to its children concern it."""

    desired_states: DesiredStates
    upward: Upward
    banned: frozenset[str]
    ledger: Ledger | None


class Child(NamedTuple):
    """A child as an answer names it; `heard` is the newest desired state that it has confirmed."""

    stamp: Stamp
    fence: bytes
    heard: int

    @classmethod
    def of(cls, report: Report) -> Child:
        status = report.alarm_status
        return cls(report.stamp, report.fence, 0 if status is None else status.desired)

    def is_as_before(self, other: Child) -> bool:
        """Return whether both are of one incarnation, with one fence."""
        return (self.stamp.incarnation, self.fence) == (other.stamp.incarnation, other.fence)


class OrderPushes:
    """The children of a group that can be sent orders at once."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}
        self._joined: set[str] = set()
        self._newest = 0  # desired state that has been looked at
        self._confirms_at: dict[str, float] = {}

    @property
    def has_joined(self) -> bool:
        """Whether a child has joined since the last look: its way is open again."""
        return bool(self._joined)

    def take_join(self, join: Join, states: DesiredStates) -> None:
        """Note that a child has joined; what it is owed, it is sent as soon as that is answered."""
        node = join.stamp.node
        child = Child(join.stamp, join.fence, 0)
        known = self._children.get(node)
        # Another store, or an older copy of this one, has not what the last one had confirmed.
        if known is not None and child.is_as_before(known):
            child = known._replace(stamp=join.stamp)
        self._put(child)
        if states.by_node:
            self._joined.add(node)

    def take_report(self, report: Report) -> None:
        """Note what a child has confirmed; the answer to its report has what is due."""
        self._put(Child.of(report))
        self._joined.discard(report.stamp.node)

    def due(self, group: AnsweringGroup, now: Now) -> list[Child]:
        """Return the children to which something may be due, each once."""
        news, joined = group.desired_states.after(self._newest), self._joined
        if not news and not joined:
            return []
        self._joined = set()
        if news:
            self._newest = news[-1].number
            named = {each.node for each in news}
            concerned = [
                node for node, child in self._children.items() if child.fence or node in named
            ]
            waits = {node for node, until in self._confirms_at.items() if until > now.steady}
            joined = joined.union(concerned) - waits
        return [self._children[node] for node in sorted(joined - group.banned)]

    def await_confirmation(self, node: str, now: Now) -> None:
        """Note that a child has been sent an order."""
        self._confirms_at[node] = now.steady + CONFIRMS_S

    def _put(self, child: Child) -> None:
        node = child.stamp.node
        self._confirms_at.pop(node, None)
        self._children.pop(node, None)
        self._children[node] = child
        if len(self._children) > MOST_CHILDREN:
            oldest = next(iter(self._children))
            del self._children[oldest]
            self._confirms_at.pop(oldest, None)
            self._joined.discard(oldest)


def answer_to(
    group: AnsweringGroup,
    ledger: Ledger,
    child: Child,
    verdict: RowVerdict,
    pinned: Incarnation,
    *,
    top: bool,
) -> Answer:
    """Return the answer to a report, with what is durable and what operators have set."""
    stamp = child.stamp
    return Answer(
        stamp,
        verdict.reason,
        child.fence,
        pinned,
        top,
        verdict.newest,
        root=pinned if top else group.upward.root,
        durable=verdict.newest if top else group.upward.held((stamp.node, stamp.incarnation)),
        floor=ledger.member(stamp.node).floor,
        desired_states=group.desired_states.due(stamp.node, child.heard, is_client=not child.fence),
    )


def push_orders(
    group: AnsweringGroup, pushes: OrderPushes, pinned: Incarnation, now: Now, *, top: bool
) -> list[Effect]:
    """Send new orders to the children that they concern."""
    ledger = group.ledger
    if ledger is None:
        return []
    sends = list[Effect]()
    for child in pushes.due(group, now):
        node, _, incarnation, _ = child.stamp
        held = RowVerdict(Reason.ACK, _seq(ledger.rows.get((node, incarnation))))
        answer = answer_to(group, ledger, child, held, pinned, top=top)
        if answer.desired_states:
            pushes.await_confirmation(node, now)
            sends.append(Send(node, answer))
    return sends


def _seq(row: Row | None) -> int:
    return 0 if row is None else row.report.stamp.seq

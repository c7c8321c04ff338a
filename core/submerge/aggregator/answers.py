"""What a parent answers a child's report, and what it sends a child between two reports.

Orders go down as desired states in answers (`submerge.protocol.desired_state`). An answer to the
newest report may come again at any time, for brokers deliver messages twice. So a new order is sent
at once, as that answer once more, with the order in it. A child that takes it reports soon, and
that confirms it. An answer that gets lost costs nothing but time: the next one has the order, too.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Protocol

from submerge.aggregator.ledger import Ledger
from submerge.aggregator.pool import Row
from submerge.aggregator.rollup import latest_row_per_node
from submerge.aggregator.row_verdict import RowVerdict
from submerge.aggregator.upward import Upward
from submerge.protocol.desired_state import DesiredStates
from submerge.protocol.machine import Effect, Now, Send
from submerge.protocol.messages import Answer, Incarnation, Reason, Report

CONFIRMS_S = 2.0
"""So long a child may take to confirm an order. Until then the answer to its report brings more,
and it is sent no other answer."""


class AnsweringGroup(Protocol):
    """A group, as far as answers to its children concern it."""

    desired_states: DesiredStates
    upward: Upward
    banned: frozenset[str]
    ledger: Ledger | None


class OrderPushes:
    """Which children of a group are sent new orders at once.

    Attributes
    ----------
    joined : set of str
        Children that have joined since the last look: their way is open again.
    """

    def __init__(self) -> None:
        self.joined: set[str] = set()
        self._newest = 0  # desired state that has been looked at
        self._confirms_at: dict[str, float] = {}

    def await_confirmation(self, node: str, now: Now) -> None:
        """Note that a child has been sent an order."""
        self._confirms_at[node] = now.steady + CONFIRMS_S

    def confirm(self, node: str) -> None:
        """Note that a child has reported: the answer has what is due."""
        self._confirms_at.pop(node, None)
        self.joined.discard(node)

    def due(self, group: AnsweringGroup, ledger: Ledger, now: Now) -> list[Row]:
        """Return the newest rows of children to which something may be due, each once."""
        news, joined = group.desired_states.after(self._newest), self.joined - group.banned
        self.joined.clear()
        if not news and not joined:
            return []
        self._newest = news[-1].number if news else self._newest
        named = {each.node for each in news}
        return [
            row
            for (node, _), row in latest_row_per_node(ledger)
            if node in joined
            or (
                (node in named if row.from_client else bool(news))
                and node not in group.banned
                and self._confirms_at.get(node, now.steady) <= now.steady
            )
        ]

    def only(self, children: Container[object]) -> None:
        """Forget all other children."""
        for node in [node for node in self._confirms_at if node not in children]:
            del self._confirms_at[node]


def answer_to(
    group: AnsweringGroup,
    ledger: Ledger,
    report: Report,
    verdict: RowVerdict,
    pinned: Incarnation,
    *,
    top: bool,
) -> Answer:
    """Return the answer to a report, with what is durable and what operators have set.

    pinned : this store's incarnation
    """
    stamp = report.stamp
    child = stamp.node, stamp.incarnation
    heard = 0 if report.alarm_status is None else report.alarm_status.desired
    return Answer(
        stamp,
        verdict.reason,
        report.fence,
        pinned,
        top,
        verdict.newest,
        root=pinned if top else group.upward.root,
        durable=verdict.newest if top else group.upward.held(child),
        floor=ledger.member(stamp.node).floor,
        desired_states=group.desired_states.due(stamp.node, heard, is_client=not report.fence),
    )


def push_orders(
    group: AnsweringGroup, pushes: OrderPushes, pinned: Incarnation, now: Now, *, top: bool
) -> list[Effect]:
    """Send new orders to the children that they concern."""
    ledger = group.ledger
    if ledger is None:
        return []
    sends = list[Effect]()
    for row in pushes.due(group, ledger, now):
        report, (node, _, incarnation, seq) = row.report, row.report.stamp
        taken = RowVerdict(Reason.ACK, seq, news=False)
        answer = answer_to(group, ledger, report, taken, pinned, top=top)
        if not answer.desired_states:
            continue  # it has confirmed all of them
        if not row.from_client:
            # Another process of the store may have joined since: it knows its own fence only.
            fence = ledger.member(node).fences.get(incarnation, report.fence)
            answer = answer._replace(fence=fence)
        pushes.await_confirmation(node, now)
        sends.append(Send(node, answer))
    return sends

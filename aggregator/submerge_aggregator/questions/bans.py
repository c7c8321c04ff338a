"""Questions on bans, and plain values that answer them. Asked as in `survey`."""

from __future__ import annotations

from dataclasses import dataclass

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import latest_row_per_node
from submerge.errors import UsageError
from submerge_aggregator.questions.survey import Missing

MOST_BANNED = 2048
"""Bans that one aggregator gives: half of the desired states that it remembers, so that none is
forgotten for another."""


@dataclass(frozen=True, slots=True)
class BanView:
    """A node that is banned, or was.

    banned : In every group of this aggregator.
    on_its_way : Aggregators that report here, and have not confirmed the newest order yet.
    """

    node: str
    banned: bool
    on_its_way: tuple[str, ...] = ()


def bans(node: AggregatorNode) -> list[BanView]:
    """Return the nodes that are banned in every group."""
    return [ban(node, name) for name in sorted(_banned(node))]


def ban(node: AggregatorNode, name: str) -> BanView:
    """Return whether a node is banned, and where the order has not arrived."""
    late = set[str]()
    for group in node.groups:
        ledger, desired = node.ledger(group), node.desired_states(group).get(name)
        if ledger is None or desired is None:
            continue
        for (child, _), row in latest_row_per_node(ledger):
            status = row.report.alarm_status
            heard = 0 if status is None else status.desired
            if not row.from_client and heard < desired.number:
                late.add(child)
    return BanView(name, name in _banned(node), tuple(sorted(late)))


def check_ban(node: AggregatorNode, name: str, *, banned: bool) -> None:
    """Check that a ban can be given, or taken back.

    Raises Missing if there is none to take back; UsageError if there are too many, or it is the
    aggregator's own name.
    """
    anywhere = {each for group in node.groups for each in node.excluded(group)[0]}
    if not banned and name not in anywhere:
        banned_here = ", ".join(sorted(anywhere)) or "no node"
        raise Missing(
            f"{name} is not banned here; {banned_here} is. Take a ban back where it was given: this"
            " aggregator, or one below"
        )
    if banned and name == node.settings.node:
        raise UsageError(f"{name} is this aggregator: ban it at its parent")
    if banned and name not in anywhere and len(anywhere) >= MOST_BANNED:
        raise UsageError(
            f"at most {MOST_BANNED} nodes are banned at once: take some back, or list them in"
            " [security] revoked"
        )


def _banned(node: AggregatorNode) -> frozenset[str]:
    banned = [node.excluded(group)[0] for group in node.groups]
    return banned[0].intersection(*banned[1:])

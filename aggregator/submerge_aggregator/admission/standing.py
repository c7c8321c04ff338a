"""standing_of(): the role under which a name stands in an aggregator's store."""

from __future__ import annotations

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.ledger import Ledger
from submerge.protocol.permission import Role


def standing_of(node: AggregatorNode, name: str) -> Role | None:
    """Return the role of a name by what is held of it in any group; None if nothing is.

    A fence makes it an aggregator's. A node that was forgotten stands for nothing: its closed
    incarnations are still remembered, but no reading of it is.
    """
    standing: Role | None = None
    for group in node.groups:
        ledger = node.ledger(group)
        if ledger is None or not ledger.knows(name):
            continue
        live = ledger.live(name)
        if ledger.member(name).fences or any(
            not ledger.rows[name, incarnation].from_client for incarnation in live
        ):
            return "aggregator"
        if live or _is_sealed(ledger, name):
            standing = "client"
    return standing


def _is_sealed(ledger: Ledger, name: str) -> bool:
    """Return whether closed incarnations of a node have left readings."""
    if (name, ledger.fingerprint) in ledger.sealed:
        return True
    # Of another schema: rare, and only of names that have been here.
    return any(node == name for node, _ in ledger.sealed)

"""children_of(): who is asked in the jobs of a group: those that report for it, and may."""

from __future__ import annotations

from submerge.aggregator.node import AggregatorNode
from submerge.jobs.machine import ChildrenKnown
from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.downlink.identity import UNPROVEN


def children_of(node: AggregatorNode, admission: AdmissionControl, group: str) -> ChildrenKnown:
    """Return the children of a group, by what is held of them.

    Nodes that are revoked, banned or quarantined are no part of it, and neither are those that the
    settings do not list. Who has reported as a client is one.
    """
    ledger = node.ledger(group) if group in node.groups else None
    if ledger is None:
        return ChildrenKnown(frozenset(), group=group)
    banned, quarantined = node.excluded(group)
    aggregators = {name for (name, _), row in ledger.rows.items() if not row.from_client}
    names = {name for name, _ in ledger.rows if name not in banned and name not in quarantined}
    # What a certificate says is asked of each message; here is none, only a name.
    may = {each for each in names if admission.objection_to_watch(UNPROVEN, each, group) is None}
    return ChildrenKnown(frozenset(may), frozenset(may - aggregators), group)

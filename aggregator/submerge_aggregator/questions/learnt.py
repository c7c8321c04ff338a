"""What a group has learnt, as a model file holds it: the newest model, and what merges.

Only a root holds all rows, and so what merges. Below it there is the model alone.
"""

from __future__ import annotations

from dataclasses import replace

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import scores
from submerge.aggregator.rows.presence import seen_from
from submerge.history.knowledge import Learnt
from submerge.protocol.machine import Now
from submerge_aggregator.questions.survey import newest_model


def learnt(node: AggregatorNode, now: Now, group: str) -> Learnt:
    """Return what a group has learnt.

    The rows may be newer than the model: it is made at intervals.

    Raises Missing if there is no model yet.
    """
    model = newest_model(node, group)
    ledger, origin = node.ledger(group), origin_of(node, group)
    whole = node.top and model.summary is not None and ledger is not None
    if not whole or ledger is None or ledger.fingerprint != model.fingerprint:
        return Learnt(model, origin=origin)
    summary = ledger.summary(seen_from(now, ledger.rows.values()))
    held = ledger.histories.of(ledger.fingerprint)
    chunks = {chunk.key: chunk for each in held for chunk in each.passed_on}
    # What merges is of now, and its counts with it: the next model has them.
    counts = ledger.counts() + ledger.histories.counts(ledger.fingerprint)
    return Learnt(
        replace(model, counts=counts),
        summary,
        ledger.moments(),
        scores(ledger),
        # Of files that a fleet before this one was given, too, and of that fleet itself.
        tuple(chunks[key] for key in sorted(chunks)),
        origin,
    )


def origin_of(node: AggregatorNode, group: str) -> str:
    """Return what names a fleet's model as its own: the group, and the root's incarnation."""
    root = node.root(group)
    return group if root is None else f"{group} {root}"

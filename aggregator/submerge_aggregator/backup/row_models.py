"""The model that follows from a group's rows, as bytes that two machines can compare.

The same rows at the same time give the same bytes, in the machine that took the reports one by one
and in one that starts from a copy of its store. What follows from when nodes were heard, or from
the number and the time of the last model, is left out.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.root.new_model import new_model
from submerge.aggregator.rows.ledger import Ledger
from submerge.protocol.machine import Now
from submerge_aggregator.backup.copy_file import GroupState
from submerge_proto.wire import codec


def group_states(node: AggregatorNode, now: Now) -> dict[str, GroupState]:
    """Return what each group is now; one without a schema is left out.

    Cost: a merge of the rows that have changed since the last one, as for a model.
    """
    ledgers = {name: node.ledger(name) for name in sorted(node.groups)}
    return {
        name: _state(node, ledger, now, name)
        for name, ledger in ledgers.items()
        if ledger is not None
    }


def _state(node: AggregatorNode, ledger: Ledger, now: Now, group: str) -> GroupState:
    model = model_of_rows(node, ledger, now, group)
    return GroupState(
        ledger.fingerprint,
        ledger.counts().learnt,
        ledger.ages.elapsed,
        hashlib.sha256(model).hexdigest(),
    )


def model_of_rows(node: AggregatorNode, ledger: Ledger, now: Now, group: str) -> bytes:
    """Return the model that follows from rows and histories: directions, factors, limits, counts.

    The chosen rank is none of these: it is a record of its own.
    """
    canonical = ledger.schema.canonical
    made = new_model(ledger, canonical, node.settings, now, node.plan(group), last=0, rank=0)
    return codec.encode(
        replace(
            made,
            version=1,
            nodes=0,
            staleness=(0.0, 0.0, 0.0),
            created=0.0,
            expires=0.0,
            maxima=None,
            widened=1.0,
            block_s=0.0,
        )
    )

"""apply(): what an operator orders of histories, applied to a group of the root."""

from __future__ import annotations

from submerge.aggregator.group import Group
from submerge.aggregator.histories.objections import check, opens
from submerge.errors import UsageError
from submerge.protocol.machine import ForgetHistory, Note, Now, PushHistory
from submerge.protocol.messages import Incarnation
from submerge.schema import Schema


def apply(
    group: Group, order: PushHistory | ForgetHistory, root: Incarnation | None, now: Now
) -> list[Note]:
    """Take a history, or remove one; what is not done becomes a note.

    root : the incarnation of this root; None below one
    """
    facts = {"group": group.name}
    if isinstance(order, ForgetHistory):
        if not group.histories.remove(order.name):
            return [Note("unknown history", {**facts, "history": order.name})]
        group.stir(now=True)
        return [Note("history forgotten", {**facts, "history": order.name})]
    try:
        history = check(group, order, root, now)
    except UsageError as error:
        return [Note("history refused", {**facts, "why": str(error)})]
    schema = Schema.parse(history.model.schema)
    if group.ledger is not None and opens(group, group.ledger, schema):
        group.learn_schema(schema.canonical, 0.0)
    replaced = group.histories.put(history)
    group.stir(now=True)
    facts |= {"history": history.name, "rows": str(history.model.counts.learnt)}
    return [Note("history taken", facts | ({"replaces": ", ".join(replaced)} if replaced else {}))]

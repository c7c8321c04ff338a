"""Questions on histories. Asked as in `survey`."""

from __future__ import annotations

import math

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rows.presence import seen_from
from submerge.errors import UsageError
from submerge.protocol.history import History
from submerge.protocol.machine import Now, PushHistory
from submerge_aggregator.questions.history_views import HistoryView, PushedView
from submerge_aggregator.questions.survey import Missing, group_of


def histories(node: AggregatorNode, now: Now, group: str) -> list[HistoryView]:
    """Return the histories of a group, those that were pushed first at the top."""
    held = node.histories(group_of(node, group)).values()
    ordered = sorted(held, key=lambda each: (each.pushed, each.name))
    return [_view(node, now, group, each) for each in ordered]


def check_push(node: AggregatorNode, now: Now, order: PushHistory) -> tuple[History, float]:
    """Return a history as its group would take it, and the wall time.

    Raises Missing if there is no such group; UsageError if the group does not take it.
    """
    group_of(node, order.group)
    return node.check_history(order, now), now.wall


def pushed(
    node: AggregatorNode, now: Now, order: PushHistory, before: frozenset[str]
) -> PushedView:
    """Return what a push has changed.

    before : names of the group's histories before it

    Raises UsageError if the group has not taken it.
    """
    group, name = order.group, order.history.name
    held = node.histories(group)
    if name not in held or held[name].pushed != order.history.pushed:
        node.check_history(order, now)
        raise UsageError("another order came in between: push it again")
    model, ledger = node.model(group), node.ledger(group)
    return PushedView(
        _view(node, now, group, held[name]),
        tuple(sorted(before - held.keys())),
        0 if model is None else model.counts.learnt,
        model is not None and model.limits is not None,
        0.0 if ledger is None else ledger.schema.half_life or 0.0,
    )


def one(node: AggregatorNode, now: Now, group: str, name: str) -> HistoryView:
    """Return one history; raises Missing if the group does not hold it."""
    held = node.histories(group_of(node, group))
    if name not in held:
        known = ", ".join(held) or "none"
        raise Missing(f"group {group} has no history {name}, but {known}")
    return _view(node, now, group, held[name])


def _view(node: AggregatorNode, now: Now, group: str, history: History) -> HistoryView:
    ledger, left = node.ledger(group), 1.0
    if ledger is not None and ledger.schema.half_life:
        age = max(0.0, seen_from(now, ledger.rows.values()) - history.as_of)
        left = 2.0 ** -(age / ledger.schema.half_life)
    timed = [chunk for chunk in history.chunks if math.isfinite(chunk.last)]
    return HistoryView(
        group=group,
        name=history.name,
        rows=history.model.counts.learnt,
        counts_for=history.summary.weight * history.factor * left,
        most_rows=history.most_rows if history.most_rows < math.inf else None,
        left=left,
        first_s=min((chunk.first for chunk in timed), default=None),
        last_s=max((chunk.last for chunk in timed), default=None),
        machines=tuple(sorted({chunk.machine for chunk in history.chunks})),
        files=tuple(sorted({chunk.file for chunk in history.chunks} - {""})),
        chunks=len(history.chunks),
        origin=history.origin,
        pushed_s=history.pushed,
        current=ledger is None or history.model.fingerprint == ledger.fingerprint,
    )

"""Questions on histories. Asked as in `survey`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import scores
from submerge.aggregator.rows.presence import seen_from
from submerge.errors import UsageError
from submerge.history.knowledge import Learnt
from submerge.protocol.history import History
from submerge.protocol.machine import Now, PushHistory
from submerge_aggregator.questions.survey import Missing, group_of, newest_model

# Only a root holds all rows, and so what merges.


def learnt(node: AggregatorNode, now: Now, group: str) -> Learnt:
    """Return what a group has learnt; rows may be newer than the model, made at intervals."""
    model = newest_model(node, group)
    ledger, root = node.ledger(group), node.root(group)
    # A fleet's model is its own: of the group, and the root's incarnation.
    origin = group if root is None else f"{group} {root}"
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


MOST_PUSHED_BYTES = 64 << 20
"""Longest model file that a root takes: ten thousand chunks, and a scatter of 2,000 channels, are
less. It has to arrive within the time of a request, and a store reads it at each start."""


@dataclass(frozen=True, slots=True)
class HistoryView:
    """A history that a root merges beside its rows."""

    group: str
    name: str
    rows: int
    counts_for: float  # rows that it counts for now, after its cap and the half-life
    most_rows: float | None  # its cap; None without one
    left: float  # share of its weight that the half-life leaves at its age, from 0 to 1
    # times of its first and last row, seconds since 1970; None where rows have no times
    first_s: float | None
    last_s: float | None
    machines: tuple[str, ...]
    files: tuple[str, ...]
    chunks: int
    origin: str  # empty for files, else the fleet that it was saved from
    pushed_s: float
    current: bool  # of the schema that the group has now: others are kept, and in no model


@dataclass(frozen=True, slots=True)
class PushedView:
    history: HistoryView
    replaces: tuple[str, ...]  # names of the histories whose place it took
    learnt: int
    limits: bool
    half_life_s: float  # of the group; 0 if it does not forget


def histories(node: AggregatorNode, now: Now, group: str) -> list[HistoryView]:
    """Return the histories of a group, those that were pushed first at the top."""
    held = node.histories(group_of(node, group)).values()
    ordered = sorted(held, key=lambda each: (each.pushed, each.name))
    return [_view(node, now, group, each) for each in ordered]


def check_push(node: AggregatorNode, now: Now, order: PushHistory) -> tuple[History, float]:
    """Return a history as its group would take it, and the wall time."""
    group_of(node, order.group)
    return node.check_history(order, now), now.wall


def pushed(
    node: AggregatorNode, now: Now, order: PushHistory, before: frozenset[str]
) -> PushedView:
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

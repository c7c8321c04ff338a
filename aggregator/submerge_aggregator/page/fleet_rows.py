"""FleetRow: a node as the page lists it: in a word, how it is, and what there is to sort by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from submerge_aggregator.questions.views import NodeView, RowView, SealedView

State = Literal[
    "alarm", "silent", "banned", "quarantined", "stale", "far", "bounded", "paused",
    "learning", "armed", "sealed", "unwatched",
]  # fmt: skip
STATES: tuple[State, ...] = get_args(State)
"""How a node is, the worst first: an alarm is open; it was not heard for long; an operator refuses
it; its rows stay out of the model; its model has expired; it is far from the others; it counts for
less than it reports; it learns nothing; it has no limits yet; it has; its incarnations are over; it
raises no alarms."""

SILENT_S = 900.0
"""A node that was not heard for longer is silent: three reports are missing, unless a configuration
says otherwise."""


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A node, and the aggregators above it.

    under : Their names, from the one below the aggregator that is asked, with slashes between.
    holds : Every state that holds, the worst first: `state` is the first of them.
    open : Open alarms, of all nodes below an aggregator.
    nodes : Nodes below an aggregator that raise alarms; of a client 1, or 0.
    heard_s : When it was heard, Unix seconds.
    certified_until_s : 0 without a certificate.
    note : What is unusual about it, in words.
    """

    under: str
    node: str
    kind: str
    state: State
    holds: list[State]
    open: int
    nodes: int
    heard_s: float | None
    learnt: int
    withheld: int
    lost: int
    model: int
    software: str
    certified_until_s: float
    wanted: str
    note: str


def row_of(view: NodeView, under: str, at: float) -> FleetRow:
    """Return a node as a row.

    at : wall time at which the view was made
    """
    last = view.rows[0] if view.rows else None
    states = states_of(view)
    parts: list[RowView | SealedView] = [*view.rows, *view.sealed]
    watch = view.watch
    return FleetRow(
        under,
        view.node,
        view.kind or "",
        states[0] if states else "unwatched",
        states,
        0 if watch is None else watch.open,
        0 if watch is None else watch.nodes,
        None if last is None else round(at - last.silent_s, 1),
        sum(each.learnt for each in parts),
        sum(each.withheld for each in parts),
        sum(each.lost for each in parts),
        0 if last is None else last.model_version,
        "" if last is None else last.software,
        0.0 if last is None else last.certified_until_s,
        view.wanted,
        _note(view),
    )


def states_of(view: NodeView) -> list[State]:
    """Return how a node is: every state that holds, the worst first."""
    last, watch = (view.rows[0] if view.rows else None), view.watch
    found: set[State] = set()
    if watch is not None and watch.open:
        found.add("alarm")
    if last is not None and last.silent_s > SILENT_S and not last.final:
        found.add("silent")
    named: tuple[tuple[State, object], ...] = (
        ("banned", view.banned),
        ("quarantined", view.quarantined),
        ("far", view.outlier),
        ("bounded", view.bounded),
        ("paused", view.paused),
        ("sealed", last is None),
    )
    found |= {state for state, holds in named if holds}
    if watch is not None and view.kind == "client":
        found |= {state for state, nodes in watch.states.items() if nodes}
    elif watch is not None and any(watch.states.values()):
        found.add("armed" if watch.states.get("armed") else "learning")
    return sorted(found, key=STATES.index)


def _note(view: NodeView) -> str:
    said = []
    if view.quarantined:
        said.append(f"quarantined: {view.cause}")
    if view.outlier:
        said.append(f"far from the others: {view.outlier}")
    if view.bounded:
        said.append(view.bounded)
    if view.at_once:
        said.append(f"{view.at_once} machines run with its kit")
    if view.wanted:
        said.append(f"to {view.wanted}, not confirmed yet")
    if view.watch is not None and view.watch.waiting:
        said.append(view.watch.waiting)
    return "; ".join(said)

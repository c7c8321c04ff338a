"""Changes of nodes between two looks, a line each: for `submerge nodes --watch` into a file."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from submerge_files.console.printable import printable
from submerge_operate.fleet.nodes_table import state_words
from submerge_operate.fleet.watching import differences

if TYPE_CHECKING:
    from submerge_aggregator.questions.views import NodeView, RowView, SealedView


def changes(
    before: Sequence[NodeView] | None, after: Sequence[NodeView], *, as_json: bool
) -> list[str]:
    """Return a line for each node that is new, other than before, or gone; at first for all.

    That time has passed is no change.
    """
    views = {f"{each.group}/{each.node}": each for each in after}
    old = None if before is None else {f"{each.group}/{each.node}": _facts(each) for each in before}
    changed = differences(old, {name: _facts(each) for name, each in views.items()})
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return [
        _json(at, name, views.get(name)) if as_json else _text(at, name, facts)
        for name, facts in changed
    ]


def _facts(view: NodeView) -> dict[str, Any]:
    """Return what a line says of a node."""
    parts: list[RowView | SealedView] = [*view.rows, *view.sealed]
    return {
        "kind": view.kind or "-",
        "readings": sum(each.learnt for each in parts),
        "withheld": sum(each.withheld for each in parts),
        "lost": sum(each.lost for each in parts),
        "model": view.rows[0].model_version if view.rows else 0,
        "state": ", ".join(state_words(view)),
    }


def _text(at: str, name: str, facts: dict[str, Any] | None) -> str:
    if facts is None:
        return printable(f"{at} {name} gone")
    said = " ".join(f"{key}={value}" for key, value in facts.items() if key != "state")
    return printable(f"{at} {name} {said} {facts['state']}".rstrip())


def _json(at: str, name: str, view: NodeView | None) -> str:
    import msgspec

    if view is None:
        group, _, node = name.partition("/")
        return json.dumps({"at": at, "event": "gone", "group": group, "node": node})
    return json.dumps({"at": at, "event": "is"} | msgspec.to_builtins(view))

"""RowFloor: whether a group's rows may go out, in a model or an aggregator's own report.

Models and reports are states: the difference of two is what few nodes have learnt between them. In
a group of five nodes or more, one goes out only once five have learnt eight rows each since the one
before (docs/privacy.md). It is not kept on disk: the first one of a process goes out at once.
"""

from __future__ import annotations

import math
from collections import Counter

from submerge.aggregator.rollup import latest_row_per_node
from submerge.aggregator.rows.ledger import Ledger
from submerge.protocol.machine import Now

FEWEST_NODES, FEWEST_ROWS = 5, 8


class RowFloor:
    """What each node had learnt when rows went out last.

    always : Also in smaller groups, where all nodes are needed; None: not there; False: nowhere.
    silent_s : A node that was silent for longer is waited for no more.
    """

    def __init__(self, always: bool | None, silent_s: float) -> None:
        self._always, self._silent_s = always, silent_s
        self._before: Counter[str] | None = None

    def allows(self, ledger: Ledger, now: Now) -> bool:
        """Return whether the rows may go out as they are."""
        if self._always is False or self._before is None:
            return True
        learnt = ledger.counted.learnt_by_node()
        if any(learnt[node] < rows for node, rows in self._before.items()):
            return True  # a node has left the model, which is not to wait
        news = {node: rows for node in learnt if (rows := learnt[node] - self._before[node])}
        nodes = _clients_by_node(ledger, now, self._silent_s)
        needed = min(FEWEST_NODES, sum(nodes.values()))
        if not news or (needed < FEWEST_NODES and not self._always):
            return True
        # An aggregator that has so many nodes below it has a floor of its own.
        told: int = sum(min(nodes.get(node, 1), rows // FEWEST_ROWS) for node, rows in news.items())
        return told >= max(1, needed)

    def mark(self, ledger: Ledger) -> None:
        """Note that all rows go out now."""
        if self._always is not False:
            self._before = ledger.counted.learnt_by_node()


def _clients_by_node(ledger: Ledger, now: Now, silent_s: float) -> dict[str, int]:
    """Return how many clients that are not silent each child stands for."""
    counts = dict[str, int]()
    for (node, incarnation), row in latest_row_per_node(ledger):
        if now.steady - ledger.presence.heard[node, incarnation] > silent_s:
            continue
        census = row.report.census
        # By how long they are silent: powers of two seconds.
        most = 1 + max(0, math.frexp(max(silent_s, 1.0))[1] - 1)
        counts[node] = 1 if row.from_client or census is None else sum(census.ages[:most])
    return counts

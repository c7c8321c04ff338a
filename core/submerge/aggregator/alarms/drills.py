"""Drills: the newest answer of each node to a drill, in memory, and their way up.

A child answers for itself, an aggregator for nodes below it that do not report here themselves.
An answer of an earlier drill replaces none of a later one. Beyond the caps the oldest go first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from submerge.aggregator.rollup import latest_row_per_node
from submerge.aggregator.rows.ledger import Ledger
from submerge.drill.drill import FORM
from submerge.protocol.machine import Now
from submerge.protocol.messages import DrillReport, Reason

MOST_ANSWERS, MOST_BYTES = 4096, 8 << 20
"""Answers of one group that are held, and bytes of their channels."""

PATIENCE_S = 10.0  # after that, the parent's answer to what was passed on is no longer waited for


@dataclass(slots=True)
class DrillAnswers:
    """The newest answer of each of a group's nodes, the oldest arrival first."""

    by_node: dict[str, DrillReport] = field(default_factory=dict)
    _bytes: int = 0
    _waiting: dict[str, None] = field(default_factory=dict)
    _passed_at: float | None = None

    def take(self, report: DrillReport, ledger: Ledger | None) -> Reason:
        """Hold an answer, if its sender may give it; return whether it is held."""
        node, sender = report.node, report.stamp.node
        if ledger is None:
            return Reason.UNAVAILABLE
        if report.fingerprint != ledger.fingerprint:
            return Reason.SCHEMA
        direct = {name: row for (name, _), row in latest_row_per_node(ledger)}
        if sender not in direct:
            return Reason.UNAVAILABLE  # it reports first
        own = node == sender
        if own != direct[sender].from_client or (not own and node in direct):
            return Reason.DENIED
        held = self.by_node.get(node)
        if held is not None and held.stamp.node == sender and held.number > report.number:
            return Reason.STALE
        if ledger.schema.width % (len(report.channels) // FORM.itemsize):
            return Reason.INVALID  # its rows are all channels, as often as there are lags
        self._drop(node)
        self.by_node[node] = report
        self._waiting[node] = None
        self._bytes += len(report.channels)
        while len(self.by_node) > MOST_ANSWERS or self._bytes > MOST_BYTES:
            self._drop(next(iter(self.by_node)))
        return Reason.ACK

    def next_up(self, now: Now, *, answered: bool) -> DrillReport | None:
        """Return the next answer to pass on: one at a time, the next once one is answered."""
        if answered:
            self._passed_at = None
        waits = self._passed_at is not None and now.steady < self._passed_at + PATIENCE_S
        if waits or not self._waiting:
            return None
        node = next(iter(self._waiting))
        del self._waiting[node]
        self._passed_at = now.steady
        return self.by_node[node]

    def _drop(self, node: str) -> None:
        held = self.by_node.pop(node, None)
        self._waiting.pop(node, None)
        self._bytes -= 0 if held is None else len(held.channels)

"""Quarantine: which nodes of a group are kept out of the model, and why (docs/protocol.md, 5).

An aggregator is never quarantined for a contradiction: its store may be a backup. A client's
first equivocation may be chance: our own software may change a digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from submerge.protocol.machine import Now
from submerge.protocol.messages import Reason, Report

Cause = Literal["operator", "shrunk", "equivocated twice", "unreadable"]
"""An operator's order; an incarnation that reports less than before; two pairs of reports with one
number each; rows with which no node could read the model (`self_check`): an aggregator's, too."""

AGAIN_S = 3600.0  # a second equivocation counts only within this time of the first

SLIPS, MOST_QUARANTINED = 256, 1024
"""Most nodes of a group that are remembered to have equivocated; most that are quarantined without
an order."""


class QuarantineEntry(NamedTuple):
    """Why a node is kept out of the model, and since when (wall time; 0: unknown)."""

    cause: Cause
    since: float


class Slip(NamedTuple):
    """When a node equivocated last (wall time, for people), and the digest of that report."""

    at: float
    digest: bytes


class Quarantine:
    """Nodes of one group that are quarantined, or have equivocated once (`slips`)."""

    def __init__(self) -> None:
        self.quarantined: Mapping[str, QuarantineEntry] = {}
        self.slips: Mapping[str, Slip] = {}
        self._slipped: dict[str, float] = {}  # on the steady clock

    def load(
        self, quarantined: Mapping[str, QuarantineEntry], slips: Mapping[str, Slip], now: Now
    ) -> None:
        """Load a store's records; slips count from now, because the downtime is unknown."""
        self.quarantined, self.slips = quarantined, slips
        self._slipped = dict.fromkeys(slips, now.steady)

    @property
    def full(self) -> bool:
        """Whether the most nodes that may be are quarantined without an order."""
        return (
            sum(each.cause != "operator" for each in self.quarantined.values()) >= MOST_QUARANTINED
        )

    def judge_refused(self, report: Report, why: Reason, digest: bytes, now: Now) -> Cause | None:
        node = report.stamp.node
        if report.fence or node in self.quarantined:
            return None
        if why is Reason.SHRUNK:
            return "shrunk"
        if why is Reason.EQUIVOCATION and self._again(node, digest, now):
            return "equivocated twice"
        return None

    def put_in_quarantine(self, node: str, cause: Cause, now: Now) -> None:
        """Quarantine a node; one that is quarantined already keeps its first cause."""
        if node not in self.quarantined:
            self.quarantined = {**self.quarantined, node: QuarantineEntry(cause, now.wall)}
            self._forget(node)

    def release(self, node: str) -> None:
        self.quarantined = {name: each for name, each in self.quarantined.items() if name != node}
        self._forget(node)

    def tidy(self, now: Now) -> None:
        for node in [n for n, at in self._slipped.items() if now.steady - at > AGAIN_S]:
            self._forget(node)

    def _again(self, node: str, digest: bytes, now: Now) -> bool:
        """Return whether it is the second time within the hour; remember it if not."""
        self.tidy(now)
        last = self.slips.get(node)
        if last is not None:
            return last.digest != digest
        while len(self.slips) >= SLIPS:
            self._forget(min(self._slipped, key=lambda name: self._slipped[name]))
        self.slips = {**self.slips, node: Slip(now.wall, digest)}
        self._slipped[node] = now.steady
        return False

    def _forget(self, node: str) -> None:
        if node in self.slips:
            self.slips = {name: slip for name, slip in self.slips.items() if name != node}
            del self._slipped[node]

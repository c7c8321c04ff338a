"""Suspicion: which nodes of a group are kept out of the model, and why.

A client's life says ever more, and never two things under one number: a restart begins another
life, and a card that is copied or restored brings back only what was said. So a life that
contradicts itself is run by two processes, a machine that was restored with its memory, or a
liar's. It is set apart, as an operator may set any node apart: its rows are kept and taken, and
no model is made of them, until somebody has looked.

Never an aggregator: its rows may shrink, its store may be a backup, and a whole site is below
it. Once is chance where two reports share a number: a digest may change with our own software.
The same report again is no second time: brokers say things twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from submerge.protocol.machine import Now
from submerge.protocol.messages import Reason, Report

Cause = Literal["operator", "shrunk", "equivocated twice"]
"""An operator said so; a life said less than before; two reports with one number, twice."""

AGAIN_S = 3600.0
"""Two equivocations within this time are a second one."""

SLIPS, MOST_QUARANTINED = 256, 1024
"""Nodes of a group that are remembered to have equivocated; that are set apart unasked."""


class QuarantineEntry(NamedTuple):
    """Why a node is kept out of the model, and since when (wall time; 0: nobody knows)."""

    cause: Cause
    since: float


class Slip(NamedTuple):
    """When a node has equivocated last (wall time, for people), and the digest of what it said."""

    at: float
    said: bytes


class Quarantine:
    """Nodes of one group that are set apart, or were contradicted once.

    Attributes
    ----------
    apart : mapping of str to Apart
    slips : mapping of str to Slip
        Both are replaced, never changed: they are what a store keeps.
    """

    def __init__(self) -> None:
        self.quarantined: Mapping[str, QuarantineEntry] = {}
        self.slips: Mapping[str, Slip] = {}
        self._slipped: dict[str, float] = {}  # on the steady clock

    def load(
        self, quarantined: Mapping[str, QuarantineEntry], slips: Mapping[str, Slip], now: Now
    ) -> None:
        """Take up what a store holds; slips count from now: who knows how long it was away."""
        self.quarantined, self.slips = quarantined, slips
        self._slipped = dict.fromkeys(slips, now.steady)

    @property
    def full(self) -> bool:
        """Whether so many are set apart unasked that no more can be."""
        return (
            sum(each.cause != "operator" for each in self.quarantined.values()) >= MOST_QUARANTINED
        )

    def hears(self, report: Report, why: Reason, said: bytes, now: Now) -> Cause | None:
        """Judge by a report that was refused; return a cause to set its node apart.

        said : its digest
        """
        node = report.stamp.node
        if report.fence or node in self.quarantined:
            return None
        if why is Reason.SHRUNK:
            return "shrunk"
        if why is Reason.EQUIVOCATION and self._again(node, said, now):
            return "equivocated twice"
        return None

    def put_in_quarantine(self, node: str, cause: Cause, now: Now) -> None:
        """Keep a node out; if it is out already, it stays so for the first cause."""
        if node not in self.quarantined:
            self.quarantined = {**self.quarantined, node: QuarantineEntry(cause, now.wall)}
            self._forget(node)

    def release(self, node: str) -> None:
        """Let a node in again, and hold nothing against it."""
        self.quarantined = {name: each for name, each in self.quarantined.items() if name != node}
        self._forget(node)

    def tidy(self, now: Now) -> None:
        """Forget what was long ago."""
        for node in [n for n, at in self._slipped.items() if now.steady - at > AGAIN_S]:
            self._forget(node)

    def _again(self, node: str, said: bytes, now: Now) -> bool:
        """Whether it is the second time within the hour; remember it if not."""
        self.tidy(now)
        last = self.slips.get(node)
        if last is not None:
            return last.said != said
        while len(self.slips) >= SLIPS:
            self._forget(min(self._slipped, key=lambda name: self._slipped[name]))
        self.slips = {**self.slips, node: Slip(now.wall, said)}
        self._slipped[node] = now.steady
        return False

    def _forget(self, node: str) -> None:
        if node in self.slips:
            self.slips = {name: slip for name, slip in self.slips.items() if name != node}
            del self._slipped[node]

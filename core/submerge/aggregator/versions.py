"""Which model versions that children use are believed.

A root makes each version higher than every version in use below, because no child takes a lower
one: the clock of an earlier root may have run years ahead, and its store may be lost. A report that
is forged must not push the version towards the last number that there is. So one node is believed
up to a century ahead of our clock. From there on the version still rises by one a model, and the
clock by far more, so that a root that loses its store again believes what is in use then. A higher
version is believed if `SEVERAL` nodes use it or a higher one.

Each aggregator applies this rule before it passes a version on: it speaks for many nodes and counts
as one.
"""

from __future__ import annotations

from submerge.aggregator.ledger import Ledger
from submerge.protocol.machine import Now
from submerge.protocol.messages import BELIEVED

AHEAD_MS = 100 * 365 * 86_400_000
"""How far ahead of our clock one node is believed: further than any wrong clock that is known of.
A counter of seconds in 32 bits ends in 2106."""

SEVERAL = 3
"""Nodes that are believed together: one key does not speak for so many."""


def newest_version(ledger: Ledger, now: Now, *, own: int) -> int:
    """Return the highest model version in use below that is believed; 0 without any.

    own : the highest that this aggregator has made or received
    """
    claims: dict[str, int] = {}
    for row in ledger.current():
        node, version = row.report.stamp.node, row.report.version
        if version <= BELIEVED:
            claims[node] = max(version, claims.get(node, 0))
    highest = sorted(claims.values(), reverse=True)
    shared = highest[SEVERAL - 1] if len(highest) >= SEVERAL else 0
    most = max(own, now.wall_ms + AHEAD_MS, shared)
    return max((version for version in highest if version <= most), default=0)

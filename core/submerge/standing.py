"""Standing: how well the nodes below are heard, and how odd their readings are.

Facts about a group that every report and every model carries. Silence is counted in
powers of two of a second: bins can be shifted by the time that a report was on its way,
and added, at the price of rounding up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from submerge.ledger import Ledger
from submerge.limits import merged, quantile
from submerge.messages import BELIEVED, Census, Incarnation, Scores
from submerge.oddness import Limits
from submerge.pool import Row
from submerge.steps import Now

SHARES = (0.5, 0.95, 0.99, 0.999)
"""Limits in a model: scores that these shares of recent readings stayed below. The first is no
limit, but says where the middle is."""

BINS = 30
"""2^30 s of silence are 34 years."""


def census(ledger: Ledger, now: Now) -> Census:
    """Count clients by silence, here and below."""
    bins = [0] * BINS
    nodes = 0
    for (node, incarnation), row in _spokesmen(ledger):
        silence = max(0.0, now.steady - ledger.heard[node, incarnation])
        if row.from_client:
            nodes += 1
            bins[_bin(silence)] += 1
        elif row.report.census is not None:
            nodes += row.report.census.nodes
            for i, count in enumerate(row.report.census.ages):
                # The middle of its bin, and the time since it was told.
                bins[_bin(1.5 * 2.0**i + silence)] += count
    while bins and not bins[-1]:
        bins.pop()
    return Census(nodes, tuple(bins))


def staleness(counted: Census) -> tuple[float, float, float]:
    """Return the silence that half, 99 % and all of the clients stay below, in seconds."""
    return (_age(counted, 0.5), _age(counted, 0.99), _age(counted, 1.0))


def scores(ledger: Ledger) -> Scores | None:
    """Merge what the rows say of their scores."""
    told = [row.report.scores for row in ledger.current() if row.report.scores is not None]
    if not told:
        return None
    # A linear group has none, whatever a child makes of it.
    linear = [each.linear for each in told if each.linear is not None and not ledger.schema.linear]
    return Scores(
        merged(*(each.spe for each in told)),
        merged(*(each.t2 for each in told)),
        merged(*linear) if linear else None,
    )


def limits(told: Scores | None) -> Limits | None:
    """Return the measured limits; None before the first score."""
    if told is None or not told.spe.n or not told.t2.n:
        return None
    linear = told.linear if told.linear is not None and told.linear.n else None
    return Limits(
        SHARES,
        tuple(quantile(told.spe, share) for share in SHARES),
        tuple(quantile(told.t2, share) for share in SHARES),
        told.spe.n,
        () if linear is None else tuple(quantile(linear, share) for share in SHARES),
    )


def newest_version(ledger: Ledger) -> int:
    """Return the highest model version that anyone below uses, and that can be true."""
    versions = (row.report.version for row in ledger.current())
    return max((version for version in versions if version <= BELIEVED), default=0)


def _spokesmen(ledger: Ledger) -> Iterable[tuple[tuple[str, Incarnation], Row]]:
    """The row of each node that was heard last: it speaks for the node's others."""
    newest: dict[str, tuple[float, tuple[str, Incarnation]]] = {}
    for key in ledger.rows:
        heard = ledger.heard[key]
        if key[0] not in newest or heard >= newest[key[0]][0]:
            newest[key[0]] = heard, key
    return [(key, ledger.rows[key]) for _, key in newest.values()]


def _bin(seconds: float) -> int:
    return min(BINS - 1, max(0, math.frexp(max(seconds, 1.0))[1] - 1))


def _age(counted: Census, share: float) -> float:
    total, seen = sum(counted.ages), 0
    for i, count in enumerate(counted.ages):
        seen += count
        if seen >= share * total and seen:
            return 2.0 ** (i + 1)
    return 0.0

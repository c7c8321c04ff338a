"""AlarmLimits: the limit of each statistic, from the block maxima of the group's hours.

The k-of-m statistic of a row is the k-th largest of the last m scores (`settings.after` of
`settings.of`); the maximum of an hour is the largest of them (`stats.block_maxima`). Let this node
allow r false alarms a second and monitor K statistics, and let an hour have the length h. The
limit of each statistic is then exceeded in a share

    q = min(r h / K, 1/2)

of the group's hours. It is counted while there are enough hours, and beyond them read off a
generalized Pareto tail that is fitted to the highest maxima. By the union bound the K limits
together are exceeded in at most a share r h of the hours, however the statistics depend on one
another.

References
----------
Coles, An Introduction to Statistical Modeling of Extreme Values (Springer 2001), chapters 3 and 4:
block maxima, and the generalized Pareto tail over a threshold. Hosking and Wallis, Parameter and
quantile estimation for the generalized Pareto distribution, Technometrics 29 (1987): how it is
fitted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import (
    HOUR_S,
    KINDS,
    LEAST_TAIL,
    REACH,
    BlockMaxima,
    By,
    enough,
    limit,
)
from submerge.stats.quantile_sketch import QuantileSketch, quantile

YOUNG = 2.0
"""Factor of limits while a node's own mean comes from one moment: about a mean that is a row drawn
like any other, rows vary twice as much."""

LARGEST_SHARE = 0.5
"""Largest share of hours in which a limit may be exceeded."""

MATURE = ("t2", "channel")
"""Statistics that are not monitored before the node's own mean has seen a day."""


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """What is remembered of hours.

    windows, hours : as in `BlockMaximaTally`
    spared : accepted scores over their limits, by statistic; 1 for one that is not there
    watched_s, allowed : as in `AlarmStatus`
    """

    windows: Mapping[By, tuple[QuantileSketch, QuantileSketch]] = field(default_factory=dict)
    hours: int = 0
    spared: Mapping[By, float] = field(default_factory=dict)
    watched_s: float = 0.0
    allowed: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class AlarmLimits:
    """The limits of one node.

    Attributes
    ----------
    known : mapping of kind to float
        The limit of each statistic; empty while none is known.
    ordinary : mapping of kind to float
        The median of the maxima of the group's hours.
    armed_in_s : float
        As in `AlarmStatus`.
    """

    known: Mapping[By, float] = field(default_factory=dict)
    ordinary: Mapping[By, float] = field(default_factory=dict)
    armed_in_s: float = -1.0

    @classmethod
    def of(cls, maxima: BlockMaxima | None, settings: AlarmSettings) -> AlarmLimits:
        """Return the limits by a group's maxima, at the rate of false alarms that a node allows."""
        kinds = [kind for kind in KINDS if maxima is not None and maxima.of(kind).n]
        if maxima is None or not kinds:
            return cls()
        share = min(settings.at_most_per_s * hour_length_s(settings) / len(kinds), LARGEST_SHARE)
        missing_s = _missing_s(maxima, share, settings)
        if missing_s > 0:
            return cls(armed_in_s=missing_s)
        # A statistic that was measured for less time gets its limit later.
        kinds = [kind for kind in kinds if enough(maxima.of(kind), share)]
        return cls(
            {kind: limit(maxima.of(kind), share) for kind in kinds},
            {kind: quantile(maxima.of(kind), 0.5) for kind in kinds},
            missing_s,
        )

    def limit(self, kind: By, spared: Mapping[By, float], *, settled: bool) -> float:
        """Return the limit of a k-of-m statistic now; infinite if it is not monitored.

        spared : as in `Hours`
        settled : whether the node's own mean has seen a day
        """
        if not settled and kind in MATURE:
            return math.inf
        most = self.known.get(kind, math.inf) * spared.get(kind, 1.0)
        return most if settled else YOUNG * most

    def calm(self, kind: By) -> float:
        """Return the share of its limit that a statistic has to stay below for an alarm to end.

        Halfway between the limit and the median hour: scores of many directions come close to
        their limit all the time, and those of few seldom.
        """
        most = self.known.get(kind, 0.0)
        return (1 + min(self.ordinary[kind] / most, 1.0)) / 2 if most > 0 else 1.0


def hour_rows(settings: AlarmSettings) -> int:
    """Return the rows of an hour; 0 where hours go by the clock."""
    period_s = settings.period_s
    return max(1, round(HOUR_S / period_s)) if period_s else 0


def hour_length_s(settings: AlarmSettings) -> float:
    """Return the length of an hour: a whole number of rows, if rows have a period."""
    rows = hour_rows(settings)
    return rows * settings.period_s if rows else HOUR_S


def _missing_s(maxima: BlockMaxima, share: float, settings: AlarmSettings) -> float:
    """Return the time until a limit is known, at the present pace."""
    hours, n = max(maxima.longest, 1), max(maxima.spe.n, 1)
    wanted = max(2 * LEAST_TAIL, math.ceil(1 / (share * REACH)))
    length_s = hour_length_s(settings)
    settle = settings.settle_s / length_s
    return max(0.0, max(settle - hours, (wanted - n) / (n / hours)) * length_s)

"""AlarmLimits: what a level may come to before there is an alarm, as the group's hours say.

The level of a row is the k-th largest of the last m scores (`settings.after` of `settings.of`);
the peak of an hour is its highest level (`stats.block_maxima`). With a rate r of false alarms
that this node allows, K statistics that are watched, and hours of length h, the limit of each
statistic is what a share

    q = min(r h / K, 1/2)

of the group's hours passes: counted where there are hours enough, and beyond them read off a
generalized Pareto tail that is fitted to the highest peaks. By the union bound the K limits are
passed in a share r h of the hours together, whatever the statistics have to do with one another.

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
"""What limits are worth while a node's own mean is of one moment: about a mean that is a row drawn
like any other, rows vary twice as much."""

LARGEST_SHARE = 0.5
"""Of hours that a limit may be passed in: a node that allows more does not want alarms."""

MATURE = ("t2", "channel")
"""Statistics that are not watched before the node's own mean has seen a day."""


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """What is remembered of hours.

    windows, hours : as in `PeakTally`
    spared : over its limit, what accepted scores may come to; what is not there may not
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
        The limit of each statistic; empty while none is believed.
    ordinary : mapping of kind to float
        What half of the group's hours stay below.
    armed_in_s : float
        As in `AlarmStatus`.
    """

    known: Mapping[By, float] = field(default_factory=dict)
    ordinary: Mapping[By, float] = field(default_factory=dict)
    armed_in_s: float = -1.0

    @classmethod
    def of(cls, maxima: BlockMaxima | None, settings: AlarmSettings) -> AlarmLimits:
        """Return the limits that a group's peaks ask for, at the rate that a node allows."""
        kinds = [kind for kind in KINDS if maxima is not None and maxima.of(kind).n]
        if maxima is None or not kinds:
            return cls()
        share = min(settings.at_most_per_s * hour_length_s(settings) / len(kinds), LARGEST_SHARE)
        missing_s = _missing_s(maxima, share, settings)
        if missing_s > 0:
            return cls(armed_in_s=missing_s)
        # One statistic may have been measured for less long than others: it joins when it is known.
        kinds = [kind for kind in kinds if enough(maxima.of(kind), share)]
        return cls(
            {kind: limit(maxima.of(kind), share) for kind in kinds},
            {kind: quantile(maxima.of(kind), 0.5) for kind in kinds},
            missing_s,
        )

    def limit(self, kind: By, spared: Mapping[By, float], *, settled: bool) -> float:
        """Return what levels of a statistic may come to; infinite if it is not watched.

        spared : as in `Hours`
        settled : whether the node's own mean has seen a day
        """
        if not settled and kind in MATURE:
            return math.inf
        most = self.known.get(kind, math.inf) * spared.get(kind, 1.0)
        return most if settled else YOUNG * most

    def calm(self, kind: By) -> float:
        """Return what share of its limit a level has to stay below for an alarm to be over.

        Half-way between the limit and an ordinary hour: scores of many directions come close to
        their limit all the time, and those of few seldom.
        """
        most = self.known.get(kind, 0.0)
        return (1 + min(self.ordinary[kind] / most, 1.0)) / 2 if most > 0 else 1.0


def hour_rows(settings: AlarmSettings) -> int:
    """Return the rows of an hour; 0 where hours go by the clock."""
    period_s = settings.period_s
    return max(1, round(HOUR_S / period_s)) if period_s else 0


def hour_length_s(settings: AlarmSettings) -> float:
    """Return how long an hour is: a whole number of rows, where these have a period."""
    rows = hour_rows(settings)
    return rows * settings.period_s if rows else HOUR_S


def _missing_s(maxima: BlockMaxima, share: float, settings: AlarmSettings) -> float:
    """Return how long it takes until a limit is known, if all goes on as it has."""
    hours, n = max(maxima.longest, 1), max(maxima.spe.n, 1)
    wanted = max(2 * LEAST_TAIL, math.ceil(1 / (share * REACH)))
    length_s = hour_length_s(settings)
    settle = settings.settle_s / length_s
    return max(0.0, max(settle - hours, (wanted - n) / (n / hours)) * length_s)

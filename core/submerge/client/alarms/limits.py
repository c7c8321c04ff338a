"""AlarmLimits: the limit of each statistic, from the block maxima of the group.

The maximum of a block is the largest k-of-m statistic of its rows (`stats.block_maxima`). Let this
node allow r false alarms a second and monitor K statistics, and let a block have the length h. The
limit of each statistic is then exceeded in a share

    q = min(r h / K', 1/2)

of the group's blocks. It is counted while there are enough blocks, and beyond them read off a
generalized Pareto tail fitted to the highest maxima (Coles, An Introduction to Statistical Modeling
of Extreme Values, 2001, chapters 3 and 4; Hosking and Wallis, Technometrics 29, 1987). K' =
`independent(K)` statistics would exceed their limits as often as these K, which are dependent.

Until blocks are enough, limits are *provisional*: of the smallest share that the maxima support,
1/2 in n of n (docs/decisions/0035).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_length import block_length_s
from submerge.stats.block_maxima import (
    LEAST_TAIL,
    LONG_REACH,
    NONE,
    REACH,
    WINDOW_S,
    BlockMaxima,
    above,
    drawn,
    enough,
    independent,
    is_counted,
)
from submerge.stats.quantile_sketch import quantile
from submerge.stats.statistic import STATISTICS, By, raised_by

YOUNG = 2.0
"""Factor of limits while a node's own mean comes from one moment: about a mean that is a row drawn
like any other, rows vary twice as much."""

LARGEST_SHARE = 0.5
"""Largest share of blocks in which a limit may be exceeded."""

PROVISIONAL = 0.5
"""How many of all maxima a provisional limit is exceeded by."""


@dataclass(frozen=True, slots=True, eq=False)
class AlarmLimits:
    """The limits of one node: of each known statistic, with the median of the group's maxima."""

    known: Mapping[By, float] = field(default_factory=dict)
    ordinary: Mapping[By, float] = field(default_factory=dict)
    armed_in_s: float = -1.0
    provisional_s: float = 0.0  # mean time between two false alarms; 0 if they are promised
    of_node: bool = False  # of its own rows
    nodes: float = 0.0  # that have measured the group's maxima, on average
    needed_s: float = 0.0  # blocks that promised limits need, in all
    counted: bool = False  # not extrapolated

    @classmethod
    def of(
        cls,
        maxima: BlockMaxima | None,
        settings: AlarmSettings,
        among: tuple[By, ...] = raised_by(factors=False),
        row_s: float = 0.0,
        held: Collection[By] = (),
        own: BlockMaxima | None = None,
    ) -> AlarmLimits:
        """Return the limits by a group's maxima, at the rate of false alarms that a node allows.

        among, held : Kinds that get limits; those that keep promised ones by half of their maxima.
        row_s : What a row stands for; 0 while it is not known.
        """
        kinds = [kind for kind in among if maxima is not None and maxima.of(kind).n]
        often = settings.often_per_s(row_s)
        # A group of earlier nodes has maxima of single channels alone: that is no watch.
        first = next((kind for kind in among if STATISTICS[kind].overall), None)
        if first is None or not often:
            return cls()
        block_s = block_length_s((maxima or NONE).block_s, settings.period_s)
        if maxima is None or first not in kinds:
            share = min(often * block_s / independent(len(among)), LARGEST_SHARE)
            return cls(armed_in_s=_missing_s(NONE, 0, share * REACH, settings, block_s))
        worth = independent(len(kinds))
        share = min(often * block_s / worth, LARGEST_SHARE)
        reach = {kind: LONG_REACH if kind in held else REACH for kind in kinds}
        missing_s = _missing_s(maxima, maxima.of(first).n, share * reach[first], settings, block_s)
        provisional_s, needed_s = 0.0, block_s / (share * REACH)
        if missing_s > 0:
            kinds = [kind for kind in kinds if maxima.of(kind).n >= 2 * LEAST_TAIL]
            if not kinds:
                return cls(armed_in_s=missing_s)
            fewest = min(maxima.of(kind).n for kind in kinds)
            share = max(share, PROVISIONAL / fewest)
            provisional_s = block_s / (share * independent(len(kinds)))
        # A statistic that was measured for less time gets its limit later.
        kinds = [kind for kind in kinds if enough(maxima.of(kind), share, reach[kind])]
        return cls(
            {
                kind: drawn(maxima.of(kind), (own or NONE).of(kind), share, reach[kind])
                for kind in kinds
            },
            {kind: quantile(maxima.of(kind), 0.5) for kind in kinds},
            missing_s,
            provisional_s,
            nodes=maxima.of(first).n / _measured(maxima, block_s),
            needed_s=needed_s,
            counted=all(is_counted(maxima.of(kind), share) for kind in kinds),
        )

    def times(self, factor: float) -> AlarmLimits:
        if factor == 1:
            return self
        return replace(self, known={kind: factor * each for kind, each in self.known.items()})

    @property
    def promised(self) -> bool:
        """Whether limits are known, and keep the promised rate."""
        return bool(self.known) and not self.provisional_s

    def enough_s(self, block_s: float) -> float:
        """Return the time in which the group has enough blocks of a length for promised limits."""
        of_all_s = max(self.needed_s, 2 * LEAST_TAIL * block_s)
        return of_all_s / self.nodes if self.nodes else math.inf

    def limit(self, kind: By, spared: Mapping[By, float], *, settled: bool) -> float:
        """Return the limit of a statistic, spared scores aside; infinite if not monitored."""
        settled |= self.of_node
        if not settled and STATISTICS[kind].mature:
            return math.inf
        most = self.known.get(kind, math.inf) * spared.get(kind, 1.0)
        return most if settled else YOUNG * most

    def calm(self, kind: By) -> float:
        """Return the share of its limit that a statistic has to stay below for an alarm to end."""
        # Halfway between the limit and the median block: scores of many directions come close to
        # their limit all the time, and those of few seldom.
        most = self.known.get(kind, 0.0)
        return (1 + min(self.ordinary[kind] / most, 1.0)) / 2 if most > 0 else 1.0


class OtherRate(NamedTuple):
    """What another rate of false alarms would do to the limits of a node or a group."""

    factors: Mapping[By, float]  # of each limit
    more: float  # blocks that would exceed a limit and do not now, fewer if negative
    span_s: float  # time of all blocks


def other_rate(
    maxima: BlockMaxima | None,
    settings: AlarmSettings,
    per_s: float,
    kinds: tuple[By, ...],
    own: BlockMaxima | None = None,
) -> OtherRate | None:
    """Return what limits would be at another rate; None unless they keep their promise at both."""
    settings = replace(settings, settle_s=1e-9)  # that is over
    then = replace(settings, at_most_per_s=per_s)
    now, new = (AlarmLimits.of(maxima, each, kinds, own=own) for each in (settings, then))
    if maxima is None or not (now.promised and new.promised):
        return None
    both = [kind for kind in now.known if kind in new.known]
    over = [
        above(maxima.of(kind), new.known[kind]) - above(maxima.of(kind), now.known[kind])
        for kind in both
    ]
    return OtherRate(
        {kind: new.known[kind] / now.known[kind] for kind in both},
        sum(over) * independent(len(both)) / len(both),
        maxima.span_s,
    )


def _missing_s(
    maxima: BlockMaxima, n: int, rarest: float, settings: AlarmSettings, block_s: float
) -> float:
    """Return the time until a limit is known, when n maxima are to be one over `rarest`."""
    blocks = max(maxima.longest, 1)
    wanted = max(2 * LEAST_TAIL, math.ceil(1 / rarest))
    # Before any maximum, as many as one node makes.
    settle, pace = settings.settle_s / block_s, n / _measured(maxima, block_s) or 1.0
    return max(0.0, max(settle - blocks, (wanted - n) / pace) * block_s)


def _measured(maxima: BlockMaxima, block_s: float) -> float:
    """Return how many blocks one node can have maxima of: none has those of earlier ones."""
    return min(max(maxima.longest, 1), 2 * WINDOW_S / block_s)

"""HighestSoFar: provisional limits from a node's own rows, before its group has any.

Of n rows drawn alike, the next is higher than all before with probability 1 / n (Chandler, Journal
of the Royal Statistical Society B 14, 1952). So one kind of statistic exceeds the highest value h
that it has had about once in n rows, and K kinds do so `independent(K)` times as often. Beyond h an
exponential tail is assumed: from the mean m to h it fell by a factor of n / a, for a successive
statistics are of the same rows (`Statistic.alike`). It falls by another factor of `FURTHER` to

    h + (h - m) log(FURTHER) / log(n / a)

Tails of sums of squares fall faster, and the limit errs on the high side. A model of few rows
scores some rows far too high: whenever it has twice the rows, those before it had half of them are
forgotten (`aged`).

An alarm that ends counts as high as its limit: a fault makes no other normal, and a limit that is
too low grows alarm by alarm (docs/alarms-explained.md, "Provisional alarms"). Rows about a mean
that has not seen a day are compared with each other: no factor for a young mean is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from submerge._linalg import Array
from submerge.client.alarms.blocks import larger
from submerge.client.alarms.limits import AlarmLimits
from submerge.stats.block_maxima import independent
from submerge.stats.statistic import STATISTICS, By

LEAST_ROWS = 64
"""Rows from which the highest value is a limit."""

FURTHER = 3.0
"""How much rarer a limit is exceeded than the highest value: a third of all rows that a single
machine has read, with those before its first model, is then within a hundred rows of that model."""

OLD_ENOUGH = 0.75
"""Share of the rows of the oldest statistic from which another has a limit, too: the rate that is
stated must not rise when a statistic is new."""


@dataclass(frozen=True, slots=True, eq=False)
class HighestSoFar:
    """The highest of each k-of-m statistic of so many rows, and the mean score."""

    rows: Mapping[By, int] = field(default_factory=dict)
    values: Mapping[By, float] = field(default_factory=dict)
    # Half of the k-of-m statistics are below it, or more.
    means: Mapping[By, float] = field(default_factory=dict)
    newest: HighestSoFar | None = None  # of the rows since it was last aged

    @classmethod
    def pooled(cls, parts: Iterable[HighestSoFar]) -> HighestSoFar:
        rows, values, means = dict[By, int](), dict[By, float](), dict[By, float]()
        for part in parts:
            for kind, n in part.rows.items():
                rows[kind] = rows.get(kind, 0) + n
                values[kind] = max(values.get(kind, 0.0), part.values.get(kind, 0.0))
                mean = means.get(kind, 0.0)
                means[kind] = mean + (part.means[kind] - mean) * n / rows[kind]
        return cls(rows, values, means)

    def after(self, scores: Mapping[By, Array], statistics: Array | None) -> HighestSoFar:
        """Return it after n more scores of each kind; without statistics (kinds, n), no highest."""
        rows, means = dict[By, int](), dict[By, float]()
        newest = None if self.newest is None else self.newest.after(scores, statistics)
        for kind, each in scores.items():
            rows[kind] = self.rows.get(kind, 0) + len(each)
            mean = self.means.get(kind, 0.0)
            means[kind] = mean + (float(each.mean()) - mean) * len(each) / rows[kind]
        if statistics is None:
            return replace(self, rows=rows, means=means, newest=newest)
        new = zip(scores, statistics.max(axis=1).tolist(), strict=True)
        values = {kind: max(value, self.values.get(kind, 0.0)) for kind, value in new}
        return HighestSoFar(rows, values, means, newest)

    def at_least(self, values: Mapping[By, float]) -> HighestSoFar:
        if not values:
            return self
        newest = None if self.newest is None else self.newest.at_least(values)
        return replace(self, values=larger(self.values, values), newest=newest)

    @property
    def counted(self) -> int:
        """Of how many rows it is, by the oldest kind."""
        return max(self.rows.values(), default=0)

    def aged(self) -> HighestSoFar:
        """Return it without the rows of before it was last aged, if there are enough since."""
        newest = self.newest or self
        return replace(newest, newest=HighestSoFar()) if newest.counted >= LEAST_ROWS else self

    def least_news(self, kind: By) -> float:
        """Return what a statistic has to exceed to be the highest; -1 if any may."""
        return (self.newest or self).values.get(kind, -1.0)

    def over(self, limits: AlarmLimits, row_s: float) -> AlarmLimits:
        """Return limits by the highest values, if they are rarer exceeded than those given."""
        least = max(LEAST_ROWS, OLD_ENOUGH * self.counted)
        rows = {kind: n for kind, n in self.rows.items() if n >= least}
        if limits.promised or not rows or not row_s:
            return limits
        often = independent(len(rows)) * sum(1 / n for n in rows.values()) / len(rows)
        provisional_s = FURTHER * row_s / often
        if limits.known and limits.provisional_s >= provisional_s and not limits.of_node:
            return limits
        known = {kind: self._limit(kind) for kind in rows}
        ordinary = {kind: min(self.means[kind], value) for kind, value in known.items()}
        return AlarmLimits(known, ordinary, limits.armed_in_s, provisional_s, of_node=True)

    def _limit(self, kind: By) -> float:
        """Return the limit of one kind, beyond its highest value."""
        value, mean = self.values.get(kind, 0.0), self.means[kind]
        beyond = math.log(FURTHER) / math.log(self.rows[kind] / STATISTICS[kind].alike)
        return value + max(value - mean, 0.0) * beyond

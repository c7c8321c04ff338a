"""Promise: the limits of one node, and what became of what was promised by them.

The group's peaks say what a limit has to be for this node's own rate of false alarms; this
node's hours say how long was watched, and are its part of the group's peaks. Promised and
realised stand side by side: an alarm that no person has called a fault counts as false.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from submerge._linalg import Array
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import (
    HOUR_S,
    KINDS,
    LEAST_TAIL,
    REACH,
    BlockMaxima,
    BlockMaximaTally,
    By,
    enough,
    limit,
)
from submerge.stats.quantile_sketch import QuantileSketch, quantile

SPARE = 1.25
"""Over what an accepted alarm came to: so far scores may go until they have come down."""

YOUNG = 2.0
"""What limits are worth while a node's own mean is of one moment: about a mean that is a row drawn
like any other, rows vary twice as much."""

LARGEST_SHARE = 0.5
"""Of hours that a limit may be passed in: who allows more does not want alarms."""

BEYOND = 1.25
"""Over the limit, what a peak counts for at most: whatever is higher was no ordinary hour, and a
tail that is fitted to it would reach as far."""

MATURE = ("t2", "channel")
"""Kinds that are not watched before the node's own mean has seen a day."""


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """What is remembered of hours.

    windows, hours : as in `BlockMaximaTally`
    spared : over its limit, what accepted scores may come to; what is not there may not
    watched_s, allowed : as in `AlarmStatus`
    """

    windows: Mapping[By, tuple[QuantileSketch, QuantileSketch]] = field(default_factory=dict)
    hours: int = 0
    spared: Mapping[By, float] = field(default_factory=dict)
    watched_s: float = 0.0
    allowed: float = 0.0


class AlarmLimits:
    """One node's.

    Attributes
    ----------
    limits : dict of kind to float
        Empty while none is believed.
    ordinary : dict of kind to float
        What half of the group's hours stay below.
    armed_in_s : float
        As in `AlarmStatus`.
    watched_s, allowed : float
        Likewise.
    """

    def __init__(self, settings: AlarmSettings, kept: Hours) -> None:
        self.limits: dict[By, float] = {}
        self.ordinary: dict[By, float] = {}
        self.armed_in_s = -1.0
        self.watched_s, self.allowed = kept.watched_s, kept.allowed
        self._settings = settings
        self._spared = dict(kept.spared)
        self._near: dict[By, float] = {}  # how far spared scores went over their limits this hour
        self._tally = BlockMaximaTally(dict(kept.windows), kept.hours)
        self._hour_s, self._row = 0.0, 0  # of this hour that has passed
        period = settings.period_s
        self.hour_rows = max(1, round(HOUR_S / period)) if period else 0

    @property
    def maxima(self) -> BlockMaxima:
        """What levels came to, hour by hour."""
        return self._tally.maxima

    @property
    def kept(self) -> Hours:
        """What the next process has to know."""
        tally = self._tally
        return Hours(tally.windows, tally.hours, dict(self._spared), self.watched_s, self.allowed)

    def hear(self, maxima: BlockMaxima | None) -> None:
        """Take the limits from the group's newest peaks."""
        self.limits, self.ordinary, self.armed_in_s = {}, {}, -1.0
        kinds = [kind for kind in KINDS if maxima is not None and maxima.of(kind).n]
        if maxima is None or not kinds:
            return
        rate = self._settings.at_most_per_s * self._hour_length_s
        share = min(rate / len(kinds), LARGEST_SHARE)
        self.armed_in_s = self._missing_s(maxima, share)
        if self.armed_in_s <= 0:
            # One kind may not have been told for as long as others: it joins when it has.
            known = [kind for kind in kinds if enough(maxima.of(kind), share)]
            self.limits = {kind: limit(maxima.of(kind), share) for kind in known}
            self.ordinary = {kind: quantile(maxima.of(kind), 0.5) for kind in known}

    def _missing_s(self, maxima: BlockMaxima, share: float) -> float:
        """How long it takes until a limit is known, if all goes on as it has."""
        hours, n = max(maxima.longest, 1), max(maxima.spe.n, 1)
        wanted = max(2 * LEAST_TAIL, math.ceil(1 / (share * REACH)))
        settle = self._settings.settle_s / self._hour_length_s
        return max(0.0, max(settle - hours, (wanted - n) / (n / hours)) * self._hour_length_s)

    @property
    def _hour_length_s(self) -> float:
        return self.hour_rows * self._settings.period_s if self.hour_rows else HOUR_S

    def limit(self, kind: By, *, settled: bool) -> float:
        """Return what levels of a kind may come to; settled: the node's own mean is."""
        if not settled and kind in MATURE:
            return math.inf
        most = self.limits.get(kind, math.inf) * self._spared.get(kind, 1.0)
        return most if settled else YOUNG * most

    def calm(self, kind: By) -> float:
        """Return what share of its limit a level has to stay below for an alarm to be over.

        Half-way between the limit and an ordinary hour: scores of many directions come close to
        their limit all the time, and those of few seldom.
        """
        most = self.limits.get(kind, 0.0)
        return (1 + min(self.ordinary[kind] / most, 1.0)) / 2 if most > 0 else 1.0

    def spare(self, worst: float, most: Mapping[By, float]) -> None:
        """Bear scores that go so far over what they were judged by, until they have come down."""
        for kind in self.limits or KINDS:
            bare = self.limits.get(kind, 0.0)
            judged = most.get(kind, bare) / bare if bare > 0 else 1.0
            judged = judged if math.isfinite(judged) else 1.0
            self._spared[kind] = max(1.0, SPARE * worst * judged, self._spared.get(kind, 1.0))

    # -- hours -----------------------------------------------------------------------

    def highest(self, kind: By, rows: int) -> float:
        """Return what this hour has come to so far; -1 if so many more rows begin another."""
        another = 0 < self.hour_rows < self._row + rows
        return -1.0 if self._spared or another else self._tally.highest(kind)

    def count(
        self,
        kinds: Sequence[By],
        levels: Array | None,
        n: int,
        passed_s: float,
        *,
        settled: bool,
    ) -> None:
        """Take in the levels of rows that make an hour's peak, and the time that they stand for.

        levels : (kinds, n), -1 where a row does not count; None if none comes higher than this
            hour has so far
        """
        first = 0
        while first < n:
            last = min(n, first + self.hour_rows - self._row) if self.hour_rows else n
            if levels is not None and settled:
                highest = levels[:, first:last].max(axis=1).tolist()
                for kind, level in zip(kinds, highest, strict=True):
                    if level >= 0:
                        self._see(kind, level)
            self.pass_by(last - first, passed_s * (last - first) / n)
            first = last

    def pass_by(self, rows: int, passed_s: float) -> None:
        """Let time pass; no more rows than are left of this hour."""
        self._row += rows
        self._hour_s += passed_s
        if self._row >= self.hour_rows > 0 or (not self.hour_rows and self._hour_s >= HOUR_S):
            self._close()

    def _see(self, kind: By, highest: float) -> None:
        if not self._spared:
            self._tally.see(kind, min(highest, BEYOND * self.limits.get(kind, math.inf)))
        elif self.limits.get(kind, 0.0) > 0:
            # What is borne here is not what is usual elsewhere.
            self._near[kind] = max(self._near.get(kind, 0.0), highest / self.limits[kind])

    def _close(self) -> None:
        """An hour is over."""
        seen = self._tally.close() or bool(self._near)
        if seen and self.limits:
            self.watched_s += self._hour_s
            self.allowed += self._hour_s * self._settings.at_most_per_s
        spared = {
            kind: min(most, SPARE * self._near.get(kind, most))
            for kind, most in self._spared.items()
        }
        self._spared = {kind: most for kind, most in spared.items() if most > 1}
        self._near, self._hour_s, self._row = {}, 0.0, 0

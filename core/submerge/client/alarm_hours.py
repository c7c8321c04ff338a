"""WatchedHours: the block maxima of one node's hours, and the false alarms allowed in them.

Its maxima are its part of the group's, from which limits follow. Reports show the allowed alarms
beside the raised ones: an alarm that no person confirmed as a fault counts as false.

After a person has accepted an alarm, scores may go as high as they went (`spared`) until they have
come down again; the hours until then are not counted as normal hours of the group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from submerge._linalg import Array
from submerge.client.alarm_limits import AlarmLimits, Hours, hour_rows
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import HOUR_S, KINDS, BlockMaximaTally, By

SPARE = 1.25
"""Factor over the highest score of an accepted alarm, up to which scores are accepted."""

BEYOND = 1.25
"""Largest maximum that counts, over its limit: a higher one is from no normal hour, and a tail that
is fitted to it would reach as far."""


@dataclass(frozen=True, slots=True, eq=False)
class WatchedHours:
    """The hours that have ended, and the current one.

    Attributes
    ----------
    tally : BlockMaximaTally
        Of hours that have ended.
    spared, watched_s, allowed
        As in `Hours`.
    highest : mapping of kind to float
        The k-of-m maxima of the current hour.
    near : mapping of kind to float
        The largest spared scores over their limits in it.
    passed_s, row : float, int
        The time and the rows of it that have passed.
    """

    tally: BlockMaximaTally
    spared: Mapping[By, float] = field(default_factory=dict)
    watched_s: float = 0.0
    allowed: float = 0.0
    highest: Mapping[By, float] = field(default_factory=dict)
    near: Mapping[By, float] = field(default_factory=dict)
    passed_s: float = 0.0
    row: int = 0

    @classmethod
    def of(cls, kept: Hours) -> WatchedHours:
        """Return the hours that the process before remembered."""
        tally = BlockMaximaTally(kept.windows, kept.hours)
        return cls(tally, dict(kept.spared), kept.watched_s, kept.allowed)

    @property
    def kept(self) -> Hours:
        """What the next process has to know; the maxima of the current hour are lost."""
        tally = self.tally
        return Hours(tally.windows, tally.hours, self.spared, self.watched_s, self.allowed)

    def spare(
        self, worst: float, judged_by: Mapping[By, float], limits: AlarmLimits
    ) -> WatchedHours:
        """Return them with scores accepted up to `worst` times the limits of the alarm."""
        spared = dict(self.spared)
        for kind in limits.known or KINDS:
            bare = limits.known.get(kind, 0.0)
            ratio = judged_by.get(kind, bare) / bare if bare > 0 else 1.0
            ratio = ratio if math.isfinite(ratio) else 1.0
            spared[kind] = max(1.0, SPARE * worst * ratio, spared.get(kind, 1.0))
        return replace(self, spared=spared)

    def least_news(self, kind: By, rows: int, settings: AlarmSettings) -> float:
        """Return what a score has to exceed to raise its hour's maximum; -1 if any may."""
        of_another = 0 < hour_rows(settings) < self.row + rows
        return -1.0 if self.spared or of_another else self.highest.get(kind, -1.0)

    def after(
        self,
        kinds: Sequence[By],
        statistics: Array | None,
        n: int,
        passed_s: float,
        limits: AlarmLimits,
        settings: AlarmSettings,
    ) -> WatchedHours:
        """Return them after n more rows.

        Parameters
        ----------
        kinds : sequence of kind
        statistics : (kinds, n) or None
            k-of-m statistics, -1 where a row does not count; None if none raises a maximum.
        n : int
        passed_s : float
            The time that the rows stand for.
        limits : AlarmLimits
        settings : AlarmSettings
        """
        now, first, whole = self, 0, hour_rows(settings)
        while first < n:
            last = min(n, first + whole - now.row) if whole else n
            if statistics is not None:
                highest = statistics[:, first:last].max(axis=1).tolist()
                now = now._with_statistics(dict(zip(kinds, highest, strict=True)), limits)
            now = replace(
                now,
                row=now.row + last - first,
                passed_s=now.passed_s + passed_s * (last - first) / n,
            )
            if now.row >= whole > 0 or (not whole and now.passed_s >= HOUR_S):
                now = now._closed(limits, settings)
            first = last
        return now

    def _with_statistics(self, statistics: Mapping[By, float], limits: AlarmLimits) -> WatchedHours:
        highest, near, known = dict(self.highest), dict(self.near), limits.known
        for kind, value in statistics.items():
            if value < 0:
                continue
            if not self.spared:
                value = min(value, BEYOND * known.get(kind, math.inf))
                highest[kind] = max(highest.get(kind, 0.0), value)
            elif known.get(kind, 0.0) > 0:
                # Scores that are accepted here are not normal elsewhere.
                near[kind] = max(near.get(kind, 0.0), value / known[kind])
        return replace(self, highest=highest, near=near)

    def _closed(self, limits: AlarmLimits, settings: AlarmSettings) -> WatchedHours:
        """Return them with the current hour ended."""
        watched_s = self.passed_s if (self.highest or self.near) and limits.known else 0.0
        spared = {
            kind: min(most, SPARE * self.near.get(kind, most)) for kind, most in self.spared.items()
        }
        return WatchedHours(
            self.tally.after(self.highest),
            {kind: most for kind, most in spared.items() if most > 1},
            self.watched_s + watched_s,
            self.allowed + watched_s * settings.at_most_per_s,
        )

"""WatchedHours: the peaks of one node's hours, and the false alarms that it allowed in them.

Its peaks are its part of the group's, which limits follow from. What was allowed and what was
raised stand side by side: an alarm that no person has called a fault counts as false.

After a person has accepted an alarm, scores may go as high as they went (`spared`) until they have
come down again; hours of that time are no part of what is usual in the group.
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
"""Over what an accepted alarm came to: so far scores may go until they have come down."""

BEYOND = 1.25
"""Over the limit, what a peak counts for at most: whatever is higher was no ordinary hour, and a
tail that is fitted to it would reach as far."""


@dataclass(frozen=True, slots=True, eq=False)
class WatchedHours:
    """Hours that are over, and the one that is running.

    Attributes
    ----------
    tally : PeakTally
        Of hours that are over.
    spared, watched_s, allowed
        As in `Hours`.
    highest : mapping of kind to float
        The highest levels of the hour that is running.
    near : mapping of kind to float
        How far spared scores went over their limits in it.
    passed_s, row : float, int
        What has passed of it.
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
        """What the next process has to know; what the running hour had come to is lost."""
        tally = self.tally
        return Hours(tally.windows, tally.hours, self.spared, self.watched_s, self.allowed)

    def spare(
        self, worst: float, judged_by: Mapping[By, float], known: AlarmLimits
    ) -> WatchedHours:
        """Return them bearing scores that go so far over the limits that they were judged by."""
        spared = dict(self.spared)
        for kind in known.known or KINDS:
            bare = known.known.get(kind, 0.0)
            judged = judged_by.get(kind, bare) / bare if bare > 0 else 1.0
            judged = judged if math.isfinite(judged) else 1.0
            spared[kind] = max(1.0, SPARE * worst * judged, spared.get(kind, 1.0))
        return replace(self, spared=spared)

    def least_news(self, kind: By, rows: int, settings: AlarmSettings) -> float:
        """Return what a level has to pass to be the highest of its hour; -1 if any may be."""
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
            -1 where a row does not count; None if no level is the highest of its hour.
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
        for kind, statistic in statistics.items():
            if statistic < 0:
                continue
            if not self.spared:
                statistic = min(statistic, BEYOND * known.get(kind, math.inf))
                highest[kind] = max(highest.get(kind, 0.0), statistic)
            elif known.get(kind, 0.0) > 0:
                # What is borne here is not what is usual elsewhere.
                near[kind] = max(near.get(kind, 0.0), statistic / known[kind])
        return replace(self, highest=highest, near=near)

    def _closed(self, limits: AlarmLimits, settings: AlarmSettings) -> WatchedHours:
        """Return them when the running hour is over."""
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

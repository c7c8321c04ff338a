"""In which spans of rows, from a fault's start, scores raise an alarm (`client.alarms.detect`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.judge.decision import Mask
from submerge.stats.smoothing import KEPT, WEIGHT, ewma
from submerge.stats.statistic import STATISTICS, By, averaged

LEAD = 64  # rows before the first span: an average forgets what was before them
MOST_SPANS = 32  # spans that a drill tries each fault on, at most, each of them with both signs


class Spans(NamedTuple):
    """Where faults begin, (spans,) in rows, and for how many rows they are watched."""

    starts: npt.NDArray[np.intp]
    rows: int

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """(spans, rows), the row at each place."""
        return np.asarray(self.starts[:, None] + np.arange(self.rows))

    def only(self, which: Mask) -> Spans:
        """Return some of them."""
        return Spans(self.starts[which], self.rows)


def spans(n: int, within: int, most: int = MOST_SPANS) -> Spans:
    """Return spans of `within` rows spread over n, or shorter: a quarter is for their begins."""
    lead = max(min(LEAD, n // 4), 1)  # an average needs the one before it
    within = max(0, min(within, n - lead - n // 4))
    last = n - within
    starts = np.unique(np.linspace(lead, last, min(most, max(last - lead + 1, 0))).astype(np.intp))
    return Spans(starts if within else starts[:0], within)


class Detection:
    """Finds alarms in `spans` of rows: those without an alarm by `base`, scores without a fault."""

    def __init__(
        self,
        limits: Mapping[By, float],
        after: int,
        of: int,
        base: Mapping[By, Array],
        spans: Spans,
    ) -> None:
        self._limits, self._after, self._of = limits, after, of
        self._base = dict(base)
        for kind in averaged(limits):
            if STATISTICS[kind].of in base:
                self._base[kind] = ewma(base[STATISTICS[kind].of], limit=limits[kind])
        self.spans = spans
        self._kernel = _kernel(spans.rows)
        self._kept = KEPT ** np.arange(1, spans.rows + 1)
        quiet = ~self.found({kind: each[spans.places] for kind, each in base.items()}, spans.starts)
        self.spans = spans.only(quiet)

    @property
    def scored(self) -> tuple[By, ...]:
        """The kinds of score that decide, without those that follow from others."""
        needed = {STATISTICS[kind].of for kind in self._limits}
        return tuple(kind for kind in self._base if kind in needed)

    def found(self, scores: Mapping[By, Array], starts: npt.NDArray[np.intp]) -> Mask:
        """Return in which spans an alarm is raised, (spans,), by scores from their starts on."""
        found = np.zeros(len(starts), dtype=bool)
        for kind, limit in self._limits.items():
            series = scores.get(STATISTICS[kind].of)
            if series is None:
                continue
            if STATISTICS[kind].averaged:
                last = self._base[kind][starts - 1, None]
                found |= (series @ self._kernel + last * self._kept > limit).any(axis=1)
                continue
            places = starts[:, None] + np.arange(1 - self._of, 0)
            # Before the first row there is nothing: a low score.
            earlier = (self._base[kind][np.maximum(places, 0)] > limit) & (places >= 0)
            # The k-th largest of m scores is over a limit if k of them are.
            over = np.concatenate((earlier, series > limit), axis=1).cumsum(axis=1)
            over[:, self._of :] -= over[:, : -self._of].copy()
            found |= (over[:, self._of - 1 :] >= self._after).any(axis=1)
        return found


def _kernel(n: int) -> Array:
    """Return the weight of each score i in the moving average after score j, (n, n)."""
    ages = np.arange(n) - np.arange(n)[:, None]
    return np.where(ages >= 0, WEIGHT * KEPT ** np.maximum(ages, 0), 0.0)

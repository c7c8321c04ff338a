"""In which spans of rows scores raise an alarm, by the limits of a node (`client.alarms.detect`).

A span is some rows from the start of a fault; the rows before it are as they were read. An alarm is
raised when the k-th largest of the last m scores of one kind is over its limit, or when the
smoothed distance is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.judge.decision import Mask
from submerge.stats.block_maxima import By
from submerge.stats.smoothing import WEIGHT, smoothed

LEAD = 32
"""Rows before the first span: a smoothed score forgets what was before them."""

MOST_SPANS = 32
"""Spans that a drill tries each fault on, at most, each of them with both signs."""


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
    lead = max(min(LEAD, n // 4), 2)  # a smoothed score needs two rows before it
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
        if "distance" in base:
            self._base["smoothed"] = smoothed(base["distance"])
        self.spans = spans
        self._kernel = _kernel(spans.rows)
        quiet = ~self.found({kind: each[spans.places] for kind, each in base.items()}, spans.starts)
        self.spans = spans.only(quiet)

    @property
    def scored(self) -> tuple[By, ...]:
        """The kinds of score that decide, without those that follow from others."""
        needed = {"distance" if kind == "smoothed" else kind for kind in self._limits}
        return tuple(kind for kind in self._base if kind in needed)

    def found(self, scores: Mapping[By, Array], starts: npt.NDArray[np.intp]) -> Mask:
        """Return in which spans an alarm is raised, (spans,), by scores from their starts on."""
        found = np.zeros(len(starts), dtype=bool)
        for kind, limit in self._limits.items():
            series = self._smoothed(scores, starts) if kind == "smoothed" else scores.get(kind)
            if series is None:
                continue
            if kind == "smoothed":
                # It is a mean of rows already: it needs no second row.
                found |= (series > limit).any(axis=1)
                continue
            places = starts[:, None] + np.arange(1 - self._of, 0)
            # Before the first row there is nothing: a low score.
            earlier = (self._base[kind][np.maximum(places, 0)] > limit) & (places >= 0)
            # The k-th largest of m scores is over a limit if k of them are.
            over = np.concatenate((earlier, series > limit), axis=1).cumsum(axis=1)
            over[:, self._of :] -= over[:, : -self._of].copy()
            found |= (over[:, self._of - 1 :] >= self._after).any(axis=1)
        return found

    def _smoothed(self, scores: Mapping[By, Array], starts: npt.NDArray[np.intp]) -> Array | None:
        """Return the smoothed scores of spans: `smoothing.smoothed` of many series at once."""
        if "distance" not in scores:
            return None
        before = self._base["distance"][starts[:, None] + np.arange(-2, 0)]
        three = np.concatenate((before, scores["distance"]), axis=1)
        medians = np.median([three[:, :-2], three[:, 1:-1], three[:, 2:]], axis=0)
        last = self._base["smoothed"][starts - 1]
        kept = (1 - WEIGHT) ** np.arange(1, self.spans.rows + 1)
        return np.asarray(medians @ self._kernel + last[:, None] * kept)


def _kernel(n: int) -> Array:
    """Return the weight of each score i in the moving average after score j, (n, n)."""
    ages = np.arange(n) - np.arange(n)[:, None]
    return np.where(ages >= 0, WEIGHT * (1 - WEIGHT) ** np.maximum(ages, 0), 0.0)

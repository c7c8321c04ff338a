"""RecentScores: the scores of a node's last rows, and the statistics that alarms are raised by.

The statistic of a row is the `after`-th largest of the last `of` scores of its kind (k of m). The
smoothed distance is its own statistic: it is a mean of rows already, in which a single wild row
leaves no trace (`stats.smoothing`), so it needs no second row to agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.stats.block_maxima import WITH_FACTORS, By, statistics
from submerge.stats.smoothing import smoothed


class RecentScores(NamedTuple):
    """Scores (kinds, rows) of earlier rows, which the statistics of the next rows need."""

    kinds: tuple[By, ...] = ()
    scores: Array = np.zeros((0, 0))

    @property
    def finite(self) -> RecentScores:
        """The same once no alarm is open: unknown scores, which kept it open, raise no other."""
        return self._replace(scores=np.where(self.scores < math.inf, self.scores, 0.0))

    def watched(self, even: Mapping[By, Array]) -> dict[By, Array]:
        """Return the scores that alarms are raised by: of distances where the model has factors.

        even : as in `RowScores`
        """
        distance = even.get("distance")
        if distance is None:
            return dict(even)
        before, last = (0.0, 0.0), 0.0
        if "smoothed" in self.kinds:
            first, second = self.scores[self.kinds.index("distance"), -2:].tolist()
            # Unknown ones are infinite while an alarm is open.
            before = (first if first < math.inf else 0.0, second if second < math.inf else 0.0)
            last = float(self.scores[self.kinds.index("smoothed"), -1])
        watched = {kind: each for kind, each in even.items() if kind in WITH_FACTORS}
        return watched | {"smoothed": smoothed(distance, before, last)}

    def span(self, even: Mapping[By, Array], rows: int, unknown: float = 0.0) -> Array:
        """Return scores (kinds, rows + n): those of n rows, with earlier ones before them.

        unknown : for rows that are not known
        """
        kinds, before = tuple(even), self.scores
        if self.kinds != kinds:
            before = np.full((len(kinds), rows), unknown)
            for kind in set(kinds) & set(self.kinds):
                before[kinds.index(kind)] = self.scores[self.kinds.index(kind)]
        return np.concatenate((before, list(even.values())), axis=1)


def row_statistics(kinds: tuple[By, ...], span: Array, of: int, after: int) -> Array:
    """Return the statistic of each kind at each row, (kinds, n).

    span : (kinds, of - 1 + n), scores
    """
    raised = statistics(span, of, after)
    if "smoothed" in kinds:
        i = kinds.index("smoothed")
        raised[i] = span[i, of - 1 :]
    return raised


@lru_cache(maxsize=64)
def rows_needed(kinds: tuple[By, ...], after: int) -> Array:
    """Return how many rows have to be high for the statistic of each kind to be, (kinds,)."""
    return np.array([1 if kind == "smoothed" else after for kind in kinds])

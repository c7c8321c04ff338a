"""smoothed(): an exponentially weighted moving average (EWMA) of scores, without single wild rows.

A fault that moves every row by little shows in the mean of scores (Roberts, Technometrics 1, 1959).
One wild row would show in it for ten rows: the median of it and the two before (Tukey, Exploratory
Data Analysis, 1977) leaves no trace of it, and shows a fault one row later. That needs no limit, so
that limits can be measured on it; why not a clip: docs/decisions/0034.
"""

from __future__ import annotations

import math

import numpy as np

from submerge._linalg import Array

WEIGHT = 0.3
"""Weight of the newest score."""

KEPT = 1 - WEIGHT

MANY = 32
"""Scores from which NumPy is faster than a loop."""


def smoothed(scores: Array, before: tuple[float, float] = (0.0, 0.0), last: float = 0.0) -> Array:
    """Return the moving average after each score (n,), oldest first, not negative.

    m_i = median(x_(i-2), x_(i-1), x_i) and s_i = WEIGHT m_i + (1 - WEIGHT) s_(i-1)

    `before` are two scores, 0 where there was none: the first of all has the average 0, and the
    second begins it with the smaller one. The average begins again where `last` is 0 or infinite.
    """
    medians, averages = _medians(scores, before), list[float]()
    if 0 < last < math.inf and max(medians, default=0.0) < math.inf:
        # It stays so, and the loop has less to ask: histories have millions of rows.
        return np.array([last := WEIGHT * median + KEPT * last for median in medians])
    for median in medians:
        last = WEIGHT * median + KEPT * last if 0 < last < math.inf else median
        averages.append(last)
    return np.array(averages)


def _medians(scores: Array, before: tuple[float, float]) -> list[float]:
    if len(scores) < MANY:
        known = (*before, *scores.tolist())
        return [sorted(known[i : i + 3])[1] for i in range(len(scores))]
    each = np.concatenate((before, scores))
    first, second, third = each[:-2], each[1:-1], each[2:]
    low, high = np.minimum(first, second), np.maximum(first, second)
    medians: list[float] = np.maximum(low, np.minimum(high, third)).tolist()
    return medians

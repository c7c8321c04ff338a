"""smoothed(): an exponentially weighted moving average (EWMA) of scores, without single wild rows.

A fault that moves every row by little is lost in the scatter of single scores, and shows in their
mean. One wild row would show in it for ten rows. So each score is first replaced by the median of
it and the two before: a single wild row leaves no trace, and a fault shows one row later. That
needs no limit, so that limits can be measured on it.

References
----------
Roberts, Control chart tests based on geometric moving averages, Technometrics 1 (1959). Tukey,
Exploratory Data Analysis (1977): running medians of three. Why medians and not a clip at a
multiple of a limit: docs/decisions/0034.
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
    """Return the moving average after each score, oldest first: (n,).

    m_i = median(x_(i-2), x_(i-1), x_i) and s_i = WEIGHT m_i + (1 - WEIGHT) s_(i-1)

    scores : (n,). Not negative.
    before : (float, float). The two scores before the first of them; 0 where there was none. So the
        first of all scores has the average 0, and the second begins it with the smaller one.
    last : The average before the first of them; it begins again where that is 0 or infinite.
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
    """Return the median of each score and the two before it."""
    if len(scores) < MANY:
        known = (*before, *scores.tolist())
        return [sorted(known[i : i + 3])[1] for i in range(len(scores))]
    each = np.concatenate((before, scores))
    first, second, third = each[:-2], each[1:-1], each[2:]
    low, high = np.minimum(first, second), np.maximum(first, second)
    medians: list[float] = np.maximum(low, np.minimum(high, third)).tolist()
    return medians

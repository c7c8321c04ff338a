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


def smoothed(scores: Array, before: tuple[float, float] = (0.0, 0.0), last: float = 0.0) -> Array:
    """Return the moving average after each score, oldest first: (n,).

    m_i = median(x_(i-2), x_(i-1), x_i) and s_i = WEIGHT m_i + (1 - WEIGHT) s_(i-1)

    Parameters
    ----------
    scores : (n,)
        Not negative.
    before : (float, float)
        The two scores before the first of them; 0 where there was none. So the first of all
        scores has the average 0, and the second begins it with the smaller one.
    last : float
        The average before the first of them; it begins again where that is 0 or infinite.
    """
    averages: list[float] = []
    first, second = before
    for each in scores.tolist():
        median = sorted((first, second, each))[1]
        last = WEIGHT * median + (1 - WEIGHT) * last if 0 < last < math.inf else median
        averages.append(last)
        first, second = second, each
    return np.array(averages)

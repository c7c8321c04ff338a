"""ewma(): the exponentially weighted moving average of scores (Roberts, Technometrics 1, 1959).

Scores are not capped before: that would hide short incidents (docs/decisions/0065).
"""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np

from submerge._linalg import Array

WEIGHT = 0.1  # weight of the newest score

KEPT = 1 - WEIGHT


HELD = 2.0
"""Largest average that is remembered, over its limit: however far off one row was, an alarm ends
soon after the others are normal."""


def ewma(scores: Array, last: float = 0.0, limit: float = math.inf) -> Array:
    """Return the moving average after each score (n,), oldest first, not negative."""
    most = HELD * limit
    # s_i = WEIGHT x_i + (1 - WEIGHT) min(s_(i-1), HELD limit). At first 0: a first row is over if
    # it is ten limits off.
    averages = accumulate(
        (WEIGHT * scores).tolist(),
        lambda last, new: new + KEPT * (most if most < last else last),
        initial=last,
    )
    return np.array([*averages][1:])


def newest_scores(averages: Array) -> Array:
    """Return the scores (n,) of which averages over their limit were made; the first is 0."""
    before = np.minimum(averages[:-1], HELD)
    return np.concatenate(([0.0], (averages[1:] - KEPT * before) / WEIGHT))

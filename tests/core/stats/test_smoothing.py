"""smoothed(): a moving average of running medians of three."""

from __future__ import annotations

import math
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.stats.smoothing import MANY, WEIGHT, smoothed
from support.strategies import cuts

N = 3 * MANY


def by_hand(scores: list[float], last: float) -> list[float]:
    """Return the slow, obvious answer."""
    averages, known = [], [0.0, 0.0, *scores]
    for i in range(len(scores)):
        middle = median(known[i : i + 3])
        goes_on = 0 < last < math.inf
        last = WEIGHT * middle + (1 - WEIGHT) * last if goes_on else middle
        averages.append(last)
    return averages


@pytest.mark.parametrize("last", [0.0, 1.5, math.inf])
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.2]))
def test_many_scores_are_smoothed_as_one_by_one(last, seed, zeros, infinite):
    """Also where some are 0 or infinite: then the average begins again."""
    rng = np.random.default_rng(seed)
    scores = rng.exponential(size=N)
    scores[rng.random(N) < zeros] = 0.0
    scores[rng.random(N) < infinite] = math.inf

    assert by_hand(scores.tolist(), last) == smoothed(scores, last=last).tolist()


@given(st.integers(0, 2**32 - 1), cuts(N))
def test_it_is_the_same_however_scores_come(seed, parts):
    """All at once, or a few at a time."""
    scores = np.random.default_rng(seed).exponential(size=N)
    found, before, last = list[float](), (0.0, 0.0), 0.0
    for part in parts:
        found += smoothed(scores[part], before, last).tolist()
        before, last = (*before, *scores[part].tolist())[-2:], found[-1]

    assert smoothed(scores).tolist() == found

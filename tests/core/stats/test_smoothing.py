"""ewma(): the moving average of scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.stats.smoothing import ewma
from support import oracle
from support.strategies import cuts

N = 96


@given(st.integers(0, 2**32 - 1), cuts(N), st.sampled_from([0.2, 0.5, 9.0]))
def test_it_is_the_same_however_scores_come(seed, parts, limit):
    """All at once, or a few at a time; as the sum of all with weights that fall."""
    scores = np.random.default_rng(seed).exponential(size=N)
    found, last = list[float](), 0.0
    for part in parts:
        found += ewma(scores[part], last, limit).tolist()
        last = found[-1]

    assert ewma(scores, limit=limit).tolist() == found
    assert oracle.ewma(scores.tolist(), limit) == pytest.approx(found)

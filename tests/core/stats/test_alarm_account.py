"""The account of false alarms: evidence that is valid at any time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.stats.block_maxima import ENOUGH, LARGEST, MULTIPLES, evidence, surely_more

counts, amounts = st.integers(0, 10_000), st.floats(0.0, 5000.0)


@given(st.integers(0, 60), st.floats(0.0, 40.0), st.floats(1.0, 10.0))
def test_evidence_is_the_mean_of_likelihood_ratios(raised, promised, multiple):
    ratios = [m**raised * math.exp(-(m - 1) * multiple * promised) for m in MULTIPLES]

    assert min(sum(ratios) / len(ratios), LARGEST) == pytest.approx(
        evidence(raised, promised, multiple), rel=1e-9
    )


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
def test_an_honest_promise_is_seldom_accused_however_often_one_looks(rate):
    """In at most one of twenty fleets there is ever evidence of 20 to 1."""
    rng = np.random.default_rng(5)
    accused = 0
    for _ in range(400):
        raised = np.cumsum(rng.poisson(rate, size=200))
        promised = rate * np.arange(1, 201)
        accused += any(
            evidence(int(n), float(a)) >= ENOUGH for n, a in zip(raised, promised, strict=True)
        )

    assert accused <= 400 / ENOUGH + 3 * math.sqrt(400 / ENOUGH)


def test_a_promise_broken_twice_over_is_found():
    rng = np.random.default_rng(5)
    found = [evidence(int(rng.poisson(2 * 60.0)), 60.0) >= ENOUGH for _ in range(50)]

    assert sum(found) >= 45


@given(counts, amounts)
def test_the_multiple_is_one_that_evidence_is_just_enough_against(raised, promised):
    more = surely_more(raised, promised)

    assert 1 <= more <= 64
    if 1 < more < 63:
        assert evidence(raised, promised, more * 0.999) >= ENOUGH * 0.999
        assert evidence(raised, promised, more * 1.001) <= ENOUGH


@given(counts, amounts, st.integers(1, 100))
def test_more_alarms_are_more_evidence_and_more_promised_is_less(raised, promised, more):
    assert evidence(raised, promised) <= evidence(raised + more, promised)
    assert evidence(raised, promised + more) <= evidence(raised, promised)
    assert surely_more(raised, promised) <= surely_more(raised + more, promised) + 1e-9

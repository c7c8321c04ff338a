"""Rank rules: small functions of what is kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, EnergyRank, FixedRank, SapcaRank, UsageError

sigmas = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30).map(
    lambda values: np.array(sorted(values, reverse=True))
)


@given(sigmas, st.integers(1, 30))
def test_the_papers_share_is_at_most_one_over_r(sigma, rank):
    """C_r <= 1/r, so beta = 0.10 never grows past ten directions."""
    rank = min(rank, len(sigma))

    wanted = SapcaRank().next(rank, sigma, energy=float(sigma @ sigma))

    share = sigma[rank - 1] / sigma[:rank].sum()
    assert share <= 1 / rank + 1e-12
    assert rank + np.sign((share > 0.10) * 1 - (share < 0.01) * 1) == wanted
    if rank >= 10:
        assert wanted <= rank


@given(sigmas, st.integers(1, 30), st.floats(0, 10))
def test_energy_moves_toward_its_band(sigma, rank, lost):
    """Below low it grows, above high (with one fewer) it shrinks, else it stays."""
    rank = min(rank, len(sigma))
    energy = float(sigma @ sigma) * (1 + lost)
    rule = EnergyRank(0.7, 0.9)

    wanted = rule.next(rank, sigma, energy)

    shown, one_fewer = ((sigma[:r] ** 2).sum() / energy for r in (rank, rank - 1))
    expected = rank + 1 if shown < 0.7 else rank - 1 if one_fewer > 0.9 else rank
    assert expected == wanted


def test_too_few_directions_shrink_the_rank():
    """A rank above the data's own is let go, not kept for a direction of nothing."""
    assert SapcaRank().next(5, np.array([3.0, 2.0]), 13.0) == 4
    assert SapcaRank().next(1, np.empty(0), 0.0) == 0
    assert FixedRank(5).next(5, np.array([3.0]), 9.0) == 5


def test_limits_that_no_share_can_reach_are_warned_of():
    """beta >= 1/lowest never grows; alpha >= 1/highest never stays."""
    with pytest.warns(UserWarning, match="can never grow"):
        SapcaRank(start=5, lowest=5, beta=0.2)
    with pytest.warns(UserWarning, match="can never last"):
        SapcaRank(start=5, highest=20, alpha=0.05)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FixedRank(0), "at least 1, got 0"),
        (lambda: SapcaRank(alpha=0.1, beta=0.1), "alpha 0.1 and beta 0.1"),
        (lambda: SapcaRank(alpha=-0.1), "at least 0"),
        (lambda: SapcaRank(start=3, lowest=4), "4, 3, None"),
        (lambda: SapcaRank(start=3, highest=2), "1, 3, 2"),
        (lambda: SapcaRank(hold=-1), "hold must be a whole number of at least 0"),
        (lambda: EnergyRank(0.9, 0.9), "0.9 and 0.9"),
        (lambda: EnergyRank(0.5, 1.5), "0.5 and 1.5"),
    ],
)
def test_rules_that_cannot_be_are_refused(build, message):
    """At once, with what was expected and what came."""
    with pytest.raises(UsageError, match=message):
        build()


def test_a_rule_can_be_given_by_name():
    """The paper's and SPIRIT's; another name is refused."""
    assert SapcaRank() == SAPCA(rank="sapca").rule
    assert EnergyRank() == SAPCA(rank="energy").rule
    with pytest.raises(UsageError, match='"sapca" or "energy", got \'spca\''):
        SAPCA(rank="spca")

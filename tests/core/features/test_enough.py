"""How many random features are enough: the bound holds, and grows as it must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge.features import Gaussian, RandomFourier, features_for


def error(X: np.ndarray, gamma: float, ridge: float, features: int, seed: int) -> float:
    """The largest relative error of a Gram matrix of features, against K + ridge I."""
    K = Gaussian(gamma)(X, X)
    phi = RandomFourier(Gaussian(gamma), features, "fourier-pair", seed).lift(X).astype(float)
    values, V = np.linalg.eigh(K)
    root = (V / np.sqrt(np.maximum(values, 0) + ridge)) @ V.T
    return float(np.abs(np.linalg.eigvalsh(root @ (phi @ phi.T - K) @ root)).max())


@pytest.mark.parametrize(("share", "eps"), [(0.1, 0.5), (0.1, 0.3), (0.03, 0.5)])
def test_the_bound_holds(share, eps):
    """Of ten seeds at most one may fail with a failure rate of .1; here none does."""
    X = np.random.default_rng(0).standard_normal((120, 5))
    features = features_for(share, eps)

    assert all(error(X, 0.2, share * len(X), features, seed) <= eps for seed in range(10))


@given(st.floats(1e-3, 0.5), st.floats(0.05, 0.9))
def test_the_bound_grows_as_its_formula(share, eps):
    """With 1 / share and with 1 / eps^2; it is even."""
    n = features_for(share, eps)

    assert 0 == n % 2
    assert features_for(share / 2, eps) >= 2 * n - 4
    assert 4 * n - 8 <= features_for(share, eps / 2) <= 4 * n


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, float("nan"), "a"])
def test_arguments_out_of_range_are_refused(bad):
    """One line, with the name."""
    with pytest.raises(UsageError, match="share must be above 0 and below 1, got"):
        features_for(bad, 0.5)
    with pytest.raises(UsageError, match="eps must be above 0 and below 1, got"):
        features_for(0.1, bad)

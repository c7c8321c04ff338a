"""scikit-learn's PCA, which StreamingPCA is held against, and rows that have no ties."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

DIM = 12
ATTRIBUTES = (
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "mean_",
    "noise_variance_",
)
# Rounding of a covariance of condition 1e3, far below what anyone reads off a plot.
CLOSE = {"rtol": 1e-9, "atol": 1e-11}


def decaying(n: int, dim: int = DIM, *, seed: int = 0, factor: float = 0.7) -> np.ndarray:
    """Rows with a gap below every direction, far from zero, in no channel's own direction."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return 30 + rng.standard_normal((n, dim)) * factor ** np.arange(dim) @ turned


def pca(n_components: int | None = None) -> PCA:
    """PCA by its SVD: its quick solver centers after squaring, and so loses digits to the mean."""
    return PCA(n_components, svd_solver="full")


def same_numbers(expected, got) -> None:
    """All attributes alike, components up to sign."""
    for name in ATTRIBUTES:
        set_desired, have = getattr(expected, name), getattr(got, name)
        if name == "components_":
            have = have * np.sign(np.sum(set_desired * have, axis=1, keepdims=True))
        np.testing.assert_allclose(have, set_desired, **CLOSE, err_msg=name)

"""Kernel PCA, held against the exact one: the twin itself, landmarks on MNIST, and a fleet."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

from submerge import SAPCA, MergeTree
from submerge.features import Gaussian, Landmarks, Polynomial, RandomFourier
from submerge.kernel.nystrom import NystromPCA, choose
from support import data, kernels, mnist

CLOSE = {"rtol": 1e-8, "atol": 1e-8}


def rows(n: int, dim: int = 4, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dim)) + 3


# -- the twin ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (Gaussian(0.2), {"kernel": "rbf", "gamma": 0.2}),
        (Polynomial(3, 0.1, 1.0), {"kernel": "poly", "degree": 3, "gamma": 0.1, "coef0": 1.0}),
        (Polynomial(1, 1.0), {"kernel": "linear"}),
    ],
    ids=["gaussian", "polynomial", "linear"],
)
def test_the_twin_is_scikit_learns(kernel, theirs):
    """Exact kernel PCA equals KernelPCA to 1e-8: eigenvalues, and scores up to sign."""
    X = rows(60)
    exact = KernelPCA(4, eigen_solver="dense", **theirs).fit(X)

    scores, eigenvalues = kernels.exact_kernel_pca(kernel(X, X), 4)

    np.testing.assert_allclose(exact.eigenvalues_, eigenvalues, **CLOSE)
    np.testing.assert_allclose(np.abs(exact.transform(X)), np.abs(scores), **CLOSE)


def test_the_kernels_are_what_they_are_called():
    """Entry by entry."""
    X, Y = rows(7), rows(9, seed=1)

    np.testing.assert_allclose(kernels.gaussian(X, Y, 0.2), Gaussian(0.2)(X, Y), rtol=1e-12)


def test_excess_is_zero_for_the_exact_and_positive_for_others():
    """It measures the scores' column space: not their scale, nor how they are turned."""
    X = rows(50)
    K = Gaussian(0.2)(X, X)
    scores, _ = kernels.exact_kernel_pca(K, 4)
    turned = scores @ np.random.default_rng(0).standard_normal((4, 4))
    worse = np.hstack([scores[:, :3], kernels.exact_kernel_pca(K, 5)[0][:, 4:]])

    assert abs(kernels.excess(K, scores)) < 1e-9
    assert abs(kernels.excess(K, turned)) < 1e-9
    lost = np.diff(-kernels.exact_kernel_pca(K, 5)[1])[-1]
    assert np.isclose(100 * lost / kernels.optimum(K, 4), kernels.excess(K, worse))


# -- landmarks on MNIST --------------------------------------------------------


@pytest.mark.slow
def test_few_landmarks_do_on_mnist():
    """Digits 5 and 2, l = 10: error over exact at most 1.08 / 1.015 / 1.01, and never below 1.

    gamma is 1 / (2 median |x - y|^2). The error is the paper's, what the directions leave of
    the features' variance: that of the scores alone is far smaller (benchmarks/kernel_pca.md).
    """
    X, rank = mnist.digits(data.shared("mnist"), 5, 2), 10
    kernel = Gaussian(1 / (2 * kernels.median_square(X)))
    K = kernel(X, X)
    total, best = np.trace(K) - K.sum() / len(X), kernels.optimum(K, rank)

    for m, allowed in [(100, 1.08), (300, 1.015), (500, 1.01)]:
        for seed in range(3):
            chosen = choose("uniform", X, m, kernel, rank=rank, rng=np.random.default_rng(seed))
            model = NystromPCA.of(X, Landmarks(kernel, X[chosen]), rank=rank)
            error = (total - model.directions.eigenvalues.sum()) / best
            assert 1 - 1e-9 <= error <= allowed, (m, seed)


# -- a fleet -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("features", "allowed"), [(512, 1.2), (1024, 0.6)])
def test_eight_uneven_clients_are_as_good_as_exact(features, allowed):
    """Digits, r = 8, a MergeTree: excess over exact kernel PCA at most 1.2 %, and 0.6 %."""
    X = load_digits().data / 16
    kernel, rank = Gaussian(1 / (2 * float(X.var(axis=0).sum()))), 8
    Kc = kernels.centered(kernel(X, X))
    best = kernels.optimum(Kc, rank, center=False)

    for seed in range(3):
        map_ = RandomFourier(kernel, features, "orthogonal", seed)
        tree = MergeTree(rank=rank + 5)
        for i, part in enumerate(kernels.power_law(X, 8, np.random.default_rng(seed))):
            client = SAPCA(rank, oversample=5, block_size=64, dtype=np.float32)
            tree[f"client {i}"] = client.partial_fit(map_.lift(part)).subspace
        root = tree.root().truncated(rank)
        scores = (map_.lift(X) - root.mean) @ root.basis
        excess = 100 * (kernels.missed(Kc, scores, center=False) / best - 1)
        assert 0 < excess <= allowed, seed

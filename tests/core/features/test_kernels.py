"""How near each map's inner products come to its kernel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from submerge.features import (
    CountSketch,
    Gaussian,
    Landmarks,
    Laplace,
    Matern,
    Polynomial,
    RandomFourier,
    TensorSketch,
)
from support.kernels import excess

RADIAL = [Gaussian(0.1), Laplace(0.3), Matern(0.1), Matern(0.1, 2.5)]
KINDS = ["orthogonal", "fourier-pair", "fourier-cos", "quasi"]


def drawn(n: int, channels: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, channels))


def gram(phi: np.ndarray) -> np.ndarray:
    return phi @ phi.T


def errors(maps, X: np.ndarray, kernel) -> np.ndarray:
    """Each map's error of each pair of different rows, (maps, pairs)."""
    pairs = np.triu_indices(len(X), 1)
    return np.array([(gram(map_.lift(X)) - kernel(X, X))[pairs] for map_ in maps])


@pytest.mark.parametrize("kernel", [Gaussian, Laplace, Matern, lambda g: Matern(g, 2.5)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [1, 5])
def test_fourier_features_are_unbiased(kernel, kind, channels):
    """Over seeds, the mean error of no pair of rows is more than four of its standard errors."""
    k = kernel(0.5 / channels)
    off = errors([RandomFourier(k, 128, kind, seed) for seed in range(100)], drawn(12, channels), k)

    assert (np.abs(off.mean(axis=0)) < 4 * off.std(axis=0) / 10 + 1e-6).all()


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_more_features_come_nearer(kernel, kind):
    """Sixteen times the features, at most a third of the error; a quarter in theory."""
    X = drawn(20, 5)
    few, many = (
        np.sqrt(
            np.mean(errors([RandomFourier(kernel, D, kind, s) for s in range(8)], X, kernel) ** 2)
        )
        for D in (128, 2048)
    )

    assert many < few / 3
    assert many < 0.03


@pytest.mark.parametrize("kind", ["orthogonal", "fourier-pair", "quasi"])
@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
def test_paired_features_have_unit_length(kind, kernel):
    """Cosines and sines of the same angles, near and far, however wild the frequencies."""
    X = np.vstack([drawn(9, 5) * size for size in (1, 1e3, 1e9, 1e150)])
    lengths = np.linalg.norm(RandomFourier(kernel, 128, kind).lift(X), axis=1)

    np.testing.assert_allclose(np.ones(36), lengths, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fill", [1e9, 1e17, 1e18, 9.969209968386869e36, 1e150])
def test_rows_of_fill_values_are_like_no_other(kind, fill):
    """Nor like a row of zeros, though their phases are whole numbers, if numbers at all."""
    X = np.vstack([drawn(4, 5), np.zeros((1, 5))])
    map_ = RandomFourier(Gaussian(0.1), 512, kind)

    np.testing.assert_allclose(
        np.zeros((5, 1)), map_.lift(X) @ map_.lift(np.full((1, 5), fill)).T, atol=0.25
    )


def by_qr(X: np.ndarray, gamma: float, features: int, seed: int, p: int) -> np.ndarray:
    """The obvious way to orthogonal features: QR of Gaussian blocks, lengths of other ones."""
    rng = np.random.default_rng(seed)
    blocks = [
        np.linalg.qr(rng.standard_normal((p, p)))[0]
        * np.linalg.norm(rng.standard_normal((p, p)), axis=1)[:, None]
        for _ in range(-(-features // 2 // p))
    ]
    Z = X @ np.vstack(blocks)[: features // 2, : X.shape[1]].T * (2 * gamma) ** 0.5
    return np.hstack([np.cos(Z), np.sin(Z)]) * (2 / features) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("channels", [2, 20, 64, 100])
def test_signs_do_as_well_as_qr(channels):
    """The error is within 10 % of Gaussian QR's of the same size, and 0.7 of independent rows'."""
    X, k, pairs = drawn(40, channels), Gaussian(0.5 / channels), np.triu_indices(40, 1)
    p = max(64, 1 << (channels - 1).bit_length())
    qr = [(gram(by_qr(X, k.gamma, 512, s, p)) - k(X, X))[pairs] for s in range(40)]
    orthogonal, independent = (
        errors([RandomFourier(k, 512, kind, s) for s in range(40)], X, k) for kind in KINDS[:2]
    )
    qr, orthogonal, independent = (
        np.sqrt(np.mean(np.square(off))) for off in (qr, orthogonal, independent)
    )

    assert 0.9 * qr < orthogonal < 1.1 * qr
    assert orthogonal < 0.7 * independent


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_sobol_points_beat_random_ones_where_channels_are_few(channels):
    """Half the error of orthogonal rows at most."""
    X, k = drawn(20, channels), Gaussian(0.5 / channels)
    quasi, orthogonal = (
        np.mean(errors([RandomFourier(k, 512, kind, s) for s in range(20)], X, k) ** 2) ** 0.5
        for kind in ("quasi", "orthogonal")
    )

    assert quasi < orthogonal / 2


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_tensor_sketches_are_unbiased(degree, coef0):
    """Over seeds, the mean error of no pair is more than four of its standard errors."""
    k, X = Polynomial(degree, 0.2, coef0), drawn(10, 5)
    off = errors([TensorSketch(k, 256, seed) for seed in range(200)], X, k)

    assert (np.abs(off.mean(axis=0)) < 4 * off.std(axis=0) / 200**0.5).all()
    assert off.std() < 0.3 * k(X, X).std()


def test_a_tensor_sketch_is_the_count_sketch_of_the_tensor_product():
    """The obvious twin: hash every pair of channels to the sum of their buckets."""
    map_, X = TensorSketch(Polynomial(2, 0.5, 2.0), 16, seed=5), drawn(3, 4)
    extended = np.hstack([X * 0.5**0.5, np.full((3, 1), 2.0**0.5)])
    signed = map_.weights(4)
    expected = np.zeros((3, 16))
    for i, first in enumerate(signed[0]):
        for j, second in enumerate(signed[1]):
            bucket = int(abs(first) - 1 + abs(second) - 1) % 16
            expected[:, bucket] += np.sign(first * second) * extended[:, i] * extended[:, j]

    np.testing.assert_allclose(expected, map_.lift(X), atol=1e-12)


@pytest.mark.parametrize("kernel", [*RADIAL, Polynomial(2, 0.2, 1.0)], ids=repr)
def test_landmarks_know_the_kernel_exactly_where_they_are(kernel):
    """<phi(x), phi(l)> is K(x, l) for a landmark l, and never more than K in between."""
    L, X = drawn(40, 5, 8).astype(np.float32).astype(float), drawn(20, 5)
    map_ = Landmarks(kernel, L)

    np.testing.assert_allclose(kernel(X, L), map_.lift(X) @ map_.lift(L).T, atol=1e-5)
    missing = kernel(X, X) - gram(map_.lift(X))
    assert np.linalg.eigvalsh(missing)[0] > -1e-8
    assert np.linalg.eigvalsh(missing)[-1] < np.linalg.eigvalsh(kernel(X, X))[-1]


@pytest.mark.slow
def test_buckets_apart_cost_nothing():
    """Rows whose channels share no bucket: features as good as without the sketch, unbiased."""
    rows = sparse.random_array((20, 2000), density=2e-3, rng=5, format="csr")
    K = Gaussian(0.5)(rows.toarray(), rows.toarray())
    pairs = np.triu_indices(20, 1)
    plain, folded = (
        np.array([(gram(map_.lift(rows)) - K)[pairs] for map_ in maps])
        for maps in (
            [RandomFourier(Gaussian(0.5), 64, "orthogonal", s) for s in range(5)],
            [CountSketch(Gaussian(0.5), 64, 4096, s) for s in range(60)],
        )
    )

    assert (folded**2).mean() < 1.5**2 * (plain**2).mean()
    assert (np.abs(folded.mean(axis=0)) < 4.5 * folded.std(axis=0) / 60**0.5).all()


@pytest.mark.parametrize("kernel", [*RADIAL, Polynomial(3, 0.2, 1.0)], ids=repr)
def test_kernels_pull_what_differences_say(kernel):
    """The gradient of a sum of kernels, and 0 where a kernel has a cusp."""
    X, Y, C, size = drawn(4, 3), drawn(6, 3, 8), drawn(4, 6, 9), 1e-5
    steps = size * np.eye(3)
    wanted = [(C * (kernel(X + s, Y) - kernel(X - s, Y))).sum(axis=1) / (2 * size) for s in steps]

    np.testing.assert_allclose(np.transpose(wanted), kernel.pull(X, Y, C), atol=1e-8)
    if kernel in RADIAL:
        np.testing.assert_allclose(np.zeros((1, 3)), kernel.pull(X[:1], X[:1], np.ones((1, 1))))


def test_matern_kernels_become_gaussian_as_they_get_smoother():
    """One gamma means one size: nu = 2.5 is nearer to the Gaussian than 1.5, and both are near."""
    X = drawn(20, 3)
    rough, smooth = (np.abs(Matern(0.1, nu)(X, X) - Gaussian(0.1)(X, X)).max() for nu in (1.5, 2.5))

    assert smooth < rough < 0.15


@pytest.mark.slow
def test_features_keep_the_cost_of_projections():
    """Scores of 1024 features, r = 8: at most 1.5 % above exact kernel PCA (Musco, Woodruff)."""
    X = load_digits().data
    kernel = Gaussian(Gaussian().auto(float(X.var(axis=0).sum())))
    phi = RandomFourier(kernel, 1024).lift(X)
    phi -= phi.mean(axis=0)
    scores = phi @ np.linalg.eigh(phi.T @ phi)[1][:, -8:]

    assert 0 <= excess(kernel(X, X), scores) <= 1.5

"""Feature maps: the battery that all pass, and how near each comes to its kernel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from submerge.errors import UsageError, ValuesError
from submerge.features import (
    CountSketch,
    Gaussian,
    Identity,
    Landmarks,
    Laplace,
    Matern,
    Polynomial,
    RandomFourier,
    Sketched,
    TensorSketch,
    forms,
    fourier,
)
from support import feature_checks

RADIAL = [Gaussian(0.1), Laplace(0.3), Matern(0.1), Matern(0.1, 2.5)]
KINDS = ["orthogonal", "fourier-pair", "fourier-cos", "quasi"]


def drawn(n: int, channels: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, channels))


SMOOTH = [
    *(RandomFourier(Gaussian(0.1), 128, kind, 3) for kind in KINDS),
    RandomFourier(Gaussian(0.1), 2),
    RandomFourier(Matern(0.1, 2.5), 300, "orthogonal", 3),
    TensorSketch(Polynomial(2, 0.2), 64, 3),
    TensorSketch(Polynomial(1, 0.2, 1.0), 2),
    TensorSketch(Polynomial(3, 0.2, 1.0), 63, 3),
    CountSketch(Gaussian(0.1), 64, 4, 3),
    CountSketch(Gaussian(0.1), 64, 4096, 3),
    *(Landmarks(kernel, drawn(12, 5, 8)) for kernel in [*RADIAL, Polynomial(3, 0.2, 1.0)]),
    *(
        Sketched(inner, 12, sketch, 3)
        for sketch in ("countsketch", "srht", "gaussian")
        for inner in (
            RandomFourier(Gaussian(0.1), 100, seed=3),
            TensorSketch(Polynomial(2, 0.2, 1.0), 63, 3),
            Landmarks(Gaussian(0.1), drawn(12, 5, 8)),
        )
    ),
    # More landmarks than the kernel has directions, and two that are one.
    Landmarks(Polynomial(1, 0.2), drawn(9, 5, 8)),
    Landmarks(Gaussian(0.1), drawn(12, 5, 8)[[0, 1, 2, 0]]),
]


@pytest.mark.parametrize("map_", [Identity(), *SMOOTH], ids=repr)
def test_every_map_passes_the_battery(map_):
    """Shapes, rows on their own, NaN, sparse rows, gradients, specs, gamma to come."""
    feature_checks.passes_all(map_, drawn(6, 5))


@pytest.mark.parametrize("channels", [1, 64, 65, 130])
def test_channels_may_be_any(channels):
    """One, as many as a Hadamard block holds, one more, and more than features."""
    for kind in KINDS[:3]:
        feature_checks.passes_all(
            RandomFourier(Gaussian(0.3 / channels), 64, kind), drawn(4, channels)
        )


@pytest.fixture
def matrix_or_signs(monkeypatch):
    """Lift and pull back in one form or the other."""
    build = fourier._form.__wrapped__

    def run(map_, X, V, *, fast):
        monkeypatch.setattr(forms, "is_fast", lambda *_, **__: fast)
        # What is kept of a map is of the other form.
        monkeypatch.setattr(fourier, "_form", build)
        return map_.lift(X), map_.pullback(X, V)

    return run


@pytest.mark.parametrize(("channels", "features"), [(3, 128), (64, 512), (100, 64), (300, 1000)])
@pytest.mark.parametrize("kernel", [Gaussian(0.01), Laplace(0.1)], ids=repr)
def test_both_forms_give_the_same(matrix_or_signs, kernel, channels, features):
    """A matrix and fast Hadamard transforms: the same features and gradients, to rounding."""
    map_, X = RandomFourier(kernel, features), drawn(20, channels)
    V = drawn(20, features)
    (phi, gradient), (fast_phi, fast_gradient) = (
        matrix_or_signs(map_, X, V, fast=fast) for fast in (False, True)
    )

    feature_checks.close(phi, fast_phi)
    np.testing.assert_allclose(gradient, fast_gradient, atol=1e-6 * np.abs(gradient).max())
    feature_checks.close(phi, map_.lift(sparse.csr_array(X)))


def test_large_weights_are_left_to_their_signs():
    """From 2048 channels, or 4 MiB, on; sparse rows keep their matrix up to 64 MiB."""
    for channels, features, sparse_rows, fast in [
        (64, 512, False, False),
        (2047, 512, False, False),
        (2048, 512, False, True),
        (64, 65536, False, True),
        (20000, 512, True, False),
        (10**6, 512, True, True),
    ]:
        size = 8 * features // 2 * channels
        assert fast == forms.is_fast(size, channels, sparse_rows=sparse_rows)


@pytest.mark.parametrize("exponent", [-3, 0, 0.5, 1, 1.2, 1.5, 2, 6, 12])
@pytest.mark.parametrize("channels", [1, 3, 64, 80])
def test_angles_are_good_to_1e_6_at_any_size(exponent, channels):
    """Against float64 throughout, at sizes where float32 alone would be noise.

    Beyond 2^-53 |<w, x>|, which is the reading's own rounding: 1e-9 for those of 1e6.
    """
    map_ = RandomFourier(Gaussian(0.1), 64, "fourier-cos")
    X = drawn(4, channels) * 10**exponent
    W = map_.weights(channels)
    phases = fourier.weights.phases(64, 0) * 2 * np.pi
    wanted = np.cos(X @ W.T + phases) * (2 / 64) ** 0.5

    rounding = np.finfo(float).eps * (np.abs(X) @ np.abs(W).T + 7).max() * np.sqrt(channels)
    np.testing.assert_allclose(wanted, map_.lift(X), atol=1e-6 + rounding)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("gamma", "size"), [(1e300, 1.0), (1e300, 1e-150), (1e80, 1e-40), (1e-80, 1e40), (1e-300, 1e9)]
)
def test_no_gamma_is_too_large_or_small(kind, gamma, size):
    """Nor are readings: features separate near and far rows, without warnings or NaN."""
    map_, X = RandomFourier(Gaussian(gamma), 512, kind), np.vstack([drawn(4, 3), np.zeros((2, 3))])
    # The root first: its square times gamma may be no number.
    wanted = np.exp(
        -(np.minimum(gamma**0.5 * size * np.linalg.norm(X[:, None] - X, axis=2), 9) ** 2)
    )

    phi = map_.lift(X * size)

    np.testing.assert_allclose(wanted, phi @ phi.T, atol=0.2)
    assert np.isfinite(map_.pullback(X * size, np.ones((6, 512)))).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "map_",
    [
        Identity(),
        RandomFourier(Gaussian(1.0), 8),
        TensorSketch(Polynomial(2, 1.0), 8),
        CountSketch(Gaussian(1.0), 8),
        Landmarks(Gaussian(1.0), np.eye(3)),
    ],
    ids=repr,
)
def test_sparse_rows_must_be_finite(map_, value):
    """The first entry that is not is named by row and column; zeros that are stored are fine."""
    rows = sparse.csr_array(np.array([[1.0, 0, 0], [0, 2, value], [value, 0, 0]]))
    rows.data[0] = 0
    with pytest.raises(
        ValuesError, match=f"finite numbers, got {value} in row 1, column 2"
    ) as info:
        map_.lift(rows)
    assert (1, 2) == (info.value.row, info.value.column)


def test_quasi_and_large_matrices_say_what_to_use_instead():
    """More channels than Sobol points are good for; more weights than anyone would hold."""
    for kind, channels, message in [
        ("quasi", 9, "at most 8 dimensions, got 9: use 'orthogonal'"),
        ("fourier-pair", 10**6, "1953 MiB of weights for 1000000 channels, at most 256"),
        ("fourier-cos", 10**6, "3906 MiB"),
    ]:
        map_ = RandomFourier(Gaussian(1.0), 512, kind)
        for refused in (
            lambda map_=map_, channels=channels: map_.dim(channels),
            lambda map_=map_, channels=channels: map_.lift(np.empty((1, channels))),
        ):
            with pytest.raises(UsageError, match=message):
                refused()
    assert 512 == RandomFourier(Gaussian(1.0)).dim(10**6)


@pytest.mark.parametrize("sketch", ["countsketch", "srht", "gaussian"])
def test_a_sketch_keeps_inner_products_on_average(sketch):
    """Over 400 seeds the mean is within four standard errors, and errors fall as 1 / sqrt(t)."""
    phi = TensorSketch(Polynomial(2, 0.2, 1.0), 63, 3)
    X = drawn(2, 5)
    exact = np.prod(phi.lift(X), axis=0).sum()

    def products(t: int) -> np.ndarray:
        lifted = (Sketched(phi, t, sketch, seed).lift(X) for seed in range(400))
        return np.array([each[0] @ each[1] for each in lifted])

    few, many = products(8), products(32)

    assert abs(few.mean() - exact) < 4 * few.std() / 20
    assert many.std() < 0.7 * few.std()


def test_a_sketch_of_all_rows_of_a_hadamard_matrix_is_exact():
    """With t = D, a power of two, T is orthogonal."""
    inner = RandomFourier(Gaussian(0.1), 64)
    phi, X = Sketched(inner, 64, "srht"), drawn(6, 5)

    exact = inner.lift(X).astype(float)

    np.testing.assert_allclose(exact @ exact.T, phi.lift(X) @ phi.lift(X).T, atol=1e-12)


def test_a_sketch_is_of_a_map_and_smaller():
    """A sketch of a sketch, one larger than its map and an unknown one are refused."""
    inner = RandomFourier(Gaussian(0.1), 64)
    with pytest.raises(UsageError, match="a sketch is of a feature map, got Sketched"):
        Sketched(Sketched(inner, 8), 8)
    with pytest.raises(UsageError, match="at most the 64 features of its map, got 65"):
        Sketched(inner, 65).lift(drawn(2, 5))
    with pytest.raises(UsageError, match="sketch must be one of countsketch, srht, gaussian"):
        Sketched(inner, 8, "hadamard")

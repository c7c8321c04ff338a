"""Landmarks: what they keep, what they cut, and what cannot be done to them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from submerge.features import Gaussian, Landmarks, Laplace, Matern, Polynomial, parse
from submerge.features.landmarks import Solid

RADIAL = [Gaussian(0.1), Laplace(0.3), Matern(0.1), Matern(0.1, 2.5)]


def drawn(n: int, channels: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, channels))


@pytest.mark.parametrize("kernel", RADIAL, ids=repr)
@pytest.mark.parametrize("offset", [1e3, 1e5, 1e8])
def test_an_offset_is_nothing_to_a_radial_kernel(kernel, offset):
    """Features are those of the same rows about zero, to what float64 holds of the rows."""
    X, L = drawn(5, 3), drawn(10, 3, 8)
    # Rows that can be moved there and back to the bit.
    X, L = (X + offset) - offset, (L + offset) - offset

    moved = Landmarks(kernel, L + offset)

    np.testing.assert_allclose(Landmarks(kernel, L).lift(X), moved.lift(X + offset), atol=1e-7)
    assert moved == parse(moved.spec())


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_polynomial_kernels_keep_rows_within_the_cut(degree, offset):
    """1e4 times their spread from zero, rows are separated as well as by their kernel."""
    kernel, X = Polynomial(degree, 1.0), drawn(20, 3) + offset
    K = kernel(X, X)
    centered = np.eye(20) - 1 / 20
    phi = Landmarks(kernel, X).lift(X)
    phi -= phi.mean(axis=0)

    missed = centered @ K @ centered - phi @ phi.T
    assert np.linalg.norm(missed) < 1e-2 * np.linalg.norm(centered @ K @ centered)


def test_points_are_kept_to_the_bit():
    """In the map, in its spec, and in what is read from that: numbers that float32 rounds."""
    points = np.array([[1 / 3, 1e8 + 0.1], [1e-300, -1e150]])

    for map_ in (Landmarks(Gaussian(), points), parse(Landmarks(Gaussian(), points).spec())):
        np.testing.assert_array_equal(points, map_.points)


@pytest.mark.parametrize(
    "copied",
    [
        lambda map_: map_,
        lambda map_: pickle.loads(pickle.dumps(map_)),  # noqa: S301 (our own bytes)
        copy.deepcopy,
        copy.copy,
        lambda map_: map_.settled_at(0.5),
        lambda map_: parse(map_.spec()),
    ],
    ids=["itself", "pickled", "deepcopy", "copy", "settled", "parsed"],
)
def test_nobody_writes_to_points(copied):
    """Nor to the root: the spec would differ from the map."""
    map_ = copied(Landmarks(Gaussian(0.5), np.eye(3)))

    for array in (map_.points, map_.whitening):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 5.0


@pytest.mark.parametrize(("share", "kept"), [(3e-10, True), (3e-11, False)])
def test_directions_above_the_cut_are_kept(share, kept):
    """An eigenvalue at 3e-10 of the largest counts, one at 3e-11 is taken for rounding."""
    L = np.diag([1.0, share**0.5])
    K = np.diag([1.0, share])

    phi = Landmarks(Polynomial(1, 1.0), L).lift(L)
    values, vectors = Solid.of(K)

    np.testing.assert_allclose(np.diag([1.0, kept * share**0.5]), phi, atol=1e-12)
    np.testing.assert_allclose([share, 1.0][1 - kept :], values)
    assert (2, 1 + kept) == vectors.shape


def test_the_whitening_is_the_inverse_root():
    """Of the landmarks' kernel, and symmetric; of a kernel of zeros it is zero."""
    L, kernel = drawn(6, 3), Gaussian(0.5)
    root = Landmarks(kernel, L).whitening

    np.testing.assert_allclose(root, root.T, atol=1e-12)
    np.testing.assert_allclose(np.eye(6), root @ kernel(L, L) @ root, atol=1e-9)
    assert not Landmarks(Polynomial(2, 1.0), np.zeros((3, 2))).whitening.any()

"""What holds for every feature map, random or not: `passes_all` runs the battery.

Laws of single maps (unit length, unbiasedness) stand in their tests.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from submerge.errors import UsageError
from submerge.features import CountSketch, FeatureMap, RandomFourier, parse

SINGLE = 2e-6
"""Features come from float32 cosines, and rows in another company may be rounded otherwise."""


def passes_all(map_: FeatureMap, X: np.ndarray) -> None:
    """Check a settled map on rows (n, channels) of moderate size, n at least 4."""
    fits_the_shape_it_tells(map_, X)
    each_row_stands_alone(map_, X)
    keeps_its_hands_off(map_, X)
    passes_nan_through(map_, X)
    takes_sparse_rows(map_, X)
    pulls_back_the_gradient(map_, X)
    is_what_it_says(map_, X)
    waits_to_be_settled(map_, X)


def fits_the_shape_it_tells(map_: FeatureMap, X: np.ndarray) -> None:
    """(n, channels) becomes (n, dim), no rows included: of waves in float32, else in float64."""
    dim = map_.dim(X.shape[1])
    dtype = np.float32 if isinstance(map_, RandomFourier | CountSketch) else np.float64
    for rows in (X, X[:1], X[:0], np.asfortranarray(X)):
        phi = map_.lift(rows)
        assert (len(rows), dim) == phi.shape
        assert dtype == phi.dtype
        assert np.isfinite(phi).all()


def each_row_stands_alone(map_: FeatureMap, X: np.ndarray) -> None:
    """A row's features do not depend on what it came with: a far row, for one."""
    whole = map_.lift(np.vstack([X, 50 * X[:1]]))[:-1]
    close(whole, np.vstack([map_.lift(row[None]) for row in X]))


def keeps_its_hands_off(map_: FeatureMap, X: np.ndarray) -> None:
    """The rows stay what they are, and the world's random numbers are left alone."""
    before, state = X.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
    assert np.array_equal(map_.lift(X), map_.lift(X))
    assert np.array_equal(before, X)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def passes_nan_through(map_: FeatureMap, X: np.ndarray) -> None:
    """Without a warning, a NaN or an infinity is seen in its row, and in no other."""
    for poison in (np.nan, np.inf):
        rows = X.copy()
        rows[1, 0] = poison
        phi = map_.lift(rows)
        others = np.arange(len(X)) != 1
        assert poison == np.inf or np.isnan(phi[1]).any()
        close(map_.lift(X)[others], phi[others])
        assert np.isfinite(map_.pullback(rows, np.ones_like(phi))[others]).all()


def takes_sparse_rows(map_: FeatureMap, X: np.ndarray) -> None:
    """CSR arrays and matrices, and what becomes one, are rows like any others."""
    thin = np.where(np.abs(X) > np.median(np.abs(X)), X, 0.0)
    wanted = map_.lift(thin)
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array):
        found = map_.lift(kind(thin))
        assert type(found) is np.ndarray
        close(wanted, found)
    assert (0, wanted.shape[1]) == map_.lift(sparse.csr_array(thin[:0])).shape
    # Every entry in two parts, and the caller's rows are left in them.
    parts, row = sparse.coo_array(thin), np.repeat(np.arange(len(thin)), (thin != 0).sum(axis=1))
    twice = sparse.csr_array(
        (
            np.repeat(parts.data, 2) * np.tile([0.25, 0.75], parts.nnz),
            np.repeat(parts.coords[1], 2),
            np.searchsorted(np.repeat(row, 2), np.arange(len(thin) + 1)),
        ),
        shape=thin.shape,
    )
    before = twice.data.copy()
    close(wanted, map_.lift(twice))
    assert np.array_equal(before, twice.data)


def pulls_back_the_gradient(map_: FeatureMap, X: np.ndarray) -> None:
    """J'v is what central differences of <v, lift(x)> say.

    The step is large, for cosines are good to 1e-7 only; Richardson's rule takes off its
    square. So gradients are compared to 1e-3 of the largest.
    """
    V = np.random.default_rng(3).standard_normal((len(X), map_.dim(X.shape[1])))
    gradient = map_.pullback(X, V)
    size = 0.02

    def difference(step: np.ndarray) -> np.ndarray:
        return ((map_.lift(X + step) - map_.lift(X - step)) * V).sum(axis=1) / 2

    steps = size * np.eye(X.shape[1])
    wanted = [(8 * difference(s) - difference(2 * s)) / (6 * size) for s in steps]
    np.testing.assert_allclose(
        np.transpose(wanted), gradient, atol=1e-3 * np.abs(gradient).max(), rtol=0
    )


def is_what_it_says(map_: FeatureMap, X: np.ndarray) -> None:
    """Its spec, through JSON and back, is the same map, which lifts alike."""
    again = parse(json.loads(json.dumps(map_.spec())))
    assert map_ == again
    assert hash(map_) == hash(again)
    assert map_.spec() == again.spec()
    assert np.array_equal(map_.lift(X), again.lift(X))
    assert "\n" not in repr(map_)


def waits_to_be_settled(map_: FeatureMap, X: np.ndarray) -> None:
    """Without gamma it refuses to lift, tells its dim, and is itself again with it."""
    assert map_.settled
    open_ = map_.settled_at(None)
    if open_.settled:
        return  # no kernel, nothing to settle
    assert map_.dim(X.shape[1]) == open_.dim(X.shape[1])
    assert open_ == parse(open_.spec())
    for refused in (lambda: open_.lift(X), lambda: open_.pullback(X, map_.lift(X))):
        with pytest.raises(UsageError, match="gamma is not settled yet"):
            refused()
    spec = map_.spec()
    gamma = spec.get("of", spec)["gamma"]
    assert map_ == open_.settled_at(float.fromhex(str(gamma)))


def close(expected: np.ndarray, got: np.ndarray) -> None:
    """Equal up to the rounding of float32 cosines, or of large numbers."""
    np.testing.assert_allclose(expected, got, rtol=1e-9, atol=SINGLE)

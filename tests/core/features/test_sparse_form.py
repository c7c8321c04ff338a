"""Sparse rows whose parts contradict each other: one clear line, and no read outside of arrays."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from submerge import SAPCA, ShapeError, UsageError
from submerge.features import (
    CountSketch,
    Gaussian,
    Identity,
    Landmarks,
    Polynomial,
    RandomFourier,
    Sketched,
    TensorSketch,
)
from submerge.kernel.nystrom import choose
from submerge.kernel.one_pass import columns_of
from submerge.sklearn import OnePassKernelKMeans

G = Gaussian(0.1)
POINTS = np.random.default_rng(0).standard_normal((6, 10))

MAPS = [
    Identity(),
    RandomFourier(G, 64),
    RandomFourier(G, 64, "fourier-cos"),
    CountSketch(G, 64, 32),
    TensorSketch(Polynomial(2, 0.1), 64),
    Landmarks(G, POINTS),
    Sketched(RandomFourier(G, 64), 8),
]

TAKERS: dict[str, Callable[[Any], object]] = {
    **{f"{type(each).__name__} {i}": each.lift for i, each in enumerate(MAPS)},
    "SAPCA": lambda X: SAPCA(2).partial_fit(X),
    "columns": lambda X: list(columns_of(G, X, block_size=2)),
    "landmarks": lambda X: Landmarks(G, X),
    "choice": lambda X: choose("leverage", X, 2, G, rank=1, rng=np.random.default_rng(0)),
    "one pass": lambda X: OnePassKernelKMeans(2, gamma=0.1).fit(X),
}


def parts(indices: Any, indptr: Any = (0, 1, 2, 3, 3, 3)) -> Any:
    """Return 5 rows of 10 channels whose parts are set afterwards, unchecked."""
    X = sparse.csr_array((5, 10))
    X.data = np.array([1.0, 2.0, 4.0])
    X.indices, X.indptr = np.array(indices, np.int32), np.array(indptr, np.int32)
    return X


HOSTILE = {
    "beyond": (lambda: parts([3, 10, 2]), "columns of sparse rows must be 0 to 9, got 2 to 10"),
    "far": (lambda: parts([3, 2**30, 2]), "columns of sparse rows must be 0 to 9, got 2 to 1073"),
    "below": (lambda: parts([3, -1, 2]), "columns of sparse rows must be 0 to 9, got -1 to 3"),
    "falls": (lambda: parts([1, 2, 3], [0, 2, 1, 3, 3, 3]), r"indptr .* \[3\], some falling"),
    "late": (lambda: parts([1, 2, 3], [1, 1, 2, 3, 3, 3]), r"indptr .* got 6 from \[1\] to \[3\]"),
    "long": (lambda: parts([1, 2, 3], [0, 1, 2, 9, 9, 9]), r"from 0 to at most 3, .* to \[9\]"),
    "short": (lambda: parts([1, 2, 3], [0, 1, 2, 3]), "indptr of sparse rows must be 6 numbers"),
    "complex": (lambda: parts([1, 2, 3]).astype(complex), "real numbers, got dtype complex128"),
}


@pytest.mark.parametrize("take", [take for name, take in TAKERS.items() if name != "one pass"])
@pytest.mark.parametrize("name", HOSTILE)
def test_parts_that_contradict_each_other_are_refused_in_one_line(name, take):
    """Before scipy's loops, which trust them: some of these used to end the process."""
    make, line = HOSTILE[name]

    with pytest.raises(UsageError, match=line) as info:
        take(make())
    assert 1 == len(str(info.value).splitlines())


@pytest.mark.parametrize("name", ["beyond", "far", "below"])
def test_so_are_those_of_an_estimator(name):
    """scikit-learn looks at the numbers in sparse rows, and not at their places."""
    make, line = HOSTILE[name]

    with pytest.raises(UsageError, match=line):
        TAKERS["one pass"](make())


@pytest.mark.parametrize("take", [map_.lift for map_ in MAPS])
def test_columns_and_coordinates_are_looked_at_too(take):
    """Other forms of scipy's become CSR by the same trusting loops."""
    by_columns = sparse.csc_array((5, 10))
    by_columns.data, by_columns.indices = np.ones(3), np.array([3, 5, 2], np.int32)
    by_columns.indptr = np.array([0, 1, 2, *[3] * 8], np.int32)
    pairs = sparse.coo_array(np.eye(5, 10))
    pairs.col[0] = 10

    with pytest.raises(UsageError, match="rows of sparse rows must be 0 to 4, got 2 to 5"):
        take(by_columns)
    with pytest.raises(UsageError, match="columns of sparse rows must be 0 to 9, got 1 to 10"):
        take(pairs)


@pytest.mark.parametrize("take", [map_.lift for map_ in MAPS])
def test_a_single_sparse_vector_is_no_table(take):
    """scipy has arrays with one axis."""
    with pytest.raises(ShapeError, match=r"rows must have shape \(n, channels\), got \(10,\)"):
        take(sparse.coo_array(np.arange(10.0)))


def _reversed(X: Any) -> Any:
    """Each row's entries from the last to the first."""
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    )
    return sparse.csr_array((X.data[order], X.indices[order], X.indptr), X.shape)


def _doubled(X: Any) -> Any:
    """Each entry in two halves."""
    return sparse.csr_array((X.data.repeat(2) / 2, X.indices.repeat(2), 2 * X.indptr), X.shape)


def _roomy(X: Any) -> Any:
    """With room behind the last entry, as scipy allows, and rubbish in it."""
    roomy = X.copy()
    roomy.data, roomy.indices = np.append(X.data, np.nan), np.append(X.indices, 99)
    return roomy


@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
@pytest.mark.parametrize("form", [_reversed, _doubled, _roomy])
def test_unusual_rows_are_lifted_as_dense_ones_and_left_alone(map_, form):
    """To 1e-12; to 1e-6 where features are float32. The caller's arrays stay as they were."""
    rng = np.random.default_rng(3)
    dense = rng.integers(-3, 4, (5, 10)) * (rng.random((5, 10)) < 0.4) * 1.0
    rows = form(sparse.csr_array(dense))
    before = [part.copy() for part in (rows.data, rows.indices, rows.indptr)]
    wanted = map_.lift(dense)
    single = isinstance(map_, RandomFourier | CountSketch | Sketched)

    np.testing.assert_allclose(wanted, map_.lift(rows), rtol=0, atol=1e-6 if single else 1e-12)
    for part, kept in zip((rows.data, rows.indices, rows.indptr), before, strict=True):
        np.testing.assert_array_equal(kept, part)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_, np.float32])
def test_whole_numbers_and_bools_are_numbers(dtype):
    """As dense ones of float64."""
    X = sparse.csr_array(np.eye(4, 10, dtype=dtype))

    np.testing.assert_allclose(MAPS[1].lift(X.toarray().astype(float)), MAPS[1].lift(X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("map_", "channels"),
    [
        (RandomFourier(G, 256), 20_000),
        (CountSketch(G, 256), 10**6),
        (TensorSketch(Polynomial(2, 0.1), 256), 10**6),
        (Sketched(CountSketch(G, 256), 32), 10**6),
    ],
    ids=repr,
)
def test_rows_are_never_made_dense(map_, channels):
    """400 rows of few entries: beside its weights, a lift holds a few times its features."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, channels), density=1e-5, rng=rng, format="csr")
    map_.lift(X[:1])  # draws the weights
    tracemalloc.start()
    try:
        map_.lift(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 8 * 2**20 < 8 * 400 * channels


@pytest.mark.parametrize("buckets", [64, 1024])
def test_sums_of_buckets_are_the_same_features_as_sparse_products(buckets):
    """Rows of 20 entries are on both sides of the border; one row alone has the same features."""
    X = sparse.random_array((30, 500), density=0.04, rng=np.random.default_rng(0), format="csr")
    map_ = CountSketch(G, 64, buckets)
    whole = map_.lift(X)

    np.testing.assert_allclose(map_.lift(X.toarray()), whole, atol=1e-6)
    alone = np.vstack([map_.lift(X[i : i + 1]) for i in range(30)])
    np.testing.assert_allclose(alone, whole, atol=1e-6)

"""Sparse rows into an engine: their exact scatter by entries, or a block at a time made dense."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError, UsageError, ValuesError
from submerge.features import sparse
from submerge.pca.block import Blend

AT_ONCE = 2048  # sparse rows of one block: each block costs a pass over the scatter


def checked(X: Any, dim: int | None, largest: float, gaps: object = None) -> Any:
    """Return sparse rows (n, dim) as CSR of float64, each place stored once, or raise."""
    if gaps is not None:
        raise UsageError("sparse rows have no gaps: an entry that is absent is zero")
    if X.ndim != 2 or dim not in (None, X.shape[1]):
        raise ShapeError("rows", expected=f"(n, {dim or 'dim'})", got=X.shape)
    rows = sparse.as_csr(X)
    rows.sum_duplicates()
    bad = np.flatnonzero(~(np.abs(rows.data) < largest))
    if len(bad):
        row, column = int(sparse.rows_of(rows)[bad[0]]), int(rows.indices[bad[0]])
        raise ValuesError(
            f"expected finite readings below {largest:g}, got {rows.data[bad[0]]:g}"
            f" in row {row}, column {column}",
            row=row,
            column=column,
        )
    return rows


def blocks(rows: Any) -> Iterator[Any]:
    """Yield CSR rows, `AT_ONCE` at a time."""
    for start in range(0, rows.shape[0], AT_ONCE):
        yield rows[start : start + AT_ONCE]


def dense_blocks(rows: Any, block: int) -> Iterator[Array]:
    """Yield CSR rows as dense ones, `block` at a time, and warn that they are."""
    n, dim = rows.shape
    warnings.warn(
        f"sparse rows of {dim} columns are made dense, {min(block, n)} at a time:"
        " raise memory to hold the whole scatter, or lift them by a feature map such as"
        " CountSketch first",
        UserWarning,
        stacklevel=4,
    )
    for start in range(0, n, block):
        yield rows[start : start + block].toarray()


def scatter_of(rows: Any, blend: Blend, mean: Array) -> tuple[Array, Array]:
    """Return the drift (dim,) of a block of CSR rows, and its scatter (dim, dim)."""
    # With c = mean + pull drift, X'WX - mass (m c' + c m' - c c'), m the weighted mean of the rows.
    # Digits are lost where c is far larger than the deviations from it; of sparse rows it is small.
    weights, _, shares, _, mass = blend.ages
    middle = np.asarray(rows.T @ shares)
    drift = middle - mean
    about = mean + blend.pull * drift
    weighted = rows.multiply(weights[:, None]).tocsr() if blend.past != 1.0 else rows
    product = np.asarray((rows.T @ weighted).toarray())
    crossed = np.outer(middle, about)
    product -= mass * (crossed + crossed.T - np.outer(about, about))
    return drift, product

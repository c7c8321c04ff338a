"""Sparse rows, recognised by their methods, and checked (`as_csr`): scipy trusts their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from submerge._linalg import Array, unmasked
from submerge.errors import ShapeError, UsageError, ValuesError


def is_sparse(X: Any) -> bool:
    """Return whether these rows are a scipy sparse matrix or array."""
    return hasattr(X, "tocsr")


def checked(X: Any) -> Any:
    """Return dense rows `unmasked`, and sparse ones as CSR of finite float64 numbers, or raise."""
    if not is_sparse(X):
        return unmasked(X)
    X = as_csr(X)
    bad = np.flatnonzero(~np.isfinite(X.data))
    if len(bad):
        row, column = int(rows_of(X)[bad[0]]), int(X.indices[bad[0]])
        raise ValuesError(
            f"sparse rows must hold finite numbers, got {X.data[bad[0]]} in row {row},"
            f" column {column}",
            row=row,
            column=column,
        )
    return X


def as_csr(X: Any) -> Any:
    """Return sparse rows (n, channels), copied, as CSR of float64, or raise; places may repeat."""
    if X.ndim != 2:
        raise ShapeError("rows", expected="(n, channels)", got=X.shape)
    if X.dtype.kind not in "fiub":
        raise UsageError(f"rows must be real numbers, got dtype {X.dtype}")
    n, channels = X.shape
    if X.format == "csr":
        _check_starts(X, n)
        _check_places("columns", X.indices[: X.indptr[-1]], channels)
    elif X.format == "csc":
        _check_starts(X, channels)
        _check_places("rows", X.indices[: X.indptr[-1]], n)
    else:
        X = X.tocoo()
        _check_places("rows", X.row, n)
        _check_places("columns", X.col, channels)
    X = X.tocsr().astype(np.float64)
    X.prune()  # scipy allows room behind the last entry
    return X


def _check_starts(X: Any, lines: int) -> None:
    """Refuse starts of the rows (or columns) that are not 0, ..., the number of entries."""
    starts, entries = X.indptr, min(len(X.indices), len(X.data))
    if len(starts) != lines + 1 or starts[0] != 0 or starts[-1] > entries or _falls(starts):
        raise UsageError(
            f"indptr of sparse rows must be {lines + 1} numbers that rise from 0 to at most"
            f" {entries}, got {len(starts)} from {starts[:1]} to {starts[-1:]}"
            + (", some falling" if _falls(starts) else "")
        )


def _falls(starts: Any) -> bool:
    return bool((starts[1:] < starts[:-1]).any())


def _check_places(what: str, places: Any, most: int) -> None:
    """Refuse row or column numbers that are outside of the table."""
    if len(places) and not 0 <= places.min() <= places.max() < most:
        raise UsageError(
            f"{what} of sparse rows must be 0 to {most - 1}, got {places.min()} to {places.max()}"
        )


def rows_of(X: Any) -> Any:
    """Return the row of each stored entry of CSR rows."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def square_lengths(X: Any) -> Array:
    """Return |x|^2 of each row x, (n,)."""
    if is_sparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            # Entries at one place stand for their sum, and squares are not linear.
            X = X.copy()
            X.sum_duplicates()
        return np.bincount(rows_of(X), X.data**2, X.shape[0]).astype(np.float64)
    return np.asarray((unmasked(X) ** 2).sum(axis=1))

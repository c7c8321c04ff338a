"""Sparse rows, recognised by their methods: scipy is never imported here."""

from __future__ import annotations

from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.errors import ValuesError


def is_sparse(X: Any) -> bool:
    """Return whether these rows are a scipy sparse matrix or array."""
    return hasattr(X, "tocsr")


def checked(X: Any) -> Any:
    """Return dense rows as they are, and sparse ones as CSR of finite float64 numbers.

    Raises
    ------
    ValuesError
        If a stored entry is NaN or infinite, with the first one's row and column.
    """
    if not is_sparse(X):
        return X
    X = X.tocsr().astype(np.float64)
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
    return np.asarray((X**2).sum(axis=1))

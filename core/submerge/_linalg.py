"""Leading directions of a stack of rows: the one kernel under everything.

`leading` finds the leading right singular vectors and the singular values of `mix @ stack`, a
stack (m, dim) with m small, without forming that product:

1. By the Gram matrix: `eigh` of (m, m), or pairs by `pca.ritz`, one product for the basis, and
   where needed one Cholesky step that restores orthonormality. Squaring costs half of the digits,
   so it is trusted only down to `GUARD` times the largest singular value.
2. Else by QR of the stack and an SVD of R: slower, right for rank-deficient and badly scaled rows.

Rules of this file: `numpy.linalg` only, because a device pays for what it loads. Products go over
slices of `dim`, so that temporaries stay in cache. Float32 stacks are multiplied in float64, unless
a caller asks for products as they are stored. No argument but `out` is changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Storage = npt.NDArray[Any]
"""Float64, or float32 where memory is scarce. Sums are taken in float64 in both cases."""

GUARD = 1e-4
"""Smallest singular value, over the largest, that the Gram way is trusted with.

Its square is 1e-8, so the first basis is orthonormal to 1e-16 / 1e-8: one Cholesky
step is enough to finish the work."""

CANCELLED = 1e3
"""How far subtraction may shrink the rows (squared) before the Gram way is distrusted.

A mean that jumps while the past is forgotten leaves rounding of the jump's size."""

SOLID = 1e-2
"""Smallest eigenvalue, over the largest, from which the Cholesky step would change
nothing: the first basis is already orthonormal to 1e-16 / 1e-2."""

WIDTH = 1024  # columns that are multiplied at once: with 60 rows, half of a common L2

EPS = float(np.finfo(np.float64).eps)
EPS_SINGLE = float(np.finfo(np.float32).eps)

LEAST = float(np.finfo(np.float64).tiny) / EPS
"""Smallest eigenvalue that the Gram way is trusted with: squares below it have lost digits."""

LEAST_SINGLE, MOST_SINGLE = 1e-20, 1e30
"""Energies of a block that float32 products can hold, with room for each of their terms."""


def unmasked(X: Any) -> Any:
    """Return masked rows with NaN where they are masked: what is under a mask is no reading."""
    if type(X) is np.ndarray:
        return X
    if hasattr(X, "__array__") and not (hasattr(X, "columns") or hasattr(X, "column_names")):
        X = np.asanyarray(X)  # a variable of a file may have a mask that its array shows
    ma: Any = sys.modules.get("numpy.ma")  # it loads late, and without it nothing is masked
    if ma is None:
        return X
    if isinstance(X, list | tuple) and any(isinstance(row, ma.MaskedArray) for row in X):
        X = ma.stack(X)
    if not isinstance(X, ma.MaskedArray) or X.dtype.names:
        return X
    mask = ma.getmaskarray(X)
    return np.where(mask, np.nan, X.data) if mask.any() else X.data


class Directions(NamedTuple):
    """Orthonormal rows (k, dim), and sigma (k,), descending and positive."""

    rows: Storage
    sigma: Array
    dropped: float  # the squared singular value just below
    guarded: bool  # whether the Gram way was not trusted


class Eigen(NamedTuple):
    """Leading eigenpairs of a Gram matrix, (k,) and (m, k), or nearly so."""

    values: Array
    vectors: Array
    dropped: float  # bounds what the others hold in any direction
    single: bool = False  # summed in float32

    @classmethod
    def of(cls, gram: Array, k: int) -> Eigen:
        """Solve the full eigenproblem."""
        values, vectors = np.linalg.eigh(gram)
        values, vectors = values[::-1], vectors[:, ::-1]
        dropped = max(0.0, float(values[k])) if k < len(values) else 0.0
        return cls(values[:k], vectors[:, :k], dropped)


class Mix(NamedTuple):
    """mix @ rows = (I - pull v v') diag(scale) rows, in m^2 flops: (m,) vectors, v of length 1."""

    scale: Array
    v: Array
    pull: float

    def of_rows(self, rows: Array) -> Array:
        """Return mix @ rows."""
        scaled = rows * self.scale[:, None]
        scaled -= np.multiply.outer(self.pull * self.v, self.v @ scaled)
        return scaled

    def of_gram(self, square: Array) -> Array:
        """Return mix @ square @ mix.T for a symmetric `square`, in place."""
        square *= self.scale
        square *= self.scale[:, None]
        taken = self.pull * (square @ self.v)
        taken -= (0.5 * self.pull * (taken @ self.v)) * self.v
        both = np.array([taken, self.v])
        square -= both.T @ both[::-1]
        return square

    def of_coefficients(self, coefficients: Array) -> Array:
        """Return mix.T @ coefficients."""
        moved = coefficients - np.multiply.outer(self.pull * self.v, self.v @ coefficients)
        moved *= self.scale[:, None]
        return moved


def leading(
    stack: Storage,
    k: int,
    *,
    mix: Mix | None = None,
    eigen: Eigen | None = None,
    cancelled: float = 0.0,
    out: Storage | None = None,
) -> Directions:
    """Find the leading `k` right singular vectors of `mix @ stack`, a stack (m, dim).

    mix, eigen : applied to the rows first; eigenpairs of the mixed rows' Gram matrix, if known
    cancelled : squared size of what `mix` subtracts
    out : (at least k, dim), receives the rows; it may be the head of `stack` itself
    """
    # dim m^2 + 2 dim m k + 3 dim k^2 flops, and the eigenproblem of size m.
    m, dim = stack.shape
    if min(m, dim, k) == 0:
        return Directions(np.empty((0, dim), stack.dtype), np.empty(0), 0.0, False)
    kept = min(k, m, dim)
    if eigen is None:
        eigen = Eigen.of(inner(stack) if mix is None else mix.of_gram(inner(stack)), kept)
    lam, vectors, dropped, single = eigen
    largest = max(lam[0], cancelled / CANCELLED)
    guarded = not lam[-1] > max(GUARD**2 * largest, LEAST)
    if guarded:
        sigma, vectors, dropped = _by_qr(stack, mix, kept)
        kept = len(sigma)
        coefficients = vectors / sigma
    else:
        sigma = np.sqrt(lam)
        # Rows in R^dim have at most dim singular values: what eigh finds below is rounding.
        dropped = dropped if kept < dim else 0.0
        coefficients = vectors / sigma
        if mix is not None:
            # One small product replaces one with the whole stack.
            coefficients, mix = mix.of_coefficients(coefficients), None
    rows = np.empty((kept, dim), stack.dtype) if out is None else out[:kept]
    multiply(coefficients.T, stack, mix=mix, out=rows)
    if guarded or single or lam[-1] < SOLID * largest:
        sigma = orthonormalize(rows, sigma)
    # Equal values may have changed places by a rounding error, and the order is promised.
    return Directions(rows, np.minimum.accumulate(sigma), dropped, guarded)


def inner(rows: Storage, *, as_stored: bool = False) -> Array:
    """Return `rows @ rows.T` in float64, (m, m); slices of it perhaps `as_stored`, in float32."""
    parts = slices(rows, as_stored=as_stored)
    first = next(parts)
    # The same array twice: NumPy then calls syrk, which takes half of the products.
    total = np.asarray(first @ first.T, dtype=np.float64)
    for part in parts:
        total += part @ part.T
    return total


def multiply(left: Storage, rows: Storage, *, out: Storage, mix: Mix | None = None) -> None:
    """Write `left @ mix @ rows`, (k, dim) or (dim,), into `out`, perhaps the head of `rows`."""
    # All in float32 stays so: a copy takes as long, and storing has cost the same rounding.
    start, as_stored = 0, mix is None and out.dtype == rows.dtype
    if as_stored:
        left = left.astype(rows.dtype, copy=False)
    for part in slices(rows, mix, as_stored=as_stored):
        end = start + part.shape[1]
        out[..., start:end] = left @ part
        start = end


def slices(rows: Storage, mix: Mix | None = None, *, as_stored: bool = False) -> Iterator[Array]:
    """Yield columns of rows, in pieces that fit the cache, in float64 and mixed."""
    # Float32 is copied for the sums, and is chosen where memory is short.
    width = WIDTH if as_stored or rows.dtype == np.float64 else WIDTH // 8
    for start in range(0, rows.shape[1], width):
        part = rows[:, start : start + width]
        if not as_stored:
            part = np.asarray(part, dtype=np.float64)
        yield part if mix is None else mix.of_rows(part)


def orthonormalize(rows: Storage, sigma: Array) -> Array:
    """Make almost orthonormal `rows` orthonormal in place; return the sigma to match."""
    # Cholesky-QR, rows.T = Q R: Q diag(sigma diag(R)) is rows.T diag(sigma) to the defect's square.
    lower = np.linalg.cholesky(inner(rows, as_stored=True))
    multiply(np.linalg.inv(lower), rows, out=rows)
    return np.asarray(sigma * np.diag(lower))


def _by_qr(stack: Storage, mix: Mix | None, k: int) -> tuple[Array, Array, float]:
    """Return sigma, left vectors of `mix @ stack`, and the first dropped value, squared."""
    m, dim = stack.shape
    triangle: Array = np.empty((0, m))
    for part in slices(stack, mix):
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, part.T]), mode="r"))
    _, sigma, right = np.linalg.svd(triangle, full_matrices=False)
    floor = max(dim, m) * np.finfo(stack.dtype).eps * sigma[0]
    kept = min(k, int(np.count_nonzero(sigma > floor)))
    dropped = float(sigma[kept] ** 2) if kept < len(sigma) else 0.0
    return sigma[:kept], right.T[:, :kept], dropped


def signs(rows: Storage) -> Array:
    """Return +1 or -1 a row that makes its largest entry (the first of equals) positive."""
    if rows.size == 0:
        return np.ones(len(rows))
    # Both ends are compared: the sizes of all entries would be another copy of the rows.
    each, high, low = np.arange(len(rows)), rows.argmax(axis=1), rows.argmin(axis=1)
    top, bottom = rows[each, high], -rows[each, low]
    return np.where((bottom > top) | ((bottom == top) & (low < high)), -1.0, 1.0)

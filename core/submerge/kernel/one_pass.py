"""one_pass(): a low-rank approximation of a kernel matrix K, which is never formed.

n rows take O(n (r + l)) numbers for rank r and l spare columns. The rank is cut at the end:
earlier, as in Nystrom with rank r inside its landmarks, it costs accuracy. For a positive
semi-definite K the approximation never overstates: 0 <= K_hat <= K as matrices, to rounding; and
`error_bound` is proven and needs no second pass. It does not scale, center or cluster, and it needs
all pairs: run it where the rows are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError, UsageError, whole
from submerge.features import draws, sparse
from submerge.features.checks import MOST_SEED
from submerge.features.hadamard import sylvester
from submerge.features.kernels import Kernel
from submerge.features.landmarks import Solid

SIGNS, ROWS, COLUMNS = 0x5248, 0x5249, 0x524A
"""Streams of a seed that the sketch is drawn from; nothing else uses them."""

SQUARABLE = 1e-200
"""Least trusted sum of squares: squares that underflow, below 1e-308 each, do not matter to it."""


@dataclass(frozen=True, slots=True, eq=False)
class LowRankKernel:
    """A kernel matrix as `scores @ scores.T`, and its exact Frobenius norm."""

    scores: Array  # (n, r), zero where K has fewer directions
    coefficients: Array  # a new row x has scores `kernel(x, X) @ coefficients`
    eigenvalues: Array  # (r,), descending, none above K's own
    norm: float

    @property
    def error_bound(self) -> float:
        """Never below |K - K_hat| / |K| (Frobenius), to rounding; often some times as large."""
        # With K_hat <= K each eigenvector v of K_hat has v'Kv >= lambda, so |K - K_hat|^2 = |K|^2 -
        # 2 sum lambda v'Kv + sum lambda^2 <= |K|^2 - sum lambda^2.
        if self.norm == 0:
            return 0.0
        shares = self.eigenvalues / self.norm
        return float(np.sqrt(max(0.0, 1 - float(shares @ shares))))


def columns_of(kernel: Kernel, X: Any, *, block_size: int) -> Iterator[Array]:
    """Yield the kernel matrix of rows X (n, d), dense or CSR, `block_size` columns at a time."""
    X = sparse.checked(X)
    # Transposed, (b, n), since K is symmetric, for products that read memory in order.
    for start in range(0, X.shape[0], whole("block_size", block_size, least=1)):
        # The check below refuses overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            block = kernel(X[start : start + block_size], X)
        if not np.isfinite(block).all():
            raise UsageError(
                "kernel values must be finite, got an overflow: scale the rows,"
                " or lower gamma or the degree"
            )
        yield block


def one_pass(columns: Iterable[Array], sketch: Array, *, rank: int) -> LowRankKernel:
    """Approximate a kernel matrix by one of low rank, in one pass over its columns, O(n^2 c).

    columns : All of K's, in order, as rows (`columns_of`).
    sketch : Omega (n, c) of `sketch_matrix`, with c >= rank, some ten of them spare.

    Pourkamali-Anaraki & Becker, arXiv:1608.07597, Algorithm 1; Tropp et al., NIPS 2017.
    """
    c = sketch.shape[1]
    if whole("rank", rank, least=1) > c:
        raise UsageError(f"rank must be at most the {c} columns of the sketch, got {rank}")
    # The paper has Q = orth(W) for W = K Omega, and B from B (Q' Omega) = Q' W. With all c columns
    # kept in Q that is Q B Q' = W (Omega' W)^+ W', computed from the eigenvectors of the small
    # symmetric Omega' W: symmetric, no negative eigenvalue in spite of rounding, and no QR.
    W, norm = _product(columns, sketch)
    core = sketch.T @ W
    whitened = Solid.of((core + core.T) / 2).roots
    # K_hat = E E': its eigenvalues are those of the small E' E.
    E = W @ whitened
    values, turn = np.linalg.eigh(E.T @ E)
    turn, values = turn[:, ::-1][:, :rank], np.maximum(values[::-1][:rank], 0.0)
    return LowRankKernel(
        scores=_padded(E @ turn, rank),
        coefficients=_padded(sketch @ (whitened @ turn), rank),
        eigenvalues=_padded(values[None], rank)[0],
        norm=norm,
    )


def _product(columns: Iterable[Array], sketch: Array) -> tuple[Array, float]:
    """Return W = K Omega, (n, c), and the norm of K."""
    n, c = sketch.shape
    W, norm, filled = np.empty((n, c)), 0.0, 0
    for block in columns:
        if block.ndim != 2 or block.shape[1] != n or filled + len(block) > n:
            expected = f"(at most {n - filled}, {n})"
            raise ShapeError("the next columns", expected=expected, got=block.shape)
        np.matmul(block, sketch, out=W[filled : filled + len(block)])
        norm = math.hypot(norm, _length(block))
        filled += len(block)
    if filled < n:
        raise UsageError(f"columns must be all {n} of the kernel matrix, got {filled}")
    return W, norm


def sketch_matrix(n: int, columns: int, *, seed: int) -> Array:
    """Return Omega (n, columns), a subsampled randomized Hadamard transform (SRHT)."""
    whole("columns", columns, least=1)
    seed = whole("seed", seed, least=0, most=MOST_SEED)
    # The identity makes the approximation K itself. The paper transforms each column of K in n log
    # n; a product with a thin matrix is faster for a dozen.
    if columns >= whole("n", n, least=1):
        return np.eye(n)
    size = 1 << (n - 1).bit_length()
    # In the first n rows, columns size / 2 apart would agree almost everywhere.
    rows = _order(seed, ROWS, size)[:n]
    # H is symmetric: its rows are its columns.
    chosen = (int(column) for column in _order(seed, COLUMNS, size)[:columns])
    hadamard = np.array([sylvester(range(j, j + 1), size)[0, rows] for j in chosen])
    return np.asarray(draws.signs(seed, SIGNS, n)[:, None] * hadamard.T / np.sqrt(columns))


def _length(block: Array) -> float:
    """Return the root of the summed squares, which alone may over- or underflow."""
    square = float(np.vdot(block, block))
    if SQUARABLE < square < math.inf:
        return math.sqrt(square)
    largest = float(np.abs(block).max(initial=0.0))
    return largest and largest * float(np.linalg.norm(block / largest))


def _order(seed: int, stream: int, n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Return 0..n-1 in random order."""
    return np.argsort(draws.words(seed, stream, n), kind="stable")


def _padded(columns: Array, rank: int) -> Array:
    return np.pad(columns, [(0, 0), (0, rank - columns.shape[1])])

"""One method on one stream: its error over the optimum of its rank, its time and its memory."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from contest.contender import Array, Contender
from submerge import ShapeError, UsageError

CHUNK = 1000
"""Rows whose residual is computed at once."""


class BenchTrial(NamedTuple):
    """What a method did with a stream.

    rank : directions that it shows
    over_optimum : ||Y - Y U U'||^2 over that of the best subspace of the same rank
    us_a_row : processor time, the median of the passes, one reading of the basis included
    peak_bytes : most memory that it held at once; that of LAPACK is not seen
    """

    rank: int
    over_optimum: float
    us_a_row: float
    peak_bytes: int


def tried(
    make: Callable[[], Contender],
    rows: Array,
    *,
    block: int,
    passes: int = 3,
    tail: Array | None = None,
) -> BenchTrial:
    """Let a method learn rows (n, dim) in blocks, `passes` times, and once more for its memory.

    tail : `tails(rows)`, where it is known

    UsageError if its basis is not (dim, rank) with orthonormal columns, rank below both n and dim.
    """
    seconds, shown = [], np.empty((0, 0))
    for _ in range(passes):
        contender, own = make(), rows.copy()
        began = time.process_time()
        shown = learnt(contender, own, block)
        seconds.append(time.process_time() - began)
    basis = _checked(shown, rows.shape)
    own = rows.copy()
    peak = peak_bytes(lambda: learnt(make(), own, block))
    missed = tails(rows) if tail is None else tail
    rank = basis.shape[1]
    over = residual(rows, basis) / float(missed[rank])
    return BenchTrial(rank, over, 1e6 * statistics.median(seconds) / len(rows), peak)


def learnt(contender: Contender, rows: Array, block: int) -> Array:
    """Return the basis after a method has learnt rows, in blocks; rows may be overwritten."""
    for first in range(0, len(rows), block):
        contender.partial_fit(rows[first : first + block])
    return contender.basis()


def residual(X: Array, basis: Array) -> float:
    """Return ||X - X U U'||^2 of rows X (n, dim) and a basis U (dim, rank)."""
    return float(sum(np.sum((part - part @ basis @ basis.T) ** 2) for part in _chunks(X)))


def tails(X: Array) -> Array:
    """Return what the best rank r misses, for r = 0, 1, ...: sums of squared singular values."""
    n, dim = X.shape
    values = np.linalg.eigvalsh(X @ X.T if n < dim else X.T @ X)
    return np.cumsum(np.maximum(values, 0.0))[::-1]


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the most memory that `run` held at once; LAPACK's own is not seen."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _checked(shown: Any, shape: tuple[int, ...]) -> Array:
    """Return a method's basis as an array, if it is one of rows of that shape, (n, dim)."""
    n, dim = shape
    try:
        basis = np.asarray(shown, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"basis() must be an array, got {type(shown).__name__}") from error
    if basis.ndim != 2 or len(basis) != dim or not basis.shape[1]:
        raise ShapeError("basis()", expected=f"({dim}, rank)", got=basis.shape)
    if basis.shape[1] >= min(n, dim):
        most = min(n, dim) - 1  # the best subspace of more misses nothing to compare with
        raise ShapeError("basis()", expected=f"({dim}, {most}) or less", got=basis.shape)
    off = np.abs(basis.T @ basis - np.eye(basis.shape[1])).max()
    if not off < 1e-6:
        raise UsageError(f"basis() must have orthonormal columns, got some off by {off:.2g}")
    return basis


def _chunks(X: Array) -> Iterator[Array]:
    for start in range(0, len(X), CHUNK):
        yield X[start : start + CHUNK]

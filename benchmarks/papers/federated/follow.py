"""follow(): a method learns a stream; its error over time, ranks and seconds are written down.

The error over time is that of the paper: after t rows, ||Y - U U' Y||_F^2 / t of all rows so far
with the subspace U of that moment. It comes from the running sum of y y', not from the rows: a
block costs O(b dim^2), whatever came before it. The authors' scripts take the subspace before the
newest block for SAPCA, SPCA and the power method, and the newest one for SPIRIT and FD; here all
methods have the newest.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from contest.contender import Contender
from submerge_lab.replay.over_time import ErrorOverTime

Array = np.ndarray

ROUNDING = 1e-9
"""Errors of abs U below this are drawn at it: submerge is exact on few columns, at 1e-25 or so."""


@dataclass
class Followed:
    """What a method did, at the end of each block.

    rows : rows so far
    ranks : directions shown
    errors : ||Y - U U' Y||_F^2 / t over all rows so far
    relative : mean of ||y - U U' y||^2 / ||y||^2 over the block's rows, U from before the block;
        None for the first block
    seconds : processor time of learning
    basis : (dim, rank), the last one
    """

    rows: list[int] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    relative: list[float | None] = field(default_factory=list)
    seconds: float = 0.0
    basis: Array = field(default_factory=lambda: np.empty((0, 0)))


def blocks(X: Array, size: int) -> Iterator[Array]:
    """Yield the rows in blocks; a last one may be shorter."""
    for first in range(0, len(X), size):
        yield X[first : first + size]


def follow(method: Contender, X: Array, block: int) -> Followed:
    """Let a method learn rows X (n, dim) in blocks; write down how it went."""
    made, over_time = Followed(), ErrorOverTime(X.shape[1])
    for part in blocks(X, block):
        made.relative.append(_relative(part, made.basis) if made.rows else None)
        began = time.process_time()
        method.partial_fit(part.copy())
        made.seconds += time.process_time() - began
        made.basis = method.basis()
        over_time.add(part)
        made.rows.append((made.rows[-1] if made.rows else 0) + len(part))
        made.ranks.append(made.basis.shape[1])
        made.errors.append(over_time.error(made.basis))
    return made


def optimum(X: Array, block: int, rank: int) -> list[float]:
    """Return what the best subspace of a rank misses of all rows so far, per row, over time."""
    scatter, rows, found = np.zeros((X.shape[1], X.shape[1])), 0, []
    for part in blocks(X, block):
        scatter += part.T @ part
        rows += len(part)
        values = np.linalg.eigvalsh(scatter)
        found.append(float(np.maximum(values[: X.shape[1] - rank], 0.0).sum()) / rows)
    return found


def offline(X: Array, rank: int | None = None) -> Array:
    """Return the leading directions (dim, rank) of rows X (n, dim), by eigenvectors of X'X."""
    return np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :rank]


def over_optimum(found: Followed, tail: Array) -> float | None:
    """Return the last error over that of the best subspace of its rank; None at full rank.

    tail : `measure.tails` of all rows
    """
    rank = found.ranks[-1]
    return None if rank >= len(tail) else float(found.errors[-1] * found.rows[-1] / tail[rank])


def absolute_mse(found: Array, true: Array) -> float:
    """Return the scripts' error of a subspace: the mean square of |U| - |V|, entry by entry.

    Only as many directions are compared as both have. It is no distance of subspaces: another basis
    of the same subspace has another error, and so have directions of nearly equal variance.
    """
    rank = min(found.shape[1], true.shape[1])
    return float(np.mean((np.abs(found[:, :rank]) - np.abs(true[:, :rank])) ** 2))


def _relative(part: Array, basis: Array) -> float:
    energy = np.sum(part**2, axis=1)
    missed = energy - np.sum((part @ basis) ** 2, axis=1)
    return float(np.mean(missed[energy > 0] / energy[energy > 0])) if energy.any() else 0.0

"""The leading eigenvectors of a block's Gram matrix G, from those of the block before, certified.

Absorbing a block needs them, and the past's directions are nearly those (docs/mathematics.md,
"Steps"). For any orthonormal V (m, k) the memory M'VV'M never overstates M'M, and what it lacks has
the eigenvalues of

    D = (I - VV') G (I - VV').

A Cholesky factorisation of `bound I - D` that succeeds proves that `bound` is at least the largest
of them. A bound beyond `TRIES` times its Ritz value is refused: the caller then solves it all.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from submerge._linalg import (
    EPS,
    GUARD,
    LEAST_SINGLE,
    MOST_SINGLE,
    Array,
    Eigen,
    Mix,
    Storage,
    inner,
)

LEAST, MOST = 1e-50, 1e50  # squared size of rows whose Gram matrix may be multiplied with itself

SPARE = 5
"""Least number of fixed vectors beside the past's directions: a jump, a late sensor or noise
brings new directions to light through them."""

FEWEST = 80
"""Fewest rows for which the steps are shorter than the full eigenproblem by enough to pay for
being approximate; below them, sums of squares are those of Algorithm 3 to rounding."""

WIDE, WIDEST = 1500, 3000
"""Columns up to which a block of 100 rows in all is fastest, and one of 80; above, products with
the rows take nearly all of the time, and the full eigenproblem of a small block is exact."""

SHARE = 2.5  # fewest rows for each vector that is iterated
TRIES = (1.1, 1.3)  # tried by the certificate, over the Ritz value of the first direction left out

GUARD_SINGLE = 1e-4
"""Smallest eigenvalue, over all that float32 products summed, that they are trusted with: their
rounding is some 1e-7 of that."""


def vectors_beside(k: int) -> int:
    """Return how many fixed vectors go with `k` directions: kernels want multiples of four."""
    return SPARE + -(k + SPARE) % 4


def block_rows(dim: int, k: int, asked: int | None = None) -> int:
    """Return how many rows a block of the low-rank path has, for `k` directions."""
    # The fastest: eigenproblem and certificate are spread over a block, but the Gram matrix takes
    # more a row the larger it is. More rows at once take several times as long a row, and memory.
    vectors = 3 * (k + vectors_beside(k))
    most = max(100, vectors) - k
    if asked is not None:
        return min(asked, max(most, k + 30))
    if dim > WIDEST:
        return k + 30
    return most if dim <= WIDE else max(FEWEST, vectors) - k


def pays(m: int, k: int) -> bool:
    """Return whether the steps are faster for the leading `k` of `m` rows."""
    return m >= max(FEWEST, SHARE * (k + vectors_beside(k)))


def decomposed(stack: Storage, old: int, k: int, *, mix: Mix, cancelled: float) -> Eigen:
    """Return leading eigenpairs of the Gram matrix of `mix @ stack`; float32 if good enough."""
    m, dim = stack.shape
    kept = min(k, m, dim)
    if stack.dtype == np.float32:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            gram = inner(stack, as_stored=True)
        raw = float(gram.diagonal()[old:].sum())
        if LEAST_SINGLE < raw < MOST_SINGLE:
            mixed = mix.of_gram(gram)
            values, vectors, dropped, _ = _eigen(mixed, old, kept, dim)
            if values[-1] > GUARD_SINGLE * (float(values[0]) + raw + cancelled):
                return Eigen(values, vectors, dropped, single=True)
    return _eigen(mix.of_gram(inner(stack)), old, kept, dim)


def _eigen(gram: Array, old: int, k: int, dim: int) -> Eigen:
    return (certified(gram, old, k) if k < dim else None) or Eigen.of(gram, k)


def certified(gram: Array, old: int, k: int) -> Eigen | None:
    """Return nearly the leading `k` eigenpairs of a Gram matrix (m, m), if that pays."""
    # 2 m^2 (5 k + spare) + m^3 / 3 flops, a QR of (m, k + spare) and an eigenproblem of k + spare.
    m, diagonal = len(gram), gram.diagonal()
    largest = float(diagonal.max(initial=0.0))
    if old < k or not pays(m, k) or not LEAST < largest < MOST:
        return None
    if not diagonal[:old].min() > GUARD**2 * largest:
        return None
    # Two products with G: more changed the error of no stream that we tried by a tenth, and
    # rounding between them stays below the eigenvalues that `GUARD` lets through.
    basis, _ = np.linalg.qr(gram @ (gram @ _start(gram, old)))
    images = gram @ basis
    theta, mix = np.linalg.eigh(basis.T @ images)
    # Ascending: the leading ones are the last.
    values, mix, beyond = theta[: -k - 1 : -1], mix[:, : -k - 1 : -1], float(theta[-k - 1])
    vectors = basis @ mix
    bound = _proven(gram, values, vectors, images @ mix, beyond)
    return None if bound is None else Eigen(values, vectors, bound)


def _start(gram: Array, old: int) -> Array:
    """Return where the steps begin, (m, old + spare), times a power of G."""
    # The rows' coordinates along the past's directions, G e_i / sigma_i, and fixed G w less those.
    m = len(gram)
    fixed = _fixed(m - old, vectors_beside(old))
    start = np.empty((m, old + fixed.shape[1]))
    along = np.divide(gram[:, :old], np.sqrt(gram.diagonal()[:old]), out=start[:, :old])
    np.subtract(gram[:, old:] @ fixed, along @ (along[old:].T @ fixed), out=start[:, old:])
    return start


def _proven(
    gram: Array, values: Array, vectors: Array, images: Array, beyond: float
) -> float | None:
    """Return a bound on what V (m, k) lacks that Cholesky proves, or None; images are G V."""
    m = len(gram)
    # (I - VV') G (I - VV') = G - V H' - H V'  with  H = G V - V diag(values) / 2
    half = images - vectors * (0.5 * values)
    pair, riap = (vectors, half), (half, vectors)
    shifted = np.concatenate(pair, axis=1) @ np.concatenate(riap, axis=1).T
    shifted -= gram
    diagonal = shifted.reshape(-1)[:: m + 1]
    lacking = -diagonal
    # What is lacking in one direction is part of what is lacking in all.
    most = max(0.0, float(lacking.sum()))
    for times in TRIES:
        bound = min(max(0.0, times * beyond), most)
        # That of the products above, and of a factorisation that succeeds: it is exact for a
        # matrix that is this near. (Higham 2002, Theorem 10.3.)
        rounding = 2 * m * EPS * (float(gram.diagonal().sum()) + m * bound)
        np.subtract(bound + rounding, lacking, out=diagonal)
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            continue
        return bound + 3 * rounding
    return None


@lru_cache(maxsize=8)
def _fixed(n: int, count: int) -> Array:
    """Return vectors (n, count) without a pattern: cos(sqrt(p) i^2) for row i and a prime p."""
    primes = [p for p in range(2, 60) if all(p % q for q in range(2, p))]
    rows = np.arange(1.0, n + 1)[:, None]
    fixed = np.cos(np.sqrt(primes[:count]) * rows**2)
    fixed.flags.writeable = False
    return np.asarray(fixed)

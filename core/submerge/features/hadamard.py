"""Orthogonal directions from signs alone: H D H D H D, dense and fast (arXiv:1610.09072).

H is the Hadamard matrix of size p (Sylvester's, +-1), each D a diagonal of random signs. M = H D3 H
D2 H D1 holds whole numbers, M M' = p^3 I, and its rows have nearly random directions. Gaussian
matrices would need a QR, whose last bits depend on the BLAS.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from submerge._linalg import Array

FEWEST = 64
"""Smallest p. A smaller p has too few choices of signs: with p = 2 the error never ends."""

RADIX = 16  # size of the small H: benchmarks/features.md compares others


def padded_size(channels: int) -> int:
    """Return the size of H for that many channels: a power of two."""
    return max(FEWEST, 1 << (channels - 1).bit_length())


def rows_of(D: Array, rows: range) -> Array:
    """Return these rows of M for signs D (3, p), whole numbers: (rows, p), exact in any order."""
    first, second, third = D
    R = butterflies(sylvester(rows, D.shape[1]) * third)
    return np.asarray(butterflies(R * second) * first)


def multiply(X: Array, signs: Array, n: int) -> Array:
    """Return products (rows, n) with the first rows of M_1, M_2, ... by signs (blocks, 3, p)."""
    blocks, p, low = len(signs), X.shape[1], _needed(signs, n)
    Y = transform((X[:, None] * signs[:, 0]).reshape(-1, p)).reshape(-1, blocks, p)
    Y = transform((Y * signs[:, 1]).reshape(-1, p)).reshape(-1, blocks, p)
    # H = H_high x H_low, and its first rows have the first row of H_high: all ones.
    Y = (Y * signs[:, 2]).reshape(-1, p // low, low).sum(axis=1)
    return transform(Y).reshape(len(X), blocks * low)[:, :n]


def multiply_back(Y: Array, signs: Array) -> Array:
    """Return the combinations Y (rows, n) of the first rows of M_1, M_2, ...: (rows, p)."""
    rows, n = Y.shape
    blocks, _, p = signs.shape
    low = _needed(signs, n)
    Y = np.pad(Y, ((0, 0), (0, blocks * low - n))).reshape(-1, low)
    Y = np.tile(transform(Y), p // low).reshape(rows, blocks, p)
    Y = transform((Y * signs[:, 2]).reshape(-1, p)).reshape(rows, blocks, p)
    Y = transform((Y * signs[:, 1]).reshape(-1, p)).reshape(rows, blocks, p)
    return np.asarray((Y * signs[:, 0]).sum(axis=1))


def transform(X: Array) -> Array:
    """Return X H for rows X (n, p) by products with small H, which is faster than sums alone."""
    rows, p = X.shape
    done = min(p, RADIX)
    Y = X.reshape(-1, done) @ _small(done)
    while done < p:
        # H_(r done) = H_r x H_done, and the product with H_done is finished.
        r = min(p // done, RADIX)
        Y = np.matmul(_small(r), Y.reshape(-1, r, done))
        done *= r
    return np.asarray(Y).reshape(rows, p)


def butterflies(X: Array) -> Array:
    """Return X H for rows X (n, p) by sums and differences alone."""
    rows, p = X.shape
    half = 1
    while half < p:
        pairs = X.reshape(rows, -1, 2, half)
        X = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    return X.reshape(rows, p)


def sylvester(rows: range, p: int) -> Array:
    """Return these rows of H (p, p): -1 where i and j share an odd number of bits."""
    shared = np.array(rows, dtype=np.uint32)[:, None] & np.arange(p, dtype=np.uint32)
    for shift in (16, 8, 4, 2, 1):
        shared ^= shared >> np.uint32(shift)
    return 1.0 - 2.0 * (shared & np.uint32(1)).astype(np.float64)


def _needed(signs: Array, n: int) -> int:
    """Return how many rows of each H are needed, as a power of two."""
    blocks, _, p = signs.shape
    return min(1 << (n - 1).bit_length(), p) if blocks == 1 else int(p)


@lru_cache(maxsize=8)
def _small(p: int) -> Array:
    return sylvester(range(p), p)

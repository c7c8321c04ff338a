"""disLS: which rows the leading directions depend on, from one small triangle for all rows.

A participant embeds its rows as E (n, t) and sends R of E = QR, t (t + 1) / 2 numbers; parents
merge by QR, in any tree. A row's score is its leverage |e R^+|^2 in the pooled E: t scores in all.
Random sums of rows (`summed`), as in the paper, would save no numbers, and scores would be off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from submerge._linalg import Array
from submerge.features.count_sketch import Buckets

SOLID = 1e-6
"""Least singular value of R, over its largest, that a row's score counts: features are float32."""

ROUNDED = 2e-6
"""Error of a row's features, over their length: the order of sums depends on how many rows are
mapped at once."""

ROWS = 4096
"""Rows whose features are held at once."""


def triangle_of(parts: Sequence[Array], t: int) -> Array:
    """Return R (t, t), its diagonal not negative, of rows (n, t) in one part or more."""
    R: Array = np.zeros((t, t))
    for part in parts:
        for start in range(0, len(part), ROWS):
            R = np.asarray(np.linalg.qr(np.vstack([R, part[start : start + ROWS]]), mode="r"))
    flips = np.where(np.diag(R) < 0, -1.0, 1.0)
    return np.asarray(np.triu(R * flips[:, None]))


def scores(E: Array, R: Array) -> Array:
    """Return the leverage (n,) of embedded rows E (n, t), for the triangle of all rows."""
    sigma, V = _solid(R)
    whitened = E @ (V.T / sigma)
    return np.asarray(np.einsum("ij,ij->i", whitened, whitened))


def slack(E: Array, R: Array, found: Array) -> Array:
    """Return by how much the rounding of features may change scores that were found: (n,)."""
    sigma, _ = _solid(R)
    off = ROUNDED * np.sqrt(np.einsum("ij,ij->i", E, E)) / sigma.min(initial=np.inf)
    return np.asarray((2 * np.sqrt(found) + off) * off)


def _solid(R: Array) -> tuple[Array, Array]:
    """Return the singular values (r,) of a triangle that are more than rounding, and V' (r, t)."""
    _, sigma, V = np.linalg.svd(R)
    solid = sigma > SOLID * sigma[0]
    return sigma[solid], V[solid]


def summed(E: Array, columns: int, *, seed: int) -> Array:
    """Return `columns` random sums of the rows of E (n, t), with signs: (columns, t)."""
    buckets = Buckets.draw(columns, seed=seed, stream=0, channels=len(E))
    return buckets.sums(E.T).T


def packed(triangle: Array) -> Array:
    """Return the t (t + 1) / 2 numbers of an upper triangle, row by row."""
    return np.asarray(triangle[np.triu_indices(len(triangle))])


def unpacked(numbers: Array, t: int) -> Array:
    """Return the upper triangle (t, t) of its numbers."""
    triangle = np.zeros((t, t))
    triangle[np.triu_indices(t)] = numbers
    return triangle

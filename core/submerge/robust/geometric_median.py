"""Geometric medians: the point with the least sum of distances (not squared) to the members.

One forged member can move a mean anywhere. The geometric median stays near the honest members as
long as they are more than half, however far off the others are. This module has medians of
points, and of subspaces by their projectors, dim x dim matrices that are never formed.

It uses Weiszfeld's iteration: a mean is repeated with each member weighed by one over its
distance to the mean before. The same members in the same order give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array, Storage

ROUNDS, SETTLED = 100, 1e-4
"""Most rounds, and the change of a member's weight, relative, that ends them."""

TOUCHING = 1e-3
"""Least distance of a member, so that the iteration never divides by zero. For points its unit is
their median distance to the middle."""

SPARE, PASSES = 8, 4
"""Spare directions of the span, and passes over the members to find it."""


class Projector(NamedTuple):
    """A subspace given by its projector, basis diag(shares) basis.T.

    basis : (dim, k), orthonormal, float32 or float64
    shares : (k,), above 0 and at most 1; below 1 for directions that are not certain
    """

    basis: Storage
    shares: Array


@dataclass(frozen=True, slots=True, eq=False)
class Middle:
    """A geometric median of projectors: span matrix span.T.

    span : (dim, q), orthonormal
    matrix : (q, q), symmetric, of eigenvalues 0 to 1
    """

    span: Array
    matrix: Array

    def within(self, basis: Storage) -> Array:
        """Return the median restricted to the columns of a basis (dim, k): (k, k)."""
        seen = basis.T @ self.span
        return np.asarray(seen @ self.matrix @ seen.T, dtype=np.float64)


def of_projectors(members: Sequence[Projector]) -> Middle:
    """Return the geometric median of projectors, in the Frobenius norm.

    It is sought among matrices on the span that many members share. Every direction that a
    quarter of them have is in that span, since its dimension is the most eigenvalues of that
    size that the mean projector's trace allows. A member's part beyond the span counts in its
    distance.

    Parameters
    ----------
    members : sequence of Projector
        One or more, each with at least one direction. Each counts once.

    Notes
    -----
    O(n k dim q) for n members of k directions, where q is four times the k of the mean member,
    and n k q^2 a round. n = 1000, dim = 512, k = 10 takes about half a second.
    """
    span = _span(members)
    held = np.array([len(each.shares) for each in members])
    starts = np.concatenate([[0], np.cumsum(held)[:-1]])
    shares = np.concatenate([each.shares for each in members])
    rows = np.vstack([each.basis.T @ span for each in members]) * np.sqrt(shares)[:, None]
    # These are norms of whole members, not of their parts in the span.
    squares = np.add.reduceat(shares**2, starts)

    weights = np.full(len(members), 1 / len(members))
    for _ in range(ROUNDS):
        middle = (rows * np.repeat(weights, held)[:, None]).T @ rows
        products = np.add.reduceat(((rows @ middle) * rows).sum(axis=1), starts)
        distances = np.maximum(0.0, squares - 2 * products + np.vdot(middle, middle))
        new = 1 / np.sqrt(distances + TOUCHING**2)
        new /= new.sum()
        moved = np.abs(new / weights - 1).max()
        weights = new
        if moved < SETTLED:
            break
    return Middle(span, middle)


def of_points(points: Array) -> Array:
    """Return the geometric median of points (n, dim), one or more: (dim,)."""
    # Points are taken about the first: an offset common to all costs no digits.
    origin = points[0]
    off = points - origin
    middle = np.median(off, axis=0)
    touching = TOUCHING * float(np.median(np.linalg.norm(off - middle, axis=1)))
    for _ in range(ROUNDS):
        distances = np.hypot(np.linalg.norm(off - middle, axis=1), touching)
        if not distances.all():
            break  # more than half of the points coincide
        weights = distances.min() / distances
        new = weights @ off / weights.sum()
        moved, middle = float(np.linalg.norm(new - middle)), new
        if moved <= SETTLED * touching:
            break
    return np.asarray(origin + middle)


def _span(members: Sequence[Projector]) -> Array:
    """Return an orthonormal basis (dim, q) of the shared span, by subspace iteration."""
    dim = len(members[0].basis)
    shared = 4 * sum(float(each.shares.sum()) for each in members) / len(members)
    q = min(dim, int(np.ceil(shared)) + SPARE)
    if q == dim:
        return np.eye(dim)
    # The start is fixed, and random so that members are not orthogonal to it by design.
    span: Array = np.random.Generator(np.random.Philox(key=0)).standard_normal((dim, q))
    for _ in range(PASSES):
        image = np.zeros((dim, q))
        for basis, shares in members:
            image += basis @ (shares[:, None] * (basis.T @ span))
        span = np.linalg.qr(image)[0]
    return span

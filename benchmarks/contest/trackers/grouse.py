"""Grouse: gradient steps on the Grassmannian, one for each row.

References
----------
Balzano, Nowak & Recht, Online Identification and Tracking of Subspaces from Highly Incomplete
Information, Allerton 2010; Zhang & Balzano, Global Convergence of a Grassmannian Gradient Descent
Algorithm for Subspace Estimation, AISTATS 2016 (the greedy step).
"""

from __future__ import annotations

import math

import numpy as np

from contest.contender import Array


class Grouse:
    """GROUSE on rows without gaps.

    step : float or None
        The angle of the i-th step is `step * ||r|| ||p|| / i`, with the row brought to length 1 and
        split into its part p in the subspace and its rest r; a step of a quarter turn or more is
        left out, as in the authors' code. None is the greedy step, atan(||r|| / ||p||).
    seed : Of the first basis.
    """

    def __init__(self, rank: int, step: float | None = 2.0, seed: int = 0) -> None:
        self._rank, self._step = rank, step
        self._rng = np.random.default_rng(seed)
        self._U: Array | None = None
        self._count = 0

    def partial_fit(self, block: Array) -> None:
        """Turn the subspace towards each row."""
        if self._U is None:
            self._U = np.linalg.qr(self._rng.standard_normal((block.shape[1], self._rank)))[0]
        for row in block:
            self._turn(self._U, row)
        # Rounding moves U off orthogonality by some 1e-16 a row.
        self._U = np.linalg.qr(self._U)[0]

    def _turn(self, U: Array, row: Array) -> None:
        length = self._length(row)
        self._count += 1
        if length == 0.0:
            return
        x = row / length
        w = U.T @ x
        p = U @ w
        r = x - p
        size_w, size_r = math.sqrt(w.dot(w)), math.sqrt(r.dot(r))
        if size_w < 1e-12 or size_r < 1e-12:
            return
        if self._step is None:
            angle = math.atan2(size_r, size_w)
        else:
            angle = self._step * size_r * size_w / self._count
            if angle >= math.pi / 2:
                return
        turn = (math.cos(angle) - 1.0) / size_w * p + math.sin(angle) / size_r * r
        U += turn[:, None] * (w / size_w)

    def _length(self, row: Array) -> float:
        """Return what a row is divided by before its step."""
        return math.sqrt(row.dot(row))

    def basis(self) -> Array:
        """Return the basis."""
        return np.empty((0, 0)) if self._U is None else self._U

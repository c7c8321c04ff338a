"""Spirit: hidden variables that follow each row (PAST), as many as hold a share of the energy.

References
----------
Papadimitriou, Sun & Faloutsos, Streaming Pattern Discovery in Multiple Time-Series, VLDB 2005;
Yang, Projection Approximation Subspace Tracking, IEEE Trans. Signal Processing 1995.
"""

from __future__ import annotations

import math

import numpy as np

from contest.contender import Array

FIRST_ENERGY = 1e-3
"""The energy that each hidden variable begins with."""


class Spirit:
    """SPIRIT.

    rank : Hidden variables at first, and for good if `energy` is None.
    forgetting : What each row multiplies the energies of the past by. The paper takes 0.96.
    energy : (float, float) or None. The share of the energy that the hidden variables are to hold;
        the paper: (0.95, 0.98).

    Notes
    -----
    Its directions are close to orthogonal, but are not; `basis` makes them so.
    """

    def __init__(
        self,
        rank: int,
        forgetting: float = 0.96,
        energy: tuple[float, float] | None = (0.95, 0.98),
    ) -> None:
        self._rank, self._fade, self._energy = rank, forgetting, energy
        self._W: Array = np.empty((0, 0))  # a hidden variable's direction is a row
        self._d: list[float] = []
        self._seen = self._held = 0.0

    def partial_fit(self, block: Array) -> None:
        """Follow each row."""
        dim = block.shape[1]
        if not self._W.size:
            self._W, self._d = np.eye(self._rank, dim), [FIRST_ENERGY] * dim
        for row in block:
            self._follow(row)

    def _follow(self, row: Array) -> None:
        x, held, d = row.copy(), 0.0, self._d
        for i, w in enumerate(self._W):
            y = float(w.dot(x))
            d[i] = energy = self._fade * d[i] + y * y
            w += y / energy * (x - y * w)
            # Off what the moved direction shows of it.
            w /= math.sqrt(w.dot(w))
            y = float(w.dot(x))
            x -= y * w
            held += y * y
        self._seen = self._fade * self._seen + float(row @ row)
        self._held = self._fade * self._held + held
        if self._energy is not None:
            self._adapt(*self._energy)

    def _adapt(self, low: float, high: float) -> None:
        k, dim = self._W.shape
        if self._held < low * self._seen and k < dim:
            new = np.zeros(dim)
            new[k] = 1.0
            new -= self._W.T @ (self._W @ new)
            size = math.sqrt(new.dot(new))
            if size > 0.0:
                self._W = np.vstack([self._W, new / size])
                self._d[k] = FIRST_ENERGY
        elif self._held > high * self._seen and k > 1:
            self._W = self._W[:-1].copy()

    def basis(self) -> Array:
        """Return the hidden variables' directions, made orthonormal."""
        return np.asarray(np.linalg.qr(self._W.T)[0])

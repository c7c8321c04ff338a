"""Algorithms of the centre paper to the letter, to run beside ours: SPCA, and the merge of two.

Grammenos, Mendoza-Smith, Mascolo & Crowcroft, *Federated PCA with Adaptive Rank Estimation*,
arXiv:1907.08059v1. Nothing is centered.
"""

import numpy as np

import measure

Array = measure.Array

Factors = tuple[Array, Array]
"""U (dim, k), orthonormal, and sigma (k,)."""


class Algorithm3:
    """The paper's SPCA, to the letter: project once, QR of the residual, small SVD."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._U = self._s = None

    def partial_fit(self, block: Array) -> None:
        """Learn a block of columns."""
        B, r = block.T, self._rank
        if self._U is None:
            U, s, _ = np.linalg.svd(B, full_matrices=False)
            self._U, self._s = np.ascontiguousarray(U[:, :r]), s[:r]
            return
        U, k = self._U, len(self._s)
        Z = U.T @ B
        Q, R = np.linalg.qr(B - U @ Z)
        small = np.block([[np.diag(self._s), Z], [np.zeros((len(R), k)), R]])
        V, s, _ = np.linalg.svd(small, full_matrices=False)
        self._U, self._s = U @ V[:k, :r] + Q @ V[k:, :r], s[:r]

    def basis(self) -> Array:
        """Return U."""
        return self._U

    def factors(self) -> Factors:
        """Return U and sigma: what is merged."""
        return self._U, self._s


def algorithm2(one: Factors, two: Factors, rank: int, lam: tuple[float, float] = (1, 1)) -> Factors:
    """Merge by projection and QR: the paper's Algorithm 2, corrected.

    As printed, lambda_2 weighs the lower right block alone; without it on both
    right-hand blocks the result is not Algorithm 4's.
    """
    (U1, s1), (U2, s2) = one, two
    Z = U1.T @ U2
    Q, R = np.linalg.qr(U2 - U1 @ Z)
    right = np.vstack([Z, R]) * (lam[1] * s2)
    left = np.vstack([np.diag(lam[0] * s1), np.zeros((len(R), len(s1)))])
    V, s, _ = np.linalg.svd(np.hstack([left, right]), full_matrices=False)
    k = len(s1)
    return U1 @ V[:k, :rank] + Q @ V[k:, :rank], s[:rank]

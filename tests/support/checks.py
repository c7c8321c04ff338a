"""What holds for every subspace, however it came about."""

from __future__ import annotations

import numpy as np

from submerge import Subspace
from support.oracle import Twin, scatter_of

EPS = float(np.finfo(np.float64).eps)


def orthonormal(basis: np.ndarray, tolerance: float = 1e-12) -> None:
    """||U'U - I||_2, in the precision of the basis: 1e-12, or 1e-5 for float32."""
    U = np.asarray(basis, dtype=np.float64)
    defect = np.linalg.norm(U.T @ U - np.eye(U.shape[1]), 2) if U.shape[1] else 0.0
    assert defect <= (1e-5 if basis.dtype == np.float32 else tolerance), defect


def never_overstates(subspace: Subspace, truth: Twin, *, blocks: int) -> None:
    """Every law of MATHEMATICS section 1 that holds at any rank.

    The tolerance is 1e-12 lambda_1 sqrt(blocks) (1e-5 for float32), and what float64's
    digits of the mean cost: each block measures from a mean rounded to EPS |mean|.
    """
    single = subspace.basis.dtype == np.float32
    eigenvalues = truth.eigenvalues
    rounded = EPS * float(np.linalg.norm(truth.mean)) * truth.weight**0.5
    size = eigenvalues[0]
    slack = (1e-5 if single else 1e-12) * size * np.sqrt(blocks) + 1e-300
    slack += 4 * blocks * (2 * rounded * size**0.5 + rounded**2)
    share = 1e-5 if single else 1e-11

    orthonormal(subspace.basis)
    assert (np.diff(subspace.sigma) <= 0).all()
    assert (subspace.sigma > 0).all()
    assert np.isclose(subspace.weight, truth.weight, rtol=1e-12)
    scale = max(1e-300, float(np.abs(truth.mean).max()), (size / truth.weight) ** 0.5)
    assert np.abs(subspace.mean - truth.mean).max() <= (1e-6 if single else 1e-11) * scale
    assert np.isclose(subspace.energy, truth.energy, rtol=share, atol=slack)

    missing = truth.scatter - scatter_of(subspace)
    assert np.linalg.eigvalsh(missing)[0] >= -slack
    assert np.isclose(
        np.trace(missing), subspace.frobenius_bound, atol=slack * truth.scatter.shape[0]
    )
    # What is missing from one direction is part of what is missing from all.
    assert subspace.spectral_bound <= subspace.frobenius_bound + slack * len(eigenvalues)
    # What was claimed to be missing bounds what is missing, eigenvalue by eigenvalue.
    lower = np.zeros_like(eigenvalues)
    lower[: subspace.rank] = subspace.sigma**2
    assert (lower <= eigenvalues + slack).all()
    assert (eigenvalues <= lower + subspace.spectral_bound + slack).all()
    # The error of the subspace, and what is left of the optimum, lie below the bound.
    U = np.asarray(subspace.basis, dtype=np.float64)
    off = np.eye(len(U)) - U @ U.T
    error = float(np.trace(off @ truth.scatter @ off))
    slack *= truth.scatter.shape[0]
    assert eigenvalues[subspace.rank :].sum() - slack <= error <= subspace.frobenius_bound + slack

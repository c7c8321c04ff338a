"""What holds for every subspace, however it came about."""

from __future__ import annotations

import numpy as np

from submerge import Subspace
from submerge.pca.whole_scatter import WholeScatter
from support.oracle import Twin, scatter_of

EPS = float(np.finfo(np.float64).eps)

SINGLE = 1e-6
"""Largest rounding of a whole scatter through a few levels, each to float32, of its energy."""


def orthonormal(basis: np.ndarray, tolerance: float = 1e-12) -> None:
    """||U'U - I||_2, in the precision of the basis: 1e-12, or 1e-5 for float32."""
    U = np.asarray(basis, dtype=np.float64)
    defect = np.linalg.norm(U.T @ U - np.eye(U.shape[1]), 2) if U.shape[1] else 0.0
    assert defect <= (1e-5 if basis.dtype == np.float32 else tolerance), defect


def same_bytes(whole: Subspace, cut: Subspace) -> None:
    """What two engines have learnt from the same rows in other calls: the same bytes."""
    assert whole.basis.tobytes() == cut.basis.tobytes()
    assert whole.sigma.tobytes() == cut.sigma.tobytes()
    assert whole.mean.tobytes() == cut.mean.tobytes()
    assert whole.weight == cut.weight
    assert whole.energy == cut.energy


def tolerance(truth: Twin, *, blocks: int, single: bool = False) -> float:
    """1e-12 lambda_1 sqrt(blocks) (1e-5 for float32), and what float64's digits of the mean cost.

    Each block measures from a mean rounded to EPS |mean|.
    """
    size = truth.eigenvalues[0]
    rounded = EPS * float(np.linalg.norm(truth.mean)) * truth.weight**0.5
    slack = (1e-5 if single else 1e-12) * size * np.sqrt(blocks) + 1e-300
    return float(slack + 4 * blocks * (2 * rounded * size**0.5 + rounded**2))


def never_overstates(subspace: Subspace, truth: Twin, *, blocks: int) -> None:
    """Every law of MATHEMATICS section 1 that holds at any rank, to `tolerance`."""
    single = subspace.basis.dtype == np.float32
    eigenvalues, size = truth.eigenvalues, truth.eigenvalues[0]
    slack = tolerance(truth, blocks=blocks, single=single)
    share = 1e-5 if single else 1e-11

    orthonormal(subspace.basis)
    assert (np.diff(subspace.sigma) <= 0).all()
    assert (subspace.sigma > 0).all()
    assert np.isclose(subspace.weight, truth.weight, rtol=1e-12)
    scale = max(1e-300, float(np.abs(truth.mean).max()), (size / truth.weight) ** 0.5)
    assert np.abs(subspace.mean - truth.mean).max() <= (1e-6 if single else 1e-11) * scale
    assert np.isclose(subspace.energy, truth.energy, rtol=share, atol=slack)

    _has_energies(subspace.channel_energies, subspace.energy, truth, slack=slack, share=share)

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
    if subspace.channel_energies is not None:
        held = np.diag(scatter_of(subspace))
        assert (subspace.channel_energies - held >= -slack).all()


def whole_never_overstates(whole: WholeScatter, truth: Twin, *, blocks: int) -> None:
    """Every law of a whole scatter, with no more than float64's tolerance.

    What float32 has changed, on the way through any number of levels, is in `spectral_bound`: it
    bounds the difference of scatters on both sides, and not only what is missing.
    """
    size, slack = max(truth.eigenvalues[0], 1e-300), tolerance(truth, blocks=blocks)

    assert np.isclose(whole.weight, truth.weight, rtol=1e-12)
    scale = max(1e-300, float(np.abs(truth.mean).max()), (size / truth.weight) ** 0.5)
    assert np.abs(whole.mean - truth.mean).max() <= 1e-11 * scale
    assert np.isclose(whole.energy, truth.energy, rtol=1e-11, atol=slack)
    _has_energies(whole.channel_energies, whole.energy, truth, slack=slack, share=1e-11)
    scatter = whole.scatter
    assert np.linalg.eigvalsh(scatter)[0] >= -EPS * len(scatter) * size
    off = np.linalg.eigvalsh(truth.scatter - scatter)
    assert np.abs(off).max() <= whole.spectral_bound + slack
    assert whole.spectral_bound <= SINGLE * max(whole.energy, 0.0) + slack
    if whole.channel_energies is not None:
        held = whole.channel_energies - np.diag(scatter)
        assert (held >= -whole.spectral_bound - slack).all()


def _has_energies(
    energies: np.ndarray | None, energy: float, truth: Twin, *, slack: float, share: float
) -> None:
    """Each channel's energy is its own, and they sum to the whole."""
    if energies is not None:
        assert np.isclose(energies.sum(), energy, rtol=share, atol=slack * len(energies))
        assert np.abs(energies - np.diag(truth.scatter)).max() <= share * energy + slack

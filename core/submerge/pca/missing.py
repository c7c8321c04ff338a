"""fill() estimates missing values; shrunk() says how much lower rows with gaps score.

A gap is never taken for zero: learning zeros teaches the model a direction that does not exist.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array, unmasked
from submerge.errors import ShapeError
from submerge.pca.factor import Precision
from submerge.pca.subspace import Subspace

FARTHEST = 8.0
"""Standard deviations: a value that is farther off counts as if it were there. What was learnt of a
channel that stood still says nothing of others once it moves; nor does a broken channel."""

LEAST_LEFT = 1e-3
"""Least factor for a limit: dividing a score by less would raise an alarm about nothing."""


def fill(rows: Array, subspace: Subspace, precision: Precision | None = None) -> tuple[Array, int]:
    """Fill the gaps (NaN) in `rows` by their conditional mean.

    Parameters
    ----------
    rows : (n, dim)
        NaN where a value is missing.
    subspace : Subspace
        The model of normal rows; an empty one fills with its mean.
    precision : Precision, optional
        Of the same rows; by default that of the subspace alone.

    Returns
    -------
    filled : (n, dim)
        Without NaN; `rows` itself is not changed.
    count : int
        Number of values filled.

    Notes
    -----
    The model is x = mean + L z + noise with z ~ N(0, I) and noise ~ N(0, diag(Psi)). With
    M = Psi^-1/2 L, for observed channels o,

        z = (I + M_o' M_o)^-1 M_o' Psi_o^-1/2 (x_o - mean_o)

    where no value is farther from its mean than `FARTHEST` standard deviations. It costs
    O(dim k^2) for each row with gaps.
    """
    rows = np.asarray(unmasked(rows), dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != subspace.dim:
        raise ShapeError("rows", expected=f"(n, {subspace.dim})", got=rows.shape)
    gaps = np.isnan(rows)
    holed = np.flatnonzero(gaps.any(axis=1))
    if not len(holed):
        return rows, 0
    absent = gaps[holed]
    guess = np.zeros(absent.shape)
    if subspace.rank:
        precision = Precision.of(subspace) if precision is None else precision
        M, roots = precision.loadings, precision.roots
        y = np.where(absent, 0.0, rows[holed] - subspace.mean) / roots
        far = FARTHEST * np.sqrt(1.0 + np.einsum("dk,dk->d", M, M))
        y = np.clip(y, -far, far)
        inner = np.einsum("dk,nd,dl->nkl", M, ~absent, M, optimize=True) + np.eye(M.shape[1])
        z = np.linalg.solve(inner, (y @ M)[:, :, None])[:, :, 0]
        guess = z @ M.T * roots
    filled = rows.copy()
    filled[holed] = np.where(absent, subspace.mean + guess, rows[holed])
    return filled, int(np.count_nonzero(absent))


def shrunk(
    present: npt.NDArray[np.bool_], subspace: Subspace, precision: Precision | None = None
) -> tuple[float, float]:
    """Return the factors by which limits shrink where only some channels are present.

    One is for SPE (squared prediction error), one for T2 (Hotelling's T-squared).

    Parameters
    ----------
    present : (dim,) of bool
        False where `fill` has put an estimate.
    subspace : Subspace
        At the rank to score with.
    precision : Precision, optional
        By which gaps were filled; by default that of the subspace alone.

    Returns
    -------
    spe, t2 : float
        From `LEAST_LEFT` to 1. The score of such a row, divided by the factor, compares with
        limits measured on whole rows. The factor is the square root of the expected score of
        such rows over that of whole rows, under the model of `fill`.

    Notes
    -----
    O(dim k^2): cache it by pattern. Filling removes the conditional covariance from the rows,
    S = Psi_m + L_m V L_m' with V = (I + M_o' M_o)^-1, for missing channels m and present channels
    o. SPE loses trace((I - U U')_mm S) and T2 loses trace((U diag(1 / lambda) U')_mm S).

    Why the root: the sum of m squares has mean m and deviation sqrt(2 m), and limits lie many
    deviations out, so they shrink as the deviation does. Divided by the mean's own share,
    rows with gaps exceed them three to ten times too often (benchmarks/senses.py).
    """
    if present.shape != (subspace.dim,):
        raise ShapeError("present", expected=f"({subspace.dim},)", got=present.shape)
    precision = Precision.of(subspace) if precision is None else precision
    basis = np.asarray(subspace.basis, dtype=np.float64)
    variance = subspace.explained_variance
    solid = variance > subspace.dim * EPS * variance[:1]
    weights = np.divide(1.0, variance, out=np.zeros_like(variance), where=solid)
    seen = precision.loadings[present]
    values, vectors = np.linalg.eigh(seen.T @ seen)
    root = vectors / np.sqrt(1 + np.maximum(values, 0.0))  # V = root root'
    off, along = _removed(~present, basis, precision, root)
    all_off, all_along = _removed(np.ones_like(present), basis, precision, np.eye(len(root)))
    spare = subspace.rank < subspace.dim  # else SPE is rounding
    return (
        _root_of_rest(off, all_off) if spare else 1.0,
        _root_of_rest(float(along @ weights), float(all_along @ weights)),
    )


def without_gaps(distance: Array, observed: Array, dim: int) -> Array:
    """Return the distances (n,) of filled rows as they compare with those of rows without gaps."""
    # A distance of m observed channels has mean m and deviation sqrt(2 m): it is given mean and
    # deviation of one of all. Random gaps then raise no more alarms (docs/decisions/0033).
    return dim + (distance - observed * dim) / np.sqrt(observed)


def _removed(
    absent: npt.NDArray[np.bool_], basis: Array, precision: Precision, root: Array
) -> tuple[float, Array]:
    """Return trace((I - U U') S) and diag(U' S U), with S = Psi_m + L_m V L_m', V = root root'."""
    noise = np.where(absent, precision.roots, 0.0)
    spread = noise[:, None] * (precision.loadings @ root)
    along = basis.T @ spread
    # Rows of small differences: a difference of two traces would be the rounding of U.
    off = spread - basis @ along
    rest = noise**2 @ np.maximum(1 - np.einsum("ij,ij->i", basis, basis), 0.0)
    each = noise**2 @ np.square(basis) + np.einsum("ij,ij->i", along, along)
    return float(rest + np.vdot(off, off)), np.asarray(each)


def _root_of_rest(lost: float, whole: float) -> float:
    """Return the root of the share that is left; 1 where there was nothing to lose."""
    rest = 1 - lost / whole if whole > 0 else 1.0
    return float(np.clip(rest, LEAST_LEFT**2, 1.0) ** 0.5)

"""fill() estimates missing values; shrunk() says how much lower rows with gaps score.

A gap is never taken for zero: a sensor that dropped out reports nothing, and learning
zeros teaches the model a direction that does not exist. A gap is filled by its
conditional mean given the rest of the same row, under the subspace's probabilistic
model. The caller counts what was filled. A filled value is never anomalous, so such a
row scores less, by a share that follows from the same model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array
from submerge.errors import ShapeError
from submerge.pca.subspace import Subspace

LEAST_NOISE = 1e-10
"""Least noise, as a share of the largest variance: less is lost in the rounding of float32."""

LEAST_LEFT = 1e-3
"""Least factor for a limit: dividing a score by less would raise an alarm about nothing."""


def noise_variance(subspace: Subspace) -> float:
    """Return the variance s of the noise in each channel under the model of `fill`."""
    noise = 0.0
    if subspace.weight > 0:
        lacking = max(1, subspace.dim - subspace.rank)
        noise = subspace.frobenius_bound / (subspace.weight * lacking)
    # With so much noise, a row that shows too little to separate the directions still has an
    # answer. `tiny` keeps it from vanishing where it is divided by.
    least = LEAST_NOISE * float(subspace.explained_variance[0]) if subspace.rank else 0.0
    return max(noise, least, float(np.finfo(float).tiny))


def fill(rows: Array, subspace: Subspace) -> tuple[Array, int]:
    """Fill the gaps (NaN) in `rows` by their conditional mean.

    Parameters
    ----------
    rows : (n, dim)
        NaN where a value is missing.
    subspace : Subspace
        The model of normal rows; an empty one fills with its mean.

    Returns
    -------
    filled : (n, dim)
        Without NaN; `rows` itself is not changed.
    count : int
        Number of values filled.

    Notes
    -----
    The model is x = mean + U z + noise with z ~ N(0, diag(lambda)) and noise of one
    variance s in every channel: the energy that the subspace does not hold, spread
    over the dim - k directions that it lacks. For observed channels o,

        z = (U_o' U_o + s diag(1 / lambda))^-1 U_o' (x_o - mean_o)

    It costs O(dim k^2) for each row with gaps.
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != subspace.dim:
        raise ShapeError("rows", expected=f"(n, {subspace.dim})", got=rows.shape)
    gaps = np.isnan(rows)
    holed = np.flatnonzero(gaps.any(axis=1))
    if not len(holed):
        return rows, 0
    absent = gaps[holed]
    centered = np.where(absent, 0.0, rows[holed] - subspace.mean)
    basis = np.asarray(subspace.basis, dtype=np.float64)
    guess = np.zeros_like(centered)
    if subspace.rank:
        seen = np.einsum("dk,nd,dl->nkl", basis, ~absent, basis, optimize=True)
        normal = seen + np.diag(noise_variance(subspace) / subspace.explained_variance)
        z = np.linalg.solve(normal, (centered @ basis)[:, :, None])[:, :, 0]
        guess = z @ basis.T
    filled = rows.copy()
    filled[holed] = np.where(absent, subspace.mean + guess, rows[holed])
    return filled, int(np.count_nonzero(absent))


def shrunk(present: npt.NDArray[np.bool_], subspace: Subspace) -> tuple[float, float]:
    """Return the factors by which limits shrink where only some channels are present.

    One is for SPE (squared prediction error), one for T2 (Hotelling's T-squared).

    Parameters
    ----------
    present : (dim,) of bool
        False where `fill` has put an estimate.
    subspace : Subspace
        At the rank to score with.

    Returns
    -------
    spe, t2 : float
        From `LEAST_LEFT` to 1. The score of such a row, divided by the factor, compares with
        limits measured on whole rows. The factor is the square root of the expected score of
        such rows over that of whole rows, under the model of `fill`.

    Notes
    -----
    O(dim k^2): cache it by pattern. Filling removes the conditional covariance from the rows,
    S = U_m V U_m' + s I with V = s (U_o' U_o + s diag(1 / lambda))^-1, for missing channels m
    and present channels o. SPE loses trace((I - U U')_mm S) and T2 loses
    trace((U diag(1 / lambda) U')_mm S).

    Why the root: the sum of m squares has mean m and deviation sqrt(2 m), and limits lie many
    deviations out, so they shrink as the deviation does. Divided by the mean's own share,
    rows with gaps exceed them three to ten times too often (benchmarks/senses.py).
    """
    if present.shape != (subspace.dim,):
        raise ShapeError("present", expected=f"({subspace.dim},)", got=present.shape)
    basis = np.asarray(subspace.basis, dtype=np.float64)
    variance = subspace.explained_variance
    solid = variance > subspace.dim * EPS * variance[:1]
    damping = noise_variance(subspace) / variance
    seen, hidden = basis[present], basis[~present]
    G = hidden.T @ hidden
    V = np.linalg.inv(seen.T @ seen + np.diag(damping))  # over s, as all that follows
    off = len(hidden) - np.trace(G) + np.sum((G - G @ G) * V)
    along = damping[solid] @ np.diag(G + G @ V @ G)[solid]
    return (
        _root_of_rest(float(off), subspace.dim - subspace.rank),
        _root_of_rest(float(along), float(np.sum(1 + damping[solid]))),
    )


def _root_of_rest(lost: float, whole: float) -> float:
    """Return the root of the share that is left; 1 where there was nothing to lose."""
    rest = 1 - lost / whole if whole > 0 else 1.0
    return float(np.clip(rest, LEAST_LEFT**2, 1.0) ** 0.5)

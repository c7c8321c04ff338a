"""fill(): what a missing value would most likely have been; shrunk(): what limits lose by it.

Zero is never data in silence: a mote that dropped out says nothing, and learning
its zeros teaches the model a direction that does not exist. A gap is filled by its
conditional mean given what the same row does show, under the model that the subspace
stands for; the caller counts what was filled. What is filled cannot be odd: such a row scores
less, by a share that follows from the same model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array
from submerge.errors import ShapeError
from submerge.pca.subspace import Subspace

LEAST_NOISE = 1e-10
"""Of the largest variance: below it nothing can be told from the rounding of what travels."""

LEAST_LEFT = 1e-3
"""Of a limit: a score that is divided by less would be an alarm about nothing."""


def noise_variance(subspace: Subspace) -> float:
    """Return the variance s of the noise in each channel under the model of `fill`."""
    noise = 0.0
    if subspace.weight > 0:
        lacking = max(1, subspace.dim - subspace.rank)
        noise = subspace.frobenius_bound / (subspace.weight * lacking)
    # A row that shows too little to tell the directions apart still has an answer.
    # Nor must one of next to nothing vanish where it is divided by.
    least = LEAST_NOISE * float(subspace.explained_variance[0]) if subspace.rank else 0.0
    return max(noise, least, float(np.finfo(float).tiny))


def fill(rows: Array, subspace: Subspace) -> tuple[Array, int]:
    """Fill the gaps (NaN) in `rows` by their conditional mean.

    Parameters
    ----------
    rows : (n, dim)
        NaN where a value is missing.
    subspace : Subspace
        What is normal; one that has seen nothing fills with its mean.

    Returns
    -------
    filled : (n, dim)
        Without NaN; `rows` itself is not changed.
    count : int
        Values filled.

    Notes
    -----
    The model is x = mean + U z + noise with z ~ N(0, diag(lambda)) and noise of one
    variance s in every channel: the energy that the subspace does not hold, spread
    over the dim - k directions that it lacks. For observed channels o,

        z = (U_o' U_o + s diag(1 / lambda))^-1 U_o' (x_o - mean_o)

    O(dim k^2) a row that has gaps.
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
    """Return by what factor limits of SPE and T2 come down where only some channels are present.

    Parameters
    ----------
    present : (dim,) of bool
        False where `fill` has put what was missing.
    subspace : Subspace
        At the rank to score with.

    Returns
    -------
    spe, t2 : float
        At least `LEAST_LEFT`, at most 1. A score of a row so filled, divided by it, is comparable
        with limits that whole rows have set. It is the square root of the expected score of
        such rows, over that of whole ones, under the model of `fill`.

    Notes
    -----
    O(dim k^2): keep it by pattern. Filling takes the conditional covariance out of the rows,
    S = U_m V U_m' + s I with V = s (U_o' U_o + s diag(1 / lambda))^-1, m what is missing, o what is
    present: SPE loses trace((I - U U')_mm S), T2 trace((U diag(1 / lambda) U')_mm S).

    Why the root: the sum of m squares has mean m and deviation sqrt(2 m), and limits lie many
    deviations out. They come down as the deviation does; divided by the mean's own share,
    rows with gaps pass them three to ten times too often (benchmarks/senses.py).
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
    """The root of what is left; of all of it where there was nothing to lose."""
    rest = 1 - lost / whole if whole > 0 else 1.0
    return float(np.clip(rest, LEAST_LEFT**2, 1.0) ** 0.5)

"""fill(): what a missing value would most likely have been.

Zero is never data in silence: a mote that dropped out says nothing, and learning
its zeros teaches the model a direction that does not exist. A gap is filled by its
conditional mean given what the same row does show, under the model that the subspace
stands for; the caller counts what was filled.
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import EPS, Array
from submerge.errors import ShapeError
from submerge.subspace import Subspace


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
        variance = subspace.explained_variance
        lacking = max(1, subspace.dim - subspace.rank)
        noise = subspace.frobenius_bound / (subspace.weight * lacking)
        # A row that shows too little to tell the directions apart still has an answer.
        # Nor must one of next to nothing vanish where it is divided by.
        noise = max(noise, subspace.dim * EPS * float(variance[0]), float(np.finfo(float).tiny))
        seen = np.einsum("dk,nd,dl->nkl", basis, ~absent, basis, optimize=True)
        normal = seen + np.diag(noise / variance)
        z = np.linalg.solve(normal, (centered @ basis)[:, :, None])[:, :, 0]
        guess = z @ basis.T
    filled = rows.copy()
    filled[holed] = np.where(absent, subspace.mean + guess, rows[holed])
    return filled, int(np.count_nonzero(absent))

"""loudness(): how many times more variance a child has than the others, where it has its own.

Limits on angles and on total energy leave room for both at once: all energy in one direction,
turned as far as is allowed from the weakest shared one. Each direction of a child, and the shift
of its mean, is therefore compared with what the others have along it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from submerge._linalg import Array
from submerge.pca.subspace import Subspace
from submerge.robust.noise import TINY


def loudness(
    parts: Sequence[Subspace], weights: Array, span: Array, center: Array | None, floor: float
) -> Array:
    """Return for each part its largest ratio to the mean of the others: (n,).

    Parameters
    ----------
    parts : sequence of Subspace
        Two or more; each counts once.
    weights : (n,)
        What their energies are multiplied by, where they speak as others: forged ones count for no
        more than allowed.
    span : (dim, q), orthonormal
        The directions that many parts share. Beyond it, a part has `floor` along any direction.
    center : (dim,) or None
        The middle of the means; None where they do not count.
    floor : float
        Energy per sample along a direction of noise.

    Notes
    -----
    For a direction u of part i: u' S_i u over the mean of u' S_j u, with
    S_j = U_j diag(sigma_j^2 / w_j) U_j' + (mean_j - m)(mean_j - m)'. O(n k dim q + n k q^2).
    """
    # Row by row sigma u' / sqrt(w), and the shift of the mean last: S_j is their Gram matrix.
    stacks = [_rows(part, center) for part in parts]
    inside = [stack @ span for stack in stacks]
    total = np.zeros((span.shape[1], span.shape[1]))
    for rows, weight in zip(inside, weights, strict=True):
        total += weight * (rows.T @ rows)
    found = np.zeros(len(parts))
    for i, (stack, rows) in enumerate(zip(stacks, inside, strict=True)):
        squares = np.einsum("ij,ij->i", stack, stack)
        there = squares > 0
        if not there.any():
            continue
        units = rows[there] / np.sqrt(squares[there])[:, None]
        own = np.einsum("ij,ij->i", units @ (rows.T @ rows), units)
        every = np.einsum("ij,ij->i", units @ total, units)
        others = np.maximum(every - weights[i] * own, 0.0) / (len(parts) - 1)
        found[i] = float(np.max(squares[there] / np.maximum(others + floor, TINY)))
    return found


def _rows(part: Subspace, center: Array | None) -> Array:
    scaled = part.basis.T * (part.sigma / np.sqrt(part.weight))[:, None]
    shift = np.zeros_like(part.mean) if center is None else part.mean - center
    return np.vstack([scaled, shift])

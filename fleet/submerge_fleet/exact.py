"""The offline optimum that a stream is held against: exact PCA of rows at hand."""

from __future__ import annotations

import numpy as np

from submerge import Array


def spectrum(centered: Array) -> Array:
    """Return the squared singular values of rows (n, dim), descending.

    Needs min(n, dim)^2 numbers of memory.
    """
    n, dim = centered.shape
    square = centered.T @ centered if dim <= n else centered @ centered.T
    return np.asarray(np.maximum(np.linalg.eigvalsh(square)[::-1], 0.0))


def residual(centered: Array, basis: Array) -> float:
    """Return ||Y - Y U U'||_F^2 for rows Y (n, dim) and a basis U (dim, r)."""
    total = 0.0
    # In runs of rows: no second copy of the whole data.
    for start in range(0, len(centered), 4096):
        part = centered[start : start + 4096]
        off = part - (part @ basis) @ basis.T
        total += float(np.vdot(off, off))
    return total


def ratio(error: float, optimum: float, energy: float) -> float | None:
    """Return error / optimum; 1 where both are rounding, None where only the optimum is."""
    nothing = 1e-12 * energy
    if optimum > nothing:
        return error / optimum
    return 1.0 if error <= nothing else None

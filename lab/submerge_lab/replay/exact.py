"""The offline optimum that a stream is compared with: exact PCA of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from submerge import Array, Subspace
from submerge.features import FeatureMap
from submerge_files.console.progress import advancing

CHUNK = 1024
"""Rows whose features are computed at once."""


class Account(NamedTuple):
    """Error and spectrum of weighted rows.

    error : ||Y - Y U U'||_F^2 of rows Y about the subspace's mean, U its basis
    spectrum : squared singular values of rows about their own mean, descending
    """

    error: float
    spectrum: Array
    total: float


def of_rows(rows: Array, weights: Array, subspace: Subspace, *, center: bool) -> Account:
    """Compare a subspace with rows (n, dim) of `weights` (n,)."""
    roots, total = np.sqrt(weights)[:, None], float(weights.sum())
    mean = np.zeros(rows.shape[1])
    if center:
        mean = rows[0] + weights @ (rows - rows[0]) / total
    found = spectrum(roots * (rows - mean))
    return Account(residual(roots * (rows - subspace.mean), subspace.basis), found, total)


def of_features(
    rows: Array, weights: Array, subspace: Subspace, map_: FeatureMap, *, center: bool
) -> Account:
    """Compare a subspace with the features of rows (n, channels), a chunk at a time."""
    # Needs dim^2 numbers of memory for any n; computes the features of every row twice.
    dim, total = subspace.dim, float(weights.sum())
    # Features of all rows at once would take far more memory than the rows.
    mean, scatter, error = np.zeros(dim), np.zeros((dim, dim)), 0.0
    with advancing("exact PCA of features", 2 * len(rows)) as progress:
        if center:
            for part, phi in _lifted(rows, map_):
                mean += weights[part] @ phi / total
                progress(len(phi))
        for part, phi in _lifted(rows, map_):
            roots = np.sqrt(weights[part])[:, None]
            error += residual(roots * (phi - subspace.mean), subspace.basis)
            phi = roots * (phi - mean)
            scatter += phi.T @ phi
            progress(len(phi))
    return Account(error, _eigenvalues(scatter), total)


def spectrum(centered: Array) -> Array:
    """Return the squared singular values of rows (n, dim), descending."""
    # Needs min(n, dim)^2 numbers of memory.
    n, dim = centered.shape
    return _eigenvalues(centered.T @ centered if dim <= n else centered @ centered.T)


def residual(centered: Array, basis: Array) -> float:
    """Return ||Y - Y U U'||_F^2 for rows Y (n, dim) and a basis U (dim, r)."""
    total = 0.0
    # In runs of rows, which avoids a second copy of all data.
    for start in range(0, len(centered), 4096):
        part = centered[start : start + 4096]
        off = part - (part @ basis) @ basis.T
        total += float(np.vdot(off, off))
    return total


def ratio(error: float, optimum: float, energy: float) -> float | None:
    """Return error / optimum; 1 if both are rounding errors, None if only the optimum is."""
    rounding = 1e-12 * energy
    if optimum > rounding:
        return error / optimum
    return 1.0 if error <= rounding else None


def _lifted(rows: Array, map_: FeatureMap) -> Iterator[tuple[slice, Array]]:
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        yield part, map_.lift(rows[part])


def _eigenvalues(square: Array) -> Array:
    return np.asarray(np.maximum(np.linalg.eigvalsh(square)[::-1], 0.0))

"""Twins of kernel PCA by a fleet: all rows on one machine, each row by itself, nothing clever."""

from __future__ import annotations

import math

import numpy as np

from submerge.jobs.points import draws, node_id
from support.kernels import off_span


def leverage(E: np.ndarray) -> np.ndarray:
    """The diagonal of the projection on the columns of E (n, t)."""
    return np.diag(E @ np.linalg.pinv(E)).copy()


def smallest(parts: dict[str, np.ndarray], scores: dict, stage: int, size: int, seed: int) -> list:
    """Return (node, row) of the smallest keys of all, one row after the other; ascending."""
    found = []
    for name, rows in parts.items():
        drawn = draws(seed, f"{node_id(name):016x}", f"points {stage}", len(rows))
        for i, u in enumerate(drawn.tolist()):
            if scores[name][i] > 0:
                found.append((-math.log(u) / scores[name][i], name, i))
    return [(name, i) for _, name, i in sorted(found)[:size]]


def chosen(parts: dict[str, np.ndarray], kernel, sizes: tuple[int, int], seed: int) -> list:
    """Return (node, row) of all points: by k(x, x), then by the residual, by least squares."""
    own = {
        name: np.array([kernel(x[None], x[None])[0, 0] for x in rows])
        for name, rows in parts.items()
    }
    first = smallest(parts, own, 1, sizes[0], seed)
    P = np.array([parts[name][i] for name, i in first])
    missed = {
        name: off_span(kernel(P, P), kernel(rows, P), own[name]) for name, rows in parts.items()
    }
    for name, i in first:
        missed[name][i] = 0.0
    return first + smallest(parts, missed, 2, sizes[1], seed)


def captured(X: np.ndarray, Y: np.ndarray, kernel, k: int, *, center: bool) -> tuple[float, float]:
    """Return what the best k directions in the span of Y hold of the features of X, and all.

    They solve a generalized eigenproblem in the coefficients of the points.
    """
    across, inner = kernel(X, Y), kernel(Y, Y)
    if center:
        across = across - across.mean(axis=0)
    values, V = np.linalg.eigh(inner)
    solid = values > 1e-10 * values[-1]
    root = V[:, solid] / np.sqrt(values[solid])
    held = np.sort(np.linalg.eigvalsh(root.T @ across.T @ across @ root))[::-1]
    total = float(np.trace(kernel(X, X)))
    return float(held[:k].sum()), total

"""Slow, obvious twins of what kernels do, and the kernels and rows that they are tried on.

Every n x n matrix is formed, and decomposed. No twin is clever, shares a line with the package,
or minds its cost.
"""

from __future__ import annotations

import numpy as np

from submerge.features import Gaussian, Laplace, Matern, Polynomial

KERNELS = [
    Gaussian(0.1),
    Laplace(0.3),
    Matern(0.1, nu=2.5),
    Polynomial(3, 0.2, 1.0),
    Polynomial(1, 1.0),
]


def gaussian(X: np.ndarray, Y: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |x - y|^2), entry by entry."""
    return np.array([[np.exp(-gamma * np.sum((x - y) ** 2)) for y in Y] for x in X])


def centered(K: np.ndarray) -> np.ndarray:
    """Return HKH: the Gram matrix about the mean of all rows."""
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def exact_kernel_pca(
    K: np.ndarray, rank: int, *, center: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Kernel PCA of a Gram matrix (n, n) by one dense decomposition.

    Returns scores (n, rank), the projections of all rows, and eigenvalues (rank,) of the
    centered matrix, largest first.
    """
    eigenvalues, vectors = np.linalg.eigh(centered(K) if center else K)
    eigenvalues = np.maximum(eigenvalues[::-1][:rank], 0)
    return vectors[:, ::-1][:, :rank] * np.sqrt(eigenvalues), eigenvalues


def missed(K: np.ndarray, scores: np.ndarray, *, center: bool = True) -> float:
    """Return tr(Kc) - tr(Q'KcQ), for Q an orthonormal basis of the scores (n, r)."""
    Kc = centered(K) if center else K
    Q = np.linalg.qr(scores)[0]
    return float(np.trace(Kc) - np.sum(Q * (Kc @ Q)))


def optimum(K: np.ndarray, rank: int, *, center: bool = True) -> float:
    """Return what the best `rank` scores miss: the sum of all eigenvalues beyond."""
    eigenvalues = np.linalg.eigvalsh(centered(K) if center else K)
    return float(np.maximum(eigenvalues, 0)[: len(K) - rank].sum())


def excess(K: np.ndarray, scores: np.ndarray, *, center: bool = True) -> float:
    """Return how much more the scores (n, r) miss than exact kernel PCA's, in percent."""
    best = optimum(K, scores.shape[1], center=center)
    return 100 * (missed(K, scores, center=center) / best - 1)


def ridge_leverage(K: np.ndarray, ridge: float) -> np.ndarray:
    """Return the diagonal of K (K + ridge I)^-1."""
    return np.diag(K @ np.linalg.inv(K + ridge * np.eye(len(K)))).copy()


def off_span(K: np.ndarray, across: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return squared distances of features from a span, by the best coefficients for each.

    K (m, m) of the rows that span it, `across` (n, m) to them, `own` (n,): each k(x, x).
    """
    found = []
    for k, own_k in zip(across, own, strict=True):
        a = np.linalg.lstsq(K, k, rcond=None)[0]
        found.append(own_k - 2 * a @ k + a @ K @ a)
    return np.array(found)


def clustered(n: int, dim: int = 4, *, seed: int = 0) -> np.ndarray:
    """Rows in a few uneven clusters."""
    rng = np.random.default_rng(seed)
    centers = 2 * rng.standard_normal((3, dim))
    return centers[rng.integers(3, size=n)] + rng.standard_normal((n, dim))


def unbalanced(seed: int, *, deviation: float = 0.5) -> np.ndarray:
    """Return 1940 + 6 x 10 rows in R^8: one large cluster, and six small ones 10 away."""
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((6, 8))
    centers *= 10 / np.linalg.norm(centers, axis=1)[:, None]
    where = np.vstack([np.zeros((1940, 8)), np.repeat(centers, 10, axis=0)])
    return where + deviation * rng.standard_normal(where.shape)


def power_law(
    X: np.ndarray, clients: int, rng: np.random.Generator, *, power: float = 1.5
) -> list[np.ndarray]:
    """Deal rows to clients at random, by sizes that fall as rank^-power: half are the first's."""
    sizes = np.arange(1.0, clients + 1) ** -power
    cuts = (np.cumsum(sizes / sizes.sum())[:-1] * len(X)).astype(int)
    return np.split(X[rng.permutation(len(X))], cuts)


def median_square(X: np.ndarray) -> float:
    """The median of |x - y|^2 over all pairs."""
    square = (X**2).sum(axis=1)
    distances = square[:, None] + square - 2 * X @ X.T
    return float(np.median(distances[np.triu_indices(len(X), 1)]))

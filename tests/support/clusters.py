"""Clusters to find, how well they were found, and slow twins of what finds them.

The twins form the whole kernel matrix, as the text-books do.
"""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from support.data import shared

Array = np.ndarray


def rings(each: int = 2000, *, seed: int, sd: float = 0.08) -> tuple[Array, Array]:
    """Two rings of `each` points, radii 0.2 and 1.0 with normal noise, and which is whose."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], each)
    radius = np.array([0.2, 1.0])[truth] + sd * rng.standard_normal(2 * each)
    angle = rng.uniform(0, 2 * np.pi, 2 * each)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), truth


def segments() -> tuple[Array, Array]:
    """The image-segmentation table, each row at unit length, and its seven classes."""
    with shared("segment.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    X = np.array([row[:-1] for row in rows], dtype=float)
    _, truth = np.unique([row[-1] for row in rows], return_inverse=True)
    return X / np.linalg.norm(X, axis=1, keepdims=True), truth


def squared_product(X: Array, Y: Array) -> Array:
    """<x, y>^2, the paper's kernel."""
    return (X @ Y.T) ** 2


def accuracy(truth: Array, labels: Array) -> float:
    """Share of rows in the right cluster, under the best pairing of labels and classes."""
    table = np.zeros((truth.max() + 1, labels.max() + 1))
    np.add.at(table, (truth, labels), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(truth))


def relative_error(K: Array, scores: Array) -> float:
    """|K - scores scores'| / |K| in Frobenius norm."""
    return float(np.linalg.norm(K - scores @ scores.T) / np.linalg.norm(K))


def nystrom_scores(
    kernel: Callable[[Array, Array], Array], X: Array, *, landmarks: int, rank: int, seed: int
) -> Array:
    """Nystrom's scores with the rank cut inside W, the landmarks' own kernel matrix."""
    chosen = np.random.default_rng(seed).choice(len(X), landmarks, replace=False)
    C = kernel(X, X[chosen])
    values, vectors = np.linalg.eigh(C[chosen])
    values, vectors = values[-rank:], vectors[:, -rank:]
    return C @ (vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1])))


def one_pass_as_printed(K: Array, test: Array, rank: int) -> Array:
    """Algorithm 1 of arXiv:1608.07597, on a K that is there: Q, B, its eigenvectors."""
    W = K @ test
    Q, _ = np.linalg.qr(W)
    B = np.linalg.lstsq((Q.T @ test).T, (Q.T @ W).T, rcond=None)[0].T
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    return Q @ vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], 0))


def kernel_kmeans(K: Array, k: int, *, seed: int, n_init: int = 10) -> Array:
    """Kernel k-means by its definition, on the whole K; the best of `n_init` runs."""
    rng, best, least = np.random.default_rng(seed), np.zeros(len(K), int), np.inf
    for _ in range(n_init):
        labels, cost = _one_kernel_kmeans(K, k, rng)
        if cost < least:
            best, least = labels, cost
    return best


def _one_kernel_kmeans(K: Array, k: int, rng: np.random.Generator) -> tuple[Array, float]:
    own = np.diag(K)
    centers = [int(rng.integers(len(K)))]
    while len(centers) < k:
        near = np.min([own - 2 * K[:, c] + K[c, c] for c in centers], axis=0).clip(0)
        centers.append(int(rng.choice(len(K), p=near / near.sum())))
    labels = np.argmin([own - 2 * K[:, c] + K[c, c] for c in centers], axis=0)
    for _ in range(300):
        member = np.eye(k)[labels]
        member /= np.maximum(member.sum(axis=0), 1)
        toward = K @ member
        # |phi - mean|^2 = K_ii - 2 mean_j K_ij + mean_jl K_jl
        distances = own[:, None] - 2 * toward + np.sum(member * toward, axis=0)
        before, labels = labels, distances.argmin(axis=1)
        if np.array_equal(before, labels):
            break
    return labels, float(distances.min(axis=1).sum())

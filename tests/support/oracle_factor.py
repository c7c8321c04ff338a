"""Slow, obvious twins of `pca.factor`: dense, one step at a time."""

from __future__ import annotations

import numpy as np


def dense(loadings: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the covariance that factors stand for."""
    return loadings @ loadings.T + np.diag(noise)


def distances(centered: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return x' Sigma^-1 x of each row, a dense solve each."""
    return np.array([row @ np.linalg.solve(covariance, row) for row in centered])


def em(covariance: np.ndarray, k: int, rounds: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Return L and Psi of maximum likelihood, by EM (Rubin and Thayer)."""
    dim = len(covariance)
    values, vectors = np.linalg.eigh(covariance)
    L = vectors[:, -k:] * np.sqrt(values[-k:] / 2)
    psi = np.diag(covariance) / 2
    for _ in range(rounds):
        B = L.T @ np.linalg.inv(dense(L, psi))
        moments = np.eye(k) - B @ L + B @ covariance @ B.T
        L = covariance @ B.T @ np.linalg.inv(moments)
        psi = np.maximum(np.diag(covariance - L @ B @ covariance), 1e-9)
    assert L.shape == (dim, k)
    return L, psi


def likelihood(model: np.ndarray, covariance: np.ndarray) -> float:
    """Return the mean log-likelihood of rows with a covariance, but for a constant."""
    return -0.5 * float(np.linalg.slogdet(model)[1] + np.trace(np.linalg.solve(model, covariance)))

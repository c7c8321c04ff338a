"""k-means on scores: the last step that clusterers here have in common."""

from __future__ import annotations

from sklearn.cluster import KMeans

from submerge._linalg import Array
from submerge.errors import UsageError, whole


def check_clusters(n_clusters: int, n_samples: int) -> int:
    """Return `n_clusters` as an int; refuse none, and more than rows."""
    if whole("n_clusters", n_clusters, least=1) > n_samples:
        raise UsageError(f"n_clusters must be at most n_samples={n_samples}, got {n_clusters}")
    return int(n_clusters)


def clustered(scores: Array, n_clusters: int, *, n_init: int, seed: int) -> KMeans:
    """Return scikit-learn's k-means of scores (n, r), the best of `n_init` runs."""
    return KMeans(n_clusters, n_init=n_init, random_state=seed).fit(scores)

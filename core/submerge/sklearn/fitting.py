"""What every `fit` here keeps to: all of it, or nothing; its parameters, and its k-means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.cluster import KMeans

from submerge._linalg import Array
from submerge.errors import UsageError, whole

MOST_STATE = 2**32 - 1
"""As scikit-learn's own `random_state`."""


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Put an estimator's attributes back if what follows is refused.

    scikit-learn's checks write `n_features_in_` and names before anything is learnt.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def seed_of(random_state: Any) -> int:
    """Return a seed, an int: what is drawn must be the same on every machine, and drawn again."""
    return whole("random_state", random_state, least=0, most=MOST_STATE)


def check_clusters(n_clusters: int, n_samples: int) -> int:
    """Return `n_clusters` as an int; refuse none, and more than rows."""
    if whole("n_clusters", n_clusters, least=1) > n_samples:
        raise UsageError(f"n_clusters must be at most n_samples={n_samples}, got {n_clusters}")
    return int(n_clusters)


def clustered(scores: Array, n_clusters: int, *, n_init: int, seed: int) -> KMeans:
    """Return scikit-learn's k-means of scores (n, r), the best of `n_init` runs."""
    return KMeans(n_clusters, n_init=n_init, random_state=seed).fit(scores)

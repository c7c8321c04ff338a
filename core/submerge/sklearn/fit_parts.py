"""Parts of every `fit`: all or nothing, checked parameters, and k-means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.utils.validation import validate_data

from submerge._linalg import Array, unmasked
from submerge.errors import SchemaMismatch, UsageError, whole
from submerge.features import FeatureMap
from submerge.schema import Channel, Schema, differences

MOST_STATE = 2**32 - 1  # largest seed, as of scikit-learn's own `random_state`


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Restore an estimator if the body raises: scikit-learn's checks write names first."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Return X as scikit-learn's `validate_data` does, with gaps where it is masked."""
    return validate_data(estimator, unmasked(X), **options)


def seed_of(random_state: Any) -> int:
    """Return `random_state` as an int: draws must be repeatable, on every machine."""
    return whole("random_state", random_state, least=0, most=MOST_STATE)


def check_clusters(n_clusters: int, n_samples: int) -> int:
    """Return `n_clusters` as an int, from 1 to the number of rows."""
    if whole("n_clusters", n_clusters, least=1) > n_samples:
        raise UsageError(f"n_clusters must be at most n_samples={n_samples}, got {n_clusters}")
    return int(n_clusters)


def k_means(scores: Array, n_clusters: int, *, n_init: int, seed: int) -> KMeans:
    """Return scikit-learn's k-means of scores (n, r), the best of `n_init` runs."""
    return KMeans(n_clusters, n_init=n_init, random_state=seed).fit(scores)


SHOWN = 5  # most differences that an error names: there may be one for each column


def schema_of(estimator: Any, features: FeatureMap, *, center: bool) -> Schema:
    """Return the schema of an estimator's vectors, from the columns just seen."""
    columns = getattr(estimator, "feature_names_in_", None)
    return Schema(
        estimator.n_features_in_ if columns is None else tuple(map(Channel, columns)),
        features=features,
        center="fleet" if center else "none",
    )


def of_same_columns(estimator: Any) -> Any:
    """Return an unfitted estimator with the same parameters and columns."""
    other = clone(estimator)
    other.n_features_in_ = estimator.n_features_in_
    if hasattr(estimator, "feature_names_in_"):
        other.feature_names_in_ = estimator.feature_names_in_.copy()
    return other


def check_alike(ours: Schema, theirs: Schema) -> None:
    """Refuse to merge what differs, and name the differences (SchemaMismatch)."""
    if ours.fingerprint == theirs.fingerprint:
        return
    lines = [
        # A schema holds landmarks as bytes, which are no use to a reader.
        "landmarks: expected the same, got others" if line.startswith("points: ") else line
        for line in differences(ours, theirs)
    ]
    if len(lines) > SHOWN:
        lines[SHOWN:] = [f"and {len(lines) - SHOWN} more"]
    refused = SchemaMismatch(expected=ours.fingerprint, got=theirs.fingerprint)
    # Both schemas are at hand, so the message names more than their hashes.
    refused.args = (f"estimators that differ never merge: {'; '.join(lines)}",)
    raise refused

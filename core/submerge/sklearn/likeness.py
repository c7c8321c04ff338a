"""Checks that two estimators may merge: that they have learnt the same columns and features."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from submerge.errors import SchemaMismatch
from submerge.features import FeatureMap
from submerge.schema import Channel, Schema, differences

SHOWN = 5
"""Most differences that an error names: there may be one for each column."""


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
    """Refuse to merge what differs, and name the differences.

    Raises
    ------
    SchemaMismatch
    """
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

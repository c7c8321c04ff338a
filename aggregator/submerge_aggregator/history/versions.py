"""Versions of models as the history keeps them, and the angle from one to the next."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from submerge import Array
from submerge.protocol.messages import Model
from submerge_aggregator.history.file import VersionRow
from submerge_aggregator.history.views import VersionView

MOST_SPECTRUM = 32
"""Directions whose variance is kept."""

DIGITS = 5


def version_row(model: Model, before: Model | None) -> VersionRow:
    """Return a version as it is kept.

    before : the version before, if it is known
    """
    view = VersionView(
        version=model.version,
        created_s=model.created,
        rank=model.rank or _basis(model).shape[1],
        nodes=model.nodes,
        readings=model.counts.learnt,
        angle_deg=None if before is None else angle_between(before, model),
        spectrum=_spectrum(model),
    )
    return VersionRow(model.group, model.created, model.version, msgspec.json.encode(view))


def angle_between(before: Model, after: Model) -> float | None:
    """Return the largest principal angle between the directions that two models score with.

    Of models with another number of directions it is that of the fewer ones, in degrees; None if
    they are of two schemas, or one has no direction.
    """
    if before.fingerprint != after.fingerprint:
        return None
    one, other = _basis(before), _basis(after)
    if one.shape[0] != other.shape[0] or not min(one.shape[1], other.shape[1]):
        return None
    if one.shape[1] < other.shape[1]:
        one, other = other, one
    shared = one.T @ other
    # The sine tells small angles, the cosine large ones.
    sine = float(np.linalg.norm(other - one @ shared, 2))
    cosine = float(np.linalg.svd(shared, compute_uv=False).min())
    return round(math.degrees(math.atan2(sine, cosine)), 4)


def _basis(model: Model) -> Array:
    """Return the directions that nodes score with, as columns."""
    parts = () if model.summary is None else model.summary.parts
    if not parts:
        return np.zeros((0, 0))
    basis = np.asarray(parts[-1].basis, np.float64)
    return basis[:, : model.rank] if model.rank else basis


def _spectrum(model: Model) -> list[float]:
    parts = () if model.summary is None else model.summary.parts
    if not parts or not parts[-1].weight > 0.0:
        return []
    variances = parts[-1].sigma[:MOST_SPECTRUM] ** 2 / parts[-1].weight
    return [float(f"{each:.{DIGITS}g}") for each in variances.tolist() if math.isfinite(each)]

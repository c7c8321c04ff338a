"""KernelScores: the map of an answer of `cluster`, from rows to the scores of its centers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array, Storage
from submerge.errors import PeerError
from submerge.features import FeatureMap, RandomFourier, parse
from submerge.jobs.arrays import Arrays, expect
from submerge.kernel.spectral import BLOCK, directions
from submerge.pca.subspace import Subspace

MOST_TEXT = 1024
"""Characters of a map's spec: it has no landmarks here."""

LONGEST_FEATURES = 2.0
"""Squared length of the features of a row, at most: cosines alone, all of them 1."""

OFF = 1e-3
"""By how much foreign float32 numbers may be off: theirs are off by 1e-6."""


@dataclass(frozen=True, slots=True, eq=False)
class KernelScores:
    """A feature map, the features' mean (dim,), and a basis (dim, r); r is clusters - 1, or given.

    Scores (n, r) of rows are (features of the rows - mean) @ basis.
    """

    features: FeatureMap
    mean: Array
    basis: Storage  # columns of zeros where the data have no more directions

    @classmethod
    def of(cls, features: FeatureMap, summary: Subspace, *, n_clusters: int) -> KernelScores:
        """Return the scores on the leading directions of a summary of the features."""
        basis = np.zeros((summary.dim, directions(n_clusters)), dtype=np.float32)
        used = min(summary.rank, basis.shape[1])
        basis[:, :used] = summary.basis[:, :used]
        return cls(features, summary.mean, basis)

    @property
    def arrays(self) -> Arrays:
        """What travels of it, beside the map."""
        return {"mean": self.mean, "basis": self.basis}

    def __call__(self, rows: Array) -> Array:
        """Return the scores of rows (n, channels): (n, r)."""
        found = np.empty((len(rows), self.basis.shape[1]))
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            found[part] = (self.features.lift(rows[part]) - self.mean) @ self.basis
        return found


def check_scores(arrays: Arrays, dim: int, width: int) -> None:
    """Refuse a mean of features that rows do not have, and directions that are none (PeerError)."""
    expect(
        {name: arrays[name] for name in ("mean", "basis") if name in arrays},
        {"mean": (dim,), "basis": (dim, width)},
        single=("basis",),
    )
    check_mean(arrays["mean"])
    check_basis(arrays["basis"])


def check_mean(mean: Array) -> None:
    if not float(mean @ mean) <= LONGEST_FEATURES * (1.0 + OFF):
        raise PeerError("a mean of features is as long as features are, at most", kind="range")


def check_basis(basis: Storage) -> None:
    """Refuse columns that are neither orthonormal nor, behind all others, zero."""
    wide = basis.astype(np.float64)
    if not (np.abs(wide) <= 1.0 + OFF).all():
        raise PeerError("entries of directions are at most 1", kind="range")
    gram = wide.T @ wide
    held = int((np.diag(gram) > 0.5).sum())
    expected = np.diag((np.arange(len(gram)) < held).astype(np.float64))
    if (np.abs(gram - expected) > OFF).any():
        raise PeerError("directions are orthonormal", kind="range")


def spec_numbers(features: FeatureMap) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a map's spec as the bytes of its text, one a number: arrays hold no text."""
    text = json.dumps(features.spec(), sort_keys=True, separators=(",", ":"))
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.uint64)


def map_of(numbers: Array) -> RandomFourier:
    """Return the map of random features whose spec these are; PeerError if they are of none."""
    if numbers.dtype != np.uint64 or numbers.ndim != 1 or len(numbers) > MOST_TEXT:
        raise PeerError(f"a map's spec has at most {MOST_TEXT} whole numbers", kind="shape")
    if (numbers > 127).any():
        raise PeerError("a map's spec is plain text", kind="range")
    try:
        spec = json.loads(bytes(numbers.astype(np.uint8)))
    except (ValueError, RecursionError) as error:
        raise PeerError("a map's spec is JSON") from error
    found = parse(spec if isinstance(spec, Mapping) else {})
    if not isinstance(found, RandomFourier) or not found.settled:
        raise PeerError("expected a map of random features whose gamma is known")
    return found

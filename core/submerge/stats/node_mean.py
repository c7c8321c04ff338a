"""OwnMean: one node's own mean, while the fleet learns how readings vary (center = "own")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array, Storage

READY = 10  # readings after which the mean is used
SETTLED_S = 86400.0  # time that a settled mean covers: a day

HALF_LIFE_S = 7 * 86400.0
"""Longest half-life of a reading in the mean: batteries run down and sensors age, so a mean a month
old no longer holds."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnMean:
    """A node's running mean (channels,), scaled, and that of its features; `count` is not faded."""

    rows: Array
    features: Array | None
    weight: float
    count: int
    span_s: float

    @classmethod
    def none(cls, channels: int, dim: int | None) -> OwnMean:
        """Return the mean of no readings; `dim` is None where features are the rows."""
        features = None if dim is None else np.zeros(dim)
        return cls(np.zeros(channels), features, 0.0, 0, 0.0)

    def is_like(self, other: OwnMean) -> bool:
        """Return whether both have vectors of the same lengths."""
        lengths = [None if each.features is None else len(each.features) for each in (self, other)]
        return len(self.rows) == len(other.rows) and lengths[0] == lengths[1]

    @property
    def ready(self) -> bool:
        """Whether the mean has enough readings to be used."""
        return self.count >= READY

    @property
    def settled(self) -> bool:
        """Whether the mean covers every time of day."""
        return self.ready and self.span_s >= SETTLED_S

    @property
    def excess(self) -> float:
        """Variance of rows about this mean, over that about the true one: 1 + 1/n of n readings."""
        return 1 + 1 / max(self.weight, 1.0)

    def after(self, rows: Array, features: Storage, *, kept: float, passed_s: float) -> OwnMean:
        """Return the mean with rows and features counted in, earlier ones `kept` times as much."""
        if not len(rows):
            return self
        weight = kept * self.weight + len(rows)
        share = len(rows) / weight
        mean = self.rows + share * (rows.mean(axis=0) - self.rows)
        lifted = self.features
        if lifted is not None:
            lifted = lifted + share * (np.mean(features, axis=0, dtype=np.float64) - lifted)
        return OwnMean(mean, lifted, weight, self.count + len(rows), self.span_s + passed_s)

    def restarted(self) -> OwnMean:
        """Return an empty mean of the same lengths, for a node whose normal state has moved."""
        dim = None if self.features is None else len(self.features)
        return OwnMean.none(len(self.rows), dim)

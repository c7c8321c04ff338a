"""OwnMean: where one node's readings lie; how they vary is the fleet's to say (center = "own").

Sensors of one make vary alike and stand a little off from one another. So a node scores with
the fleet's scatter about a mean of its own, and ten readings of its own do for that: they say
little of fifty directions, and enough of one point. But they are one moment of one day: until the
mean has seen a whole one (`settled`), limits are wider, T2 is not watched, and what scores come to
is not what the group's limits are made of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array, Storage

READY = 10
"""Readings after which it is scored with."""

SETTLED_S = 86400.0
"""A day, after which it lies where the readings do."""


HALF_LIFE_S = 7 * 86400.0
"""After which a reading counts for half in it, at most: batteries run down and sensors age, and
where a node stood a month ago is no measure of where it stands."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnMean:
    """A node's running mean, in scaled units; of its features beside, in a kernel group.

    Attributes
    ----------
    rows : (channels,)
    features : (dim,), or None where features are the rows
    weight : float
        Readings behind it, faded as they are elsewhere.
    count : int
        Readings behind it, not faded.
    span_s : float
        Time that they were gathered over.
    """

    rows: Array
    features: Array | None
    weight: float
    count: int
    span_s: float

    @classmethod
    def none(cls, channels: int, dim: int | None) -> OwnMean:
        """Return the mean of nothing yet; `dim` None where features are the rows."""
        features = None if dim is None else np.zeros(dim)
        return cls(np.zeros(channels), features, 0.0, 0, 0.0)

    def is_like(self, other: OwnMean) -> bool:
        """Whether both are of vectors of one length."""
        lengths = [None if each.features is None else len(each.features) for each in (self, other)]
        return len(self.rows) == len(other.rows) and lengths[0] == lengths[1]

    @property
    def ready(self) -> bool:
        """Whether it says where the readings lie."""
        return self.count >= READY

    @property
    def settled(self) -> bool:
        """Whether it says so whatever time of day it is."""
        return self.ready and self.span_s >= SETTLED_S

    @property
    def excess(self) -> float:
        """How much more rows vary about it than about where they lie: 1 + 1/n of n readings."""
        return 1 + 1 / max(self.weight, 1.0)

    def after(self, rows: Array, features: Storage, *, kept: float, passed_s: float) -> OwnMean:
        """Return it with rows (n, channels) and their features (n, dim) taken in.

        kept : what is left of the weight of those before, for time has passed
        passed_s : seconds that the rows stand for
        """
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
        """Return it as one that knows nothing yet: what is normal here has moved."""
        features = None if self.features is None else np.zeros_like(self.features)
        return OwnMean(np.zeros_like(self.rows), features, 0.0, 0, 0.0)

"""ResidualScale: the typical size of each channel's residual at one node, over whole days.

A sensor by a sunny window deviates more every noon than one in a corner ever does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

HALF_LIFE_S = 14 * 86400.0
"""Half-life of an error: weeks have a shape, and sensors age."""

READY_S = 86400.0
"""Time that a ready scale covers: a day."""

WILD = 5.0
"""Errors are clipped at this many times their typical size."""

MATURE = 0.5
"""Share of a day's rows from which a channel's typical residual is known: some are gaps."""

LEAST = 0.01
"""Least square of the scale, over the one that the model expects: a tenth of its error."""


@dataclass(frozen=True, slots=True, eq=False)
class ResidualScale:
    """Mean squares of residuals, and the faded rows in each, without gaps: (channels,) both."""

    squares: Array
    weight: Array
    span_s: float = 0.0

    @classmethod
    def none(cls, channels: int) -> ResidualScale:
        """Return a scale without rows."""
        return cls(np.zeros(channels), np.zeros(channels))

    @property
    def ready(self) -> bool:
        """Whether the scale covers every time of day."""
        return self.span_s >= READY_S

    @property
    def mature(self) -> npt.NDArray[np.bool_]:
        """Whether a channel has come for a day in all, of those that have: (channels,)."""
        # Weights fade, so that of a day is known by its share in the longest one.
        day = READY_S / min(max(self.span_s, READY_S), HALF_LIFE_S)
        least = MATURE * day * self.weight.max(initial=0.0)
        return np.asarray((self.weight > 0) & (self.weight >= least))

    @property
    def typical(self) -> Array:
        """Mean squares, 0 for a channel that is not mature: (channels,)."""
        return np.where(self.mature, self.squares, 0.0)

    def after(self, errors: Array, passed_s: float) -> ResidualScale:
        """Return the scale with errors (n, channels) of `passed_s` seconds; NaN is a gap."""
        if self.ready:
            # The first rows of a fault are not recognised yet, and one wild reading is not typical.
            typical = self.typical
            most = WILD * np.sqrt(np.where(typical > 0, typical, np.inf))
            errors = np.maximum(errors, -most)
            np.minimum(errors, most, out=errors)
        weight = self.weight * 2.0 ** (-passed_s / HALF_LIFE_S)
        total, new = weight + len(errors), np.einsum("ij,ij->j", errors, errors)
        if np.isnan(new).any():
            known = ~np.isnan(errors)
            total = weight + known.sum(axis=0)
            new = np.einsum("ij,ij->j", *2 * [np.where(known, errors, 0.0)])
        sums = weight * self.squares + new
        squares = np.divide(sums, total, out=self.squares.copy(), where=total > 0)
        return ResidualScale(squares, total, self.span_s + passed_s)

    def weights(self, expected: Array) -> Array:
        """Return one over the typical square of each channel (channels,), 0 if unknown."""
        solid = (expected > 0) & self.mature
        # An unused channel deviates by rounding alone.
        typical = np.maximum(self.squares, LEAST * expected)
        return np.divide(1.0, typical, out=np.zeros_like(typical), where=solid)


def largest_square(errors: Array, weights: Array) -> Array:
    """Return the largest square of each row (n, channels), by weights (channels,): (n,)."""
    squares = np.square(errors)
    squares *= weights
    return np.asarray(squares.max(axis=1, initial=0.0))

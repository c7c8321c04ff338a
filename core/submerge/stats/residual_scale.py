"""Usual: how far each channel usually is from what the others make of it, at one node.

A channel by a sunny window strays farther every noon than one in a corner ever does. So a channel
is judged by its own measure: the mean square of its error, over days, for a night says nothing
of noon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array

HALF_LIFE_S = 14 * 86400.0
"""After which an error counts for half: weeks have a shape, and sensors age."""

READY_S = 86400.0
"""A day, after which it holds whatever time of day it is."""


WILD = 5.0
"""Times its usual error, what an error counts for at most."""

LEAST = 0.01
"""Of what the model expects: a tenth of its error."""


@dataclass(frozen=True, slots=True, eq=False)
class ResidualScale:
    """Mean squares of errors.

    Attributes
    ----------
    squares : (channels,)
    weight : (channels,)
        Rows behind each, faded: gaps do not count.
    span_s : float
        Time that they were gathered over.
    """

    squares: Array
    weight: Array
    span_s: float = 0.0

    @classmethod
    def none(cls, channels: int) -> ResidualScale:
        """Return one that knows nothing."""
        return cls(np.zeros(channels), np.zeros(channels))

    @property
    def ready(self) -> bool:
        """Whether it is to be believed."""
        return self.span_s >= READY_S

    def after(self, errors: Array, passed_s: float) -> ResidualScale:
        """Return it with errors (n, channels), NaN where there was a gap, of so many seconds."""
        if self.ready:
            # The first rows of a fault are not known as such; nor is one wild reading usual.
            most = WILD * np.sqrt(np.where(self.squares > 0, self.squares, np.inf))
            errors = np.clip(errors, -most, most)
        known = ~np.isnan(errors)
        weight = self.weight * 2.0 ** (-passed_s / HALF_LIFE_S)
        total = weight + known.sum(axis=0)
        new = np.einsum("ij,ij->j", *2 * [np.where(known, errors, 0.0)])
        sums = weight * self.squares + new
        squares = np.divide(sums, total, out=self.squares.copy(), where=total > 0)
        return ResidualScale(squares, total, self.span_s + passed_s)

    def largest(self, errors: Array, expected: Array) -> Array:
        """Return the largest square of each row (n, channels), by what is usual: (n,).

        expected : (channels,), mean squares that the model expects: by less than `LEAST` of it
            nothing is measured, for a channel that nobody uses errs by rounding alone
        """
        solid = (expected > 0) & (self.weight > 0)
        usual = np.maximum(self.squares[solid], LEAST * expected[solid])
        ratios = errors[:, solid] ** 2 / usual
        return np.asarray(ratios.max(axis=1, initial=0.0))

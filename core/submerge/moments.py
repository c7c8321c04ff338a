"""Moments: count, mean and squared deviations of each channel, in the channels' own units.

A fleet whose scaling is not known yet reports these, and nothing else: pooled, they are
what center and scale follow from. Pooling is exact (Chan, Golub and LeVeque 1983), and
twelve old rows say as much as twelve new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array
from submerge.schema import Scaling


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What so many rows say of their channels' sizes.

    mean, m2 : (channels,), the mean and the summed squared deviations from it
    """

    count: int
    mean: Array
    m2: Array

    @classmethod
    def of(cls, rows: Array) -> Moments:
        """Take the moments of rows (n, channels), n at least 1."""
        mean = rows[0] + (rows - rows[0]).mean(axis=0)
        return cls(len(rows), mean, ((rows - mean) ** 2).sum(axis=0))

    @property
    def packed(self) -> bytes:
        """The bytes that two equal moments share."""
        return self.count.to_bytes(8, "little") + self.mean.tobytes() + self.m2.tobytes()

    @property
    def scaling(self) -> Scaling:
        """Center and scale by mean and standard deviation; a constant channel keeps its size."""
        deviation = np.sqrt(self.m2 / self.count)
        # What rounding leaves of a constant is not a size.
        flat = deviation <= 1e-12 * np.abs(self.mean)
        scale = np.where(flat, 1.0, deviation)
        return Scaling(tuple(map(float, self.mean)), tuple(map(float, scale)))


def pooled(*parts: Moments) -> Moments:
    """Return the moments of all rows behind the parts, one or more."""
    count = sum(part.count for part in parts)
    # About the first mean: an offset common to all costs no digits.
    shifts = [part.mean - parts[0].mean for part in parts]
    shift = sum(
        (part.count * s for part, s in zip(parts, shifts, strict=True)),
        np.zeros_like(parts[0].mean),
    )
    shift /= count
    m2 = sum(
        (part.m2 + part.count * (s - shift) ** 2 for part, s in zip(parts, shifts, strict=True)),
        np.zeros_like(parts[0].m2),
    )
    return Moments(count, parts[0].mean + shift, m2)

"""Sobol points: spread more evenly than random ones, in few dimensions.

Direction numbers are Joe and Kuo's (new-joe-kuo-6), for as many dimensions as the maps need.
scipy has 21,201 of them, and takes more of a device's memory than everything else.

References
----------
Joe, Kuo, Constructing Sobol Sequences with Better Two-Dimensional Projections,
SIAM J. Sci. Comput. 30 (2008).
"""

from __future__ import annotations

import numpy as np

from submerge.features import draws
from submerge.features.draws import Words

BITS = 52
"""Bits of a point's coordinate; `draws.uniforms` keeps as many."""

MOST_POINTS = 1 << 16

# One row for each dimension after the first: degree, coefficients and first numbers m of a
# primitive polynomial.
_JOE_KUO: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
    (5, 14, (1, 3, 5, 5, 31)),
)


def points(n: int, dimensions: int) -> Words:
    """Return the first `n` points, (n, dimensions), as whole numbers below 2^52."""
    directions = np.array([_directions(i) for i in range(dimensions)], dtype=np.uint64)
    index = np.arange(n)
    gray = index ^ (index >> 1)
    found = np.zeros((n, dimensions), dtype=np.uint64)
    for bit in range(directions.shape[1]):
        found[(gray >> bit) & 1 == 1] ^= directions[:, bit]
    return found


def shifted(n: int, dimensions: int, *, seed: int, stream: int) -> Words:
    """Return the points as raw numbers, each dimension's bits flipped by a random number.

    The shift makes each point uniform and keeps the net as even as it was.
    """
    flip = draws.words(seed, stream, dimensions)
    return np.asarray((points(n, dimensions) << np.uint64(64 - BITS)) ^ flip)


def _directions(dimension: int) -> list[int]:
    """Return direction numbers v_1, v_2, ... of a dimension, enough for `MOST_POINTS`."""
    count = MOST_POINTS.bit_length() - 1
    if dimension == 0:
        return [1 << (BITS - k) for k in range(1, count + 1)]
    degree, inner, first = _JOE_KUO[dimension - 1]
    v = [m << (BITS - k) for k, m in enumerate(first, start=1)]
    for k in range(degree, count):
        new = v[k - degree] ^ (v[k - degree] >> degree)
        for i in range(1, degree):
            if inner >> (degree - 1 - i) & 1:
                new ^= v[k - i]
        v.append(new)
    return v[:count]

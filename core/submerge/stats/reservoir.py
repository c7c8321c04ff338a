"""Reservoir: how far apart a fleet's readings usually are, from a few of them, projected.

A kernel's gamma is a size, and moments give it: half the mean squared distance between two
rows is the trace of their covariance. A mean says little where a few wild rows make up most
of it. A quantile does not, but those of parts are not that of the whole. So each node
keeps a sample, and the samples merge:

1. Every row has a random priority of 64 bits. The rows of the 64 smallest are kept: of parts,
   those are the smallest of all that the parts have kept. So the merge is exact: in whatever
   order and grouping, and twice is once.
2. No row is kept, but four numbers of it: its inner products with four rows of signs, halved.
   |Px - Py|^2 is |x - y|^2 on average over all signs. They say something of a row, and do not
   tell it: rows of fewer than 8 numbers would be half told, and have no reservoir.
3. The signs depend on the length of a row and on its priority, and are the same on every
   node. There are eight sets: what varies along one line alone may look small by one of
   them, but hardly by most. Distances are taken within a set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import ShapeError, UsageError

KEPT = 64
"""Rows in a sample, which then weighs 1.5 kB."""

NUMBERS = 4
"""Of each row."""

LEAST_WIDTH = 8
"""Rows are at least so long: four numbers of a shorter one would say what it was."""

LARGEST_POINT = 1e18
"""Numbers beyond it are told as that: they are far from all others, and float32 has room."""

SETS = 8
"""Of signs: by a priority's last three bits."""

SHARE = 0.75
"""Of distances, that stay below the usual one. Not half of them: of readings in two states, day
and night, most pairs are in one. Not nearly all: of one row in ten far out is one in five pairs."""

USUAL = 1.3463173
"""That quantile of chi-squared with 4 degrees of freedom, over 4: |Px - Py|^2 / |x - y|^2."""

_KEY = 0x7375626D65726765  # never another: points of two keys do not compare


@dataclass(frozen=True, slots=True, eq=False)
class Reservoir:
    """The rows of the smallest priorities, projected.

    Attributes
    ----------
    priorities : uint64 (m,)
        Ascending, no two alike; m is at most 64.
    points : float32 (m, 4)
    """

    priorities: npt.NDArray[np.uint64]
    points: npt.NDArray[np.float32]

    @classmethod
    def of(cls, rows: Array, priorities: npt.NDArray[np.uint64]) -> Reservoir:
        """Keep the rows (n, d) of the smallest priorities (n,), random 64-bit numbers.

        d is at least 8; rows are finite. O(d) for each that is kept.
        """
        if rows.ndim != 2 or rows.shape[1] < LEAST_WIDTH:
            raise ShapeError("rows", expected=f"(n, {LEAST_WIDTH} or more)", got=rows.shape)
        if priorities.shape != (len(rows),) or priorities.dtype != np.uint64:
            raise UsageError(
                f"expected a uint64 priority for each of {len(rows)} rows,"
                f" got {priorities.dtype} {priorities.shape}"
            )
        chosen = np.argsort(priorities, kind="stable")[:KEPT]
        return _smallest(priorities[chosen], _projected(rows[chosen], priorities[chosen]))

    @property
    def packed(self) -> bytes:
        """The bytes that two equal samples share."""
        return self.priorities.tobytes() + self.points.tobytes()


def merged(*parts: Reservoir) -> Reservoir:
    """Return the sample of all rows behind the parts, one or more."""
    return _smallest(
        np.concatenate([part.priorities for part in parts]),
        np.concatenate([part.points for part in parts]),
    )


def usual_square(reservoir: Reservoir) -> float:
    """Return the squared distance that most pairs of rows stay below, in the rows' own units.

    From at most 64 rows: in 18 of 20 cases off by at most a fifth where rows vary in many
    directions, and by a factor of at most 2.5 where they vary along one line. It is 0 where
    there are no distances, or none that float32 can tell from rounding.
    """
    squares = []
    for which in range(SETS):
        points = reservoir.points[reservoir.priorities % SETS == which].astype(np.float64)
        first, second = np.triu_indices(len(points), 1)
        squares.append(((points[first] - points[second]) ** 2).sum(axis=1))
    distances = np.concatenate(squares)
    if not distances.size:
        return 0.0
    usual = float(np.quantile(distances, SHARE)) / USUAL
    # What float32 rounds off a common offset is no distance.
    least = (2.0**-20 * float(np.abs(reservoir.points).max())) ** 2
    return usual if usual > least else 0.0


def _projected(rows: Array, priorities: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    points = np.empty((len(rows), NUMBERS))
    rows = np.ascontiguousarray(rows)
    for which in range(SETS):
        here = priorities % SETS == which
        for column, signs in enumerate(_signs(rows.shape[1], which)):
            # Not by a matrix product, whose last bits depend on how many rows there are.
            points[here, column] = (rows[here] * signs).sum(axis=1) / NUMBERS**0.5
    return np.clip(points, -LARGEST_POINT, LARGEST_POINT).astype(np.float32)


@lru_cache(maxsize=2 * SETS)
def _signs(width: int, which: int) -> Array:
    """(4, width) of -1 and 1, the same for ever and everywhere.

    From Philox's bits, which NumPy promises to leave as they are: bit i of the stream, the
    lowest of a word first, is for channel i // 4 and row i % 4.
    """
    n = NUMBERS * width
    words = np.random.Philox(key=np.array([_KEY, which], dtype=np.uint64)).random_raw(-(-n // 64))
    bits = np.asarray(words)[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    return 1.0 - 2.0 * bits.ravel()[:n].reshape(width, NUMBERS).T.astype(np.float64)


def _smallest(priorities: npt.NDArray[np.uint64], points: npt.NDArray[np.float32]) -> Reservoir:
    # By the points too, for equal priorities: what a liar repeats must not depend on the order.
    order = np.lexsort((*points.T[::-1], priorities))
    priorities, points = priorities[order], points[order]
    new = np.ones(len(priorities), dtype=np.bool_)
    new[1:] = priorities[1:] != priorities[:-1]
    priorities, points = priorities[new][:KEPT], points[new][:KEPT]
    for array in (priorities, points):
        array.flags.writeable = False
    return Reservoir(priorities, points)

"""Moments: count, mean and squared deviations of each channel, in the channels' own units.

Pooled exactly (Chan, Golub and LeVeque 1983), they give center and scale; those of scaled readings
and a projected sample of them give `spread`, and so gamma (docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import ShapeError, UsageError
from submerge.schema import Scaling

KEPT = 64  # rows in a sample, which then takes 1.5 kB
NUMBERS = 4  # numbers kept of each row
LEAST_WIDTH = 8  # shortest rows that are sampled: four numbers of a shorter one would reveal it
LARGEST_POINT = 1e18  # kept numbers are clipped to it: it is far from all others, and fits float32
SETS = 8  # sets of signs, chosen by a priority's last three bits

SHARE = 0.75
"""Quantile of the distances that is taken as typical. With 0.5, readings in two states, such as day
and night, would have most pairs in one state. If one row in ten is an outlier, one pair in five is,
so the quantile must stay below 0.8."""

TYPICAL = 1.3463173
"""The same quantile of chi-squared with 4 degrees of freedom, over 4: |Px - Py|^2 / |x - y|^2."""

_KEY = 0x7375626D65726765  # this never changes: points of two keys do not compare


@dataclass(frozen=True, slots=True, eq=False)
class Reservoir:
    """The projected rows with the smallest priorities: at most 64, ascending and different."""

    priorities: npt.NDArray[np.uint64]
    points: npt.NDArray[np.float32]

    @classmethod
    def of(cls, rows: Array, priorities: npt.NDArray[np.uint64]) -> Reservoir:
        """Sample finite rows (n, d), d at least 8, by random 64-bit priorities (n,)."""
        if rows.ndim != 2 or rows.shape[1] < LEAST_WIDTH:
            raise ShapeError("rows", expected=f"(n, {LEAST_WIDTH} or more)", got=rows.shape)
        if priorities.shape != (len(rows),) or priorities.dtype != np.uint64:
            raise UsageError(
                f"expected a uint64 priority for each of {len(rows)} rows,"
                f" got {priorities.dtype} {priorities.shape}"
            )
        chosen = np.argsort(priorities, kind="stable")[:KEPT]
        return _smallest(priorities[chosen], _projected(rows[chosen], priorities[chosen]))

    def first(self, most: int) -> Reservoir:
        """Return the rows with the smallest priorities of these."""
        return Reservoir(self.priorities[:most], self.points[:most])

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal samples."""
        return self.priorities.tobytes() + self.points.tobytes()


def merged(*parts: Reservoir) -> Reservoir:
    """Return the sample of all rows behind the parts, one or more."""
    return _smallest(
        np.concatenate([part.priorities for part in parts]),
        np.concatenate([part.points for part in parts]),
    )


def typical_square(reservoir: Reservoir) -> float:
    """Return the typical squared distance between two rows, in the rows' own units."""
    # From 64 rows it is, in 18 of 20 cases, off by at most a fifth where rows vary in many
    # directions, by a factor of 2.5 where along one line.
    squares = []
    for which in range(SETS):
        points = reservoir.points[reservoir.priorities % SETS == which].astype(np.float64)
        first, second = np.triu_indices(len(points), 1)
        squares.append(((points[first] - points[second]) ** 2).sum(axis=1))
    distances = np.concatenate(squares)
    if not distances.size:
        return 0.0
    typical = float(np.quantile(distances, SHARE)) / TYPICAL
    # Float32 rounding of a common offset is not a distance.
    least = (2.0**-20 * float(np.abs(reservoir.points).max())) ** 2
    return typical if typical > least else 0.0


def _projected(rows: Array, priorities: npt.NDArray[np.uint64]) -> npt.NDArray[np.float32]:
    points = np.empty((len(rows), NUMBERS))
    rows = np.ascontiguousarray(rows)
    for which in range(SETS):
        here = priorities % SETS == which
        for column, signs in enumerate(_signs(rows.shape[1], which)):
            # The last bits of a matrix product would depend on the number of rows.
            points[here, column] = (rows[here] * signs).sum(axis=1) / NUMBERS**0.5
    return np.clip(points, -LARGEST_POINT, LARGEST_POINT).astype(np.float32)


@lru_cache(maxsize=2 * SETS)
def _signs(width: int, which: int) -> Array:
    """Return signs (4, width), fixed for ever: bit i of Philox is for channel i // 4, row i % 4."""
    n = NUMBERS * width
    words = np.random.Philox(key=np.array([_KEY, which], dtype=np.uint64)).random_raw(-(-n // 64))
    bits = np.asarray(words)[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    return 1.0 - 2.0 * bits.ravel()[:n].reshape(width, NUMBERS).T.astype(np.float64)


def _smallest(priorities: npt.NDArray[np.uint64], points: npt.NDArray[np.float32]) -> Reservoir:
    # Points break ties of forged equal priorities, so that the order of parts does not matter.
    order = np.lexsort((*points.T[::-1], priorities))
    priorities, points = priorities[order], points[order]
    new = np.ones(len(priorities), dtype=np.bool_)
    new[1:] = priorities[1:] != priorities[:-1]
    priorities, points = priorities[new][:KEPT], points[new][:KEPT]
    for array in (priorities, points):
        array.flags.writeable = False
    return Reservoir(priorities, points)


SMALL = 1 / 5  # share of the trace below which the sample is used: chance alone does not reach it
FLAT = 1e-12  # largest deviation, over the mean, of a constant channel

LEAST_NODES, MOST_MOVED = 5, 10.0
"""From so many nodes on, none of them moves a scale further than that."""

ENOUGH = 32  # fewest sampled rows that say more than a mean


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Count, mean and summed squared deviations (channels,), and perhaps a sample of the rows."""

    count: int
    mean: Array
    m2: Array
    sample: Reservoir | None = None

    @classmethod
    def of(cls, rows: Array, priorities: npt.NDArray[np.uint64] | None = None) -> Moments:
        """Return the moments of rows (n, channels), n at least 1; with priorities also a sample."""
        mean = rows[0] + (rows - rows[0]).mean(axis=0)
        m2 = ((rows - mean) ** 2).sum(axis=0)
        if priorities is None or rows.shape[1] < LEAST_WIDTH:
            return cls(len(rows), mean, m2)
        return cls(len(rows), mean, m2, Reservoir.of(rows, priorities))

    @property
    def packed(self) -> bytes:
        """Bytes that are equal for equal moments."""
        sums = self.count.to_bytes(8, "little") + self.mean.tobytes() + self.m2.tobytes()
        return sums if self.sample is None else sums + self.sample.packed

    @property
    def scaling(self) -> Scaling:
        """Scaling by mean and standard deviation; a constant channel keeps its size."""
        deviation = np.sqrt(self.variance)
        scale = np.where(deviation == 0, 1.0, deviation)
        return Scaling(tuple(map(float, self.mean)), tuple(map(float, scale)))

    @property
    def variance(self) -> Array:
        """Variances (channels,); 0 for a constant channel, whatever rounding leaves of it."""
        variance = self.m2 / self.count
        return np.where(np.sqrt(variance) <= FLAT * np.abs(self.mean), 0.0, variance)

    @property
    def varying(self) -> int:
        """Number of channels that are not constant."""
        return int(np.count_nonzero(self.variance))


def pooled(*parts: Moments) -> Moments:
    """Return the moments of all rows behind the parts, one or more."""
    count = sum(part.count for part in parts)
    # Means are taken about the first one: an offset common to all costs no digits.
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
    samples = [part.sample for part in parts if part.sample is not None]
    sample = merged(*samples) if samples else None
    return Moments(count, parts[0].mean + shift, m2, sample)


def typical(nodes: Sequence[Moments]) -> Moments:
    """Return moments that no one of several nodes decides: means and variances are medians."""
    count = sum(node.count for node in nodes)
    mean = np.median([node.mean for node in nodes], axis=0)
    offsets = np.array([node.mean - mean for node in nodes])
    variances = np.array([node.variance for node in nodes])
    variances += np.where(np.abs(offsets) <= FLAT * np.abs(mean), 0.0, offsets**2)
    ascending = np.sort(variances, axis=0)
    varying = np.count_nonzero(ascending, axis=0)
    # The lower median of those that vary, where the median of all is 0.
    place = len(nodes) - varying + (varying - 1) // 2
    lower = np.take_along_axis(ascending, np.where(varying > 1, place, 0)[None], axis=0)[0]
    middle = np.median(variances, axis=0)
    samples = [node.sample for node in nodes if node.sample is not None]
    # Of samples each has a bounded part, for it draws its own priorities.
    most = -(-2 * KEPT // max(1, len(samples)))
    sample = merged(*(each.first(most) for each in samples)) if samples else None
    return Moments(count, mean, count * np.where(middle > 0, middle, lower), sample)


def movers(nodes: Mapping[str, Moments]) -> list[str]:
    """Return the nodes each of which would, pooled, move a channel's scale more than tenfold."""
    few, count, found = len(nodes) < LEAST_NODES, sum(each.count for each in nodes.values()), []
    middle = None if few else typical(list(nodes.values()))
    for name, node in sorted(nodes.items()):
        if few or middle is None:
            others = [each for other, each in nodes.items() if other != name]
            middle = pooled(*others) if others else node
        squares = (node.count / count) * (node.variance + np.square(node.mean - middle.mean))
        if ((squares > MOST_MOVED**2 * middle.variance) & (middle.variance > 0)).any():
            found.append(name)
    return found


def spread(moments: Moments) -> float:
    """Return half the squared distance between two rows, for `Kernel.auto`; 1 for none."""
    trace = float(moments.variance.sum())
    if not trace > 1e-300:  # 1 / trace would overflow
        return 1.0
    sample = moments.sample
    if sample is None or len(sample.priorities) < ENOUGH:
        return trace
    # Where it is less than `SMALL` of the exact mean, the trace, a few outlying rows dominate that.
    # For rows along few directions it may be a third by chance.
    half = typical_square(sample) / 2
    return half if 1e-300 < half < SMALL * trace else trace

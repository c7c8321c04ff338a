"""Moments: count, mean and squared deviations of each channel, in the channels' own units.

A fleet whose scaling is not known yet reports only these: pooled, they give center and scale.
Pooling is exact (Chan, Golub and LeVeque 1983), and old rows count as much as new ones. A fleet
whose gamma is not known yet reports the moments of scaled readings and a projected sample of
them, which give `spread`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.schema import Scaling
from submerge.stats.reservoir import KEPT, LEAST_WIDTH, Reservoir, merged, typical_square

SMALL = 1 / 5
"""Share of the trace below which the sample is used: chance alone does not reach it."""

FLAT = 1e-12
"""Largest deviation, over the mean, of a constant channel."""

LEAST_NODES, MOST_MOVED = 5, 10.0
"""From so many nodes on, none of them moves a scale further than that."""

ENOUGH = 32
"""Fewest sampled rows that say more than a mean."""


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sizes of the channels of `count` rows.

    mean, m2 : (channels,), the mean and the summed squared deviations from it
    sample : Reservoir or None
        None without priorities, or if rows are too short.
    """

    count: int
    mean: Array
    m2: Array
    sample: Reservoir | None = None

    @classmethod
    def of(cls, rows: Array, priorities: npt.NDArray[np.uint64] | None = None) -> Moments:
        """Return the moments of rows (n, channels), n at least 1.

        With random 64-bit `priorities` (n,) they include a sample of the rows, if there are
        8 channels or more.
        """
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
    """Return moments that no one of several nodes decides: means and variances are medians.

    They are of as many rows as are behind the nodes. A node's variance is about the common mean; of
    a channel that most nodes have constant it is that of at least two others. Of samples each node
    has a bounded part, for it draws its own priorities.
    """
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
    """Return half the squared distance between two rows: the argument of `Kernel.auto`.

    Its mean is the trace of the covariance, which moments have exactly. Where the sample's
    typical value is less than `SMALL` of that, a few outlying rows dominate the mean, and the
    sample's value is returned. For rows along few directions it may be a third by chance.

    Returns
    -------
    float, above 0; 1 where nothing varies.
    """
    trace = float(moments.variance.sum())
    if not trace > 1e-300:  # 1 / trace would overflow
        return 1.0
    sample = moments.sample
    if sample is None or len(sample.priorities) < ENOUGH:
        return trace
    half = typical_square(sample) / 2
    return half if 1e-300 < half < SMALL * trace else trace

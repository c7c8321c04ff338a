"""What the answer's directions leave of rows that they were not learnt from, as merging sketches.

SPE (squared prediction error) is a row's squared distance in feature space from the directions
through the mean's projection; T2 (Hotelling's) sums its squared coordinates on them, each over its
variance. Sketches of both merge exactly, so the limits do not depend on the tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError
from submerge.features import Landmarks
from submerge.jobs.arrays import Arrays, expect
from submerge.kernel.nystrom import check_finite, chunks, outside_span
from submerge.stats.quantile_sketch import FINE, QuantileSketch, merged, packed, quantile, unpacked

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)
"""Shares of the rows that limits are given for."""

STATISTICS = ("spe", "t2")


def statistics(
    rows: Array, map_: Landmarks, axes: Array, mean: Array, variances: Array
) -> dict[str, Array]:
    """Return SPE and T2 of rows (n, d), (n,) each.

    Parameters
    ----------
    axes, mean, variances : (m, r), (m,), (r,)
    """
    spe, t2 = [np.empty(0)], [np.empty(0)]
    for part in chunks(rows):
        off = map_.lift(part)
        outside = outside_span(part, off, map_.kernel)
        off = off - mean
        along = off @ axes
        off -= along @ axes.T
        spe.append(outside + np.einsum("ij,ij->i", off, off))
        t2.append((along**2 / variances).sum(axis=1))
    found = {"spe": np.concatenate(spe), "t2": np.concatenate(t2)}
    check_finite(map_.kernel, *found.values())
    return found


def sketches_up(of: dict[str, Array]) -> Arrays:
    """Return a sketch of each statistic, as arrays."""
    return _up({name: QuantileSketch.of(values, FINE) for name, values in of.items()})


def merged_sketches(ups: Sequence[Arrays]) -> Arrays:
    """Return the sketches of all rows."""
    parts = [_sketches(up) for up in ups]
    return _up({name: merged(*(part[name] for part in parts), grain=FINE) for name in STATISTICS})


def check_sketches(up: Arrays) -> None:
    """Refuse arrays that are no sketches."""
    expect(up, {f"{name}_bins": (None, 2) for name in STATISTICS} | {"levels": (2,)})
    levels = up["levels"]
    if not ((np.abs(levels) <= 64) & (levels == np.rint(levels))).all():
        raise PeerError("a sketch has a level", kind="sketch")
    for name in STATISTICS:
        bins = up[f"{name}_bins"]
        if not (np.abs(bins) < 2**52).all() or not (bins == np.rint(bins)).all():
            raise PeerError("bins are whole numbers", kind="sketch")
        if len(bins) > FINE.bins or not (bins[:, 1] > 0).all() or (np.diff(bins[:, 0]) < 1).any():
            raise PeerError("bins rise, and have counts", kind="sketch")
    for sketch in _sketches(up).values():
        if sketch.level < FINE.level:
            raise PeerError("a sketch has a level", kind="sketch")
        unpacked(packed(sketch), FINE)


def limits(up: Arrays) -> Arrays:
    """Return the statistics' quantiles at `LEVELS`, and how many rows they are of."""
    found = {"limit_levels": np.array(LEVELS)}
    for name, sketch in _sketches(up).items():
        if sketch.n:
            found[f"{name}_limits"] = np.array([quantile(sketch, level) for level in LEVELS])
    return found


def _up(sketches: dict[str, QuantileSketch]) -> Arrays:
    found: dict[str, Array] = {
        f"{name}_bins": np.array(sketches[name].bins, dtype=np.float64).reshape(-1, 2)
        for name in STATISTICS
    }
    return found | {"levels": np.array([float(sketches[name].level) for name in STATISTICS])}


def _sketches(up: Arrays) -> dict[str, QuantileSketch]:
    return {
        name: QuantileSketch(
            int(level), tuple((int(i), int(n)) for i, n in up[f"{name}_bins"].tolist()), FINE
        )
        for name, level in zip(STATISTICS, up["levels"].tolist(), strict=True)
    }

"""What the answer's directions leave of rows that they were not learnt from, as merging sketches.

SPE is a row's squared distance in feature space from the directions through the mean's projection;
"inside" is its part in the points' span, which a model scores; "readings" is the readings' own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError
from submerge.features import Landmarks
from submerge.jobs.arrays import Arrays, check_counts, expect
from submerge.kernel.nystrom import check_finite, chunks, outside_span
from submerge.stats.quantile_sketch import FINE, QuantileSketch, merged, packed, quantile, unpacked

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
"""Shares of the rows that limits are given for, where there are enough."""

FEWEST = 10
"""Rows from which on there are limits: those of 0.5 and 0.9."""

STATISTICS = ("spe", "inside", "t2")
READINGS = "readings"


def names_of(*, readings: bool) -> tuple[str, ...]:
    """Return what is measured: that of the readings, too, if their directions are found."""
    return (*STATISTICS, READINGS) if readings else STATISTICS


def statistics(
    rows: Array, map_: Landmarks, axes: Array, mean: Array, variances: Array
) -> dict[str, Array]:
    """Return the statistics (n,) of the features of rows (n, d); axes (m, r), mean (m,)."""
    spe, inside, t2 = [np.empty(0)], [np.empty(0)], [np.empty(0)]
    for part in chunks(rows):
        off = map_.lift(part)
        outside = outside_span(part, off, map_.kernel)
        off = off - mean
        along = off @ axes
        off -= along @ axes.T
        inside.append(np.einsum("ij,ij->i", off, off))
        spe.append(outside + inside[-1])
        t2.append((along**2 / variances).sum(axis=1))
    found = {
        name: np.concatenate(of) for name, of in (("spe", spe), ("inside", inside), ("t2", t2))
    }
    check_finite(map_.kernel, *found.values())
    return found


def sketches_up(of: dict[str, Array]) -> Arrays:
    return _up({name: QuantileSketch.of(values, FINE) for name, values in of.items()})


def merged_sketches(ups: Sequence[Arrays]) -> Arrays:
    parts = [_sketches(up) for up in ups]
    return _up({name: merged(*(part[name] for part in parts), grain=FINE) for name in parts[0]})


def check_sketches(up: Arrays, names: Sequence[str], rows: int) -> None:
    """Refuse arrays that are no sketches of some statistics, of so many rows at most."""
    shapes: dict[str, tuple[int | None, ...]] = {f"{name}_bins": (None, 2) for name in names}
    expect(up, shapes | {f"{name}_level": (1,) for name in names})
    for name in names:
        level = up[f"{name}_level"]
        if not (abs(level[0]) <= 64 and level[0] == np.rint(level[0])):
            raise PeerError("a sketch has a level", kind="sketch")
        bins = up[f"{name}_bins"]
        if not (np.abs(bins) < 2**52).all() or not (bins == np.rint(bins)).all():
            raise PeerError("bins are whole numbers", kind="sketch")
        check_counts(bins[:, 1], rows)
        # Else all limits would be as coarse as one participant says.
        if level[0] > FINE.level and len(bins) <= FINE.bins // 2:
            raise PeerError("a sketch is no coarser than its bins need", kind="sketch")
        if len(bins) > FINE.bins or not (bins[:, 1] > 0).all() or (np.diff(bins[:, 0]) < 1).any():
            raise PeerError("bins rise, and have counts", kind="sketch")
    for sketch in _sketches(up).values():
        if sketch.level < FINE.level:
            raise PeerError("a sketch has a level", kind="sketch")
        unpacked(packed(sketch), FINE)


def limits(up: Arrays) -> Arrays:
    """Return quantiles at those of `SHARES` with a row beyond; none of fewer than `FEWEST` rows."""
    sketches = _sketches(up)
    rows = min(sketch.n for sketch in sketches.values())
    if rows < FEWEST:
        return {}
    shares = [share for share in SHARES if rows * (1.0 - share) >= 1.0 - 1e-9]
    found = {"limit_shares": np.array(shares)}
    for name, sketch in sketches.items():
        found[f"{name}_limits"] = np.array([quantile(sketch, share) for share in shares])
    return found


def _up(sketches: dict[str, QuantileSketch]) -> Arrays:
    found: dict[str, Array] = {}
    for name, sketch in sketches.items():
        found[f"{name}_bins"] = np.array(sketch.bins, dtype=np.float64).reshape(-1, 2)
        found[f"{name}_level"] = np.array([float(sketch.level)])
    return found


def _sketches(up: Arrays) -> dict[str, QuantileSketch]:
    names = [name.removesuffix("_bins") for name in up if name.endswith("_bins")]
    return {
        name: QuantileSketch(
            int(up[f"{name}_level"][0]),
            tuple((int(i), int(n)) for i, n in up[f"{name}_bins"].tolist()),
            FINE,
        )
        for name in names
    }

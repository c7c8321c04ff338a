"""What a replay with a kernel does differently: gamma, gaps, figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import SAPCA, Array, FixedRank, RankRule, Subspace, UsageError
from submerge.errors import ValuesError
from submerge.features import FeatureMap, Kernel
from submerge.judge.prepare import LARGEST_SCALED
from submerge.pca.subspace import LARGEST_SINGLE
from submerge.stats.moments import Moments, spread
from submerge_files.console.progress import advancing
from submerge_lab.replay.settings import ReplaySettings

LOUD = 0.9
"""Share of all distances from which one column hides the others from a kernel."""

MOST_ROWS = 2000
"""Rows of the sample: 31 MiB for each square matrix of them, and a second or two."""

NOTHING = 1e-9
"""Share of the energy below which eigenvalues are rounding errors."""

DRAWN = 0x67616D6D61
"""Seed of the sample of rows: any would do, and the same one gives the same gamma."""


@dataclass(frozen=True)
class KernelFigures:
    """Figures of a kernel in addition to those of its features.

    excess : over exact kernel PCA of the rows, in percent; None if that misses nothing
    """

    kernel: str
    gamma: float
    features: int
    map: str
    excess: float | None


def settle_gamma(map_: FeatureMap, rows: Array) -> FeatureMap:
    """Return a map with gamma settled for rows (n, channels), as their root would settle it."""
    # It uses moments and a sample of rows without gaps: nodes of a group without scaling measure no
    # others. Without such a row the fleet would wait for ever: that is refused. A map that has a
    # gamma keeps it.
    if map_.settled:
        return map_
    usable = rows[(np.abs(rows) < LARGEST_SCALED).all(axis=1)]
    if not len(usable):
        raise UsageError(
            f"expected rows to settle gamma by, without a gap and below {LARGEST_SCALED:g}, got"
            f" none among {len(rows)}: give a --gamma, or leave columns out with --skip"
        )
    # Raw bits: the same rows are drawn, whatever NumPy's version.
    priorities = np.random.Philox(key=DRAWN).random_raw(len(usable))
    moments = Moments.of(usable, priorities)
    if not moments.varying:
        raise UsageError(
            f"expected rows that differ to settle gamma by, got {len(usable)} that are equal: give"
            " a --gamma"
        )
    return map_.settled_at(map_.auto(spread(moments)))


def dominance_note(rows: Array, names: tuple[str, ...]) -> str | None:
    """Return a note if one column of rows (n, channels) makes up most of all distances."""
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.nanvar(rows, axis=0)
    share = float(variance.max() / variance.sum()) if variance.sum() > 0 else 0.0
    if len(names) < 2 or share <= LOUD:
        return None
    return (
        f"columns are in their own units, and {names[int(variance.argmax())]} makes up"
        f' {share:.0%} of all distances: a fleet with scaling = "fleet" has another kernel'
    )


def filler_of(settings: ReplaySettings, rule: RankRule, width: int) -> SAPCA:
    """Return a linear engine that learns the columns themselves and fills their gaps."""
    # It has as many directions as a kernel group keeps of its readings.
    return SAPCA(
        FixedRank(min(rule.start, max(1, width // 2))),
        oversample=settings.oversample,
        forgetting_factor=settings.forgetting_factor,
        center=settings.center == "stream",
    )


@contextmanager
def within_float32(map_: FeatureMap | None) -> Iterator[None]:
    """Turn the error of features too large to store into one that names the options."""
    try:
        yield
    except ValuesError as error:
        if map_ is None:
            raise
        raise UsageError(
            f"features must stay below {LARGEST_SINGLE:g}: lower --gamma or --degree"
        ) from error


def uncached(map_: FeatureMap) -> FeatureMap:
    """Return a map of the same size with another seed, whose weights are not made yet."""
    # Weights are made once in a process, and count as memory of a map.
    seeded: Any = map_
    other: FeatureMap = dataclasses.replace(seeded, seed=seeded.seed ^ 1)
    return other


def figures_of(rows: Array, map_: FeatureMap, subspace: Subspace, *, center: bool) -> KernelFigures:
    """Return the figures of a kernel for rows (n, channels) and their model."""
    spec: dict[str, Any] = dict(map_.spec())
    return KernelFigures(
        kernel=spec["kernel"],
        gamma=float.fromhex(spec["gamma"]),
        features=map_.dim(rows.shape[1]),
        map=spec["kind"],
        excess=excess(rows, map_, subspace, center=center),
    )


def excess(rows: Array, map_: FeatureMap, subspace: Subspace, *, center: bool) -> float | None:
    """Return what `subspace` misses of rows' kernel matrix, above the least, in percent.

    That is 100 ([tr K - tr Q'KQ] / (lambda_(r+1) + ... + lambda_n) - 1), K the exact kernel matrix
    of at most `MOST_ROWS` rows, lambda its eigenvalues, and Q an orthonormal basis of the rows' r
    scores; None where the best r directions miss nothing. It includes the error of features in
    place of the kernel, and that of a stream in place of a decomposition.
    """
    some = rows[_evenly(len(rows))]
    scores = np.concatenate(
        [
            (map_.lift(some[i : i + 256]) - subspace.mean) @ subspace.basis
            for i in range(0, len(some), 256)
        ]
    )
    with advancing("exact kernel PCA", 2) as progress:
        kernel: Any = map_
        K = _gram(kernel.kernel, some, center=center)
        progress(1)
        eigenvalues = np.maximum(np.linalg.eigvalsh(K), 0.0)
        progress(1)
    Q = _basis(scores - scores.mean(axis=0) if center else scores)
    energy = float(np.trace(K))
    missed = energy - float(np.vdot(Q, K @ Q))
    best = float(eigenvalues[: len(K) - subspace.rank].sum())
    return 100.0 * (missed / best - 1.0) if best > NOTHING * energy else None


def _evenly(n: int) -> npt.NDArray[np.int64]:
    """Return indices of at most `MOST_ROWS` of n rows, the first and the last included."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).round().astype(np.int64))


def _gram(kernel: Kernel, rows: Array, *, center: bool) -> Array:
    K = kernel(rows, rows)
    if center:
        means = K.mean(axis=0)
        K -= means
        K -= means[:, None] - means.mean()
    return K


def _basis(scores: Array) -> Array:
    """Return an orthonormal basis of the columns (n, r), without rounding errors."""
    U, sigma, _ = np.linalg.svd(scores, full_matrices=False)
    return np.asarray(U[:, sigma > 1e-9 * sigma[:1]])

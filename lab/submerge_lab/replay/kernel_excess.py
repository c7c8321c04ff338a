"""Excess: how much more a subspace of features misses than exact kernel PCA of the same rank.

It includes the error of features in place of the kernel, and that of a stream in place of a
decomposition. It needs the kernel matrix, so it uses a sample of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from submerge import Array, Subspace
from submerge.features import FeatureMap, Kernel
from submerge_files.console.progress import advancing

MOST_ROWS = 2000
"""Rows of the sample: 31 MiB for each square matrix of them, and a second or two."""

NOTHING = 1e-9
"""Share of the energy below which eigenvalues are rounding errors."""


def excess(rows: Array, map_: FeatureMap, subspace: Subspace, *, center: bool) -> float | None:
    """Return what `subspace` misses of rows' kernel matrix, above the least, in percent.

    rows : (n, channels). At most 2000 of them, evenly spaced, are used.
    map_ : With a kernel and a settled gamma.
    subspace : Of features.
    center : Measure from the rows' mean in feature space, or from zero.

    Returns
    -------
    float or None
        100 ([tr K - tr Q'KQ] / (lambda_(r+1) + ... + lambda_n) - 1), K the exact kernel matrix,
        lambda its eigenvalues, and Q an orthonormal basis of the rows' r scores. None where the
        best r directions miss nothing.
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

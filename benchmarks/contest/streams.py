"""Rows to learn: spectra that are generated, and rows of files."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from contest.contender import Array
from submerge import UsageError
from submerge_lab.replay.stacked import stacked

ALPHAS = (1e-4, 1e-3, 0.5, 1.0, 2.0, 3.0)
"""The spectra of Grammenos et al.: eigenvalues i^-alpha."""


class BenchStream(NamedTuple):
    """Rows to learn, centered, since most methods do not center.

    name : for people
    rows : (n, dim)
    """

    name: str
    rows: Array


def spectrum(alpha: float, *, n: int = 4000, dim: int = 400, seed: int = 0) -> BenchStream:
    """Return rows with eigenvalues i^-alpha: Synth of Grammenos et al., arXiv:1907.08059."""
    return BenchStream(f"Synth({alpha:g})", synth(n, dim, alpha=alpha, seed=seed))


def synth(n: int, dim: int, *, alpha: float, seed: int) -> Array:
    """Return n centered rows with covariance S diag(i^-alpha) S'.

    S is signs, a cosine transform and signs again: orthogonal, and O(dim log dim) a row where a
    random one is O(dim^2). No method here depends on a rotation.
    """
    from scipy import fft  # late: `submerge --help` does without

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    X *= np.arange(1, dim + 1) ** (-alpha / 2) * rng.choice([-1.0, 1.0], dim)
    X = fft.dct(X, norm="ortho", axis=1, overwrite_x=True)
    X *= rng.choice([-1.0, 1.0], dim)
    X -= X.mean(axis=0)
    return np.asarray(X, dtype=np.float64)


def of_files(paths: Sequence[Path], *, skip: Collection[str] = ()) -> BenchStream:
    """Return the rows of files without a gap, less their mean; `skip` names columns to leave out.

    UsageError if a file is no table, or fewer than two of its rows have no gap.
    """
    table = stacked(paths, skip=skip)
    sys.stderr.writelines(f"note: {note}\n" for note in table.notes)
    rows = table.rows
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) < 2:
        raise UsageError(f"expected two rows or more without a gap, got {len(rows)} in {paths[0]}")
    return BenchStream(", ".join(path.name for path in paths), rows - rows.mean(axis=0))

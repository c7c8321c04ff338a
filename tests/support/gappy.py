"""Rows of a small plant, and the ways in which values of them are missing."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter


def plant(n: int, noise: float, seed: int) -> np.ndarray:
    """Rows of two hidden causes, and a noise."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).normal(size=(2, 4)) * 2
    return 20 + rng.normal(size=(n, 2)) @ loadings + noise * rng.normal(size=(n, 4))


def slow_plant() -> np.ndarray:
    """Rows of two hidden causes that last for an hour, and a noise."""
    rng = np.random.default_rng(0)
    causes = lfilter([0.2], [1.0, -0.98], rng.normal(size=(6000, 2)), axis=0)
    loadings = np.random.default_rng(99).normal(size=(2, 4)) * 2
    return 20 + causes @ loadings + 0.1 * rng.normal(size=(6000, 4))


def with_gaps(rows: np.ndarray, kind: str) -> np.ndarray:
    """Rows with values missing: a share at random, or of d, for a part of the time."""
    rows, n, rng = rows.copy(), len(rows), np.random.default_rng(1)
    away = {
        "start": slice(0, n // 4),
        "middle": slice(n // 3, n // 3 + n // 4),
        "end": slice(-n // 4, None),
    }
    if kind.endswith("%"):
        rows[rng.random(rows.shape) < float(kind[:-1]) / 100] = np.nan
    elif kind == "flickers":  # three values, and then none for a quarter
        rows[3 : n // 4, 3] = np.nan
    elif kind == "every other row":
        rows[::2, 3] = np.nan
    elif kind == "two sensors of four":
        rows[: n // 4, :2] = np.nan
    else:
        rows[away[kind], 3] = np.nan
    return rows

"""Rows of a machine with six channels and two causes, as recordings of a history."""

from __future__ import annotations

import numpy as np

from submerge.history.fit import Fitted, fit
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings

NAMES = [f"c{i}" for i in range(6)]
EPOCH, PERIOD = 1.7e9, 60.0
RNG = np.random.default_rng(3)
PATTERN = RNG.normal(size=(2, 6))
SCALE, OFFSET = RNG.uniform(0.01, 100.0, 6), RNG.normal(size=6) * 1000


def normal(n: int, seed: int = 0) -> np.ndarray:
    """Return rows of one machine, in units: two causes and a noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2)) @ PATTERN + 0.3 * rng.normal(size=(n, 6))
    return rows * SCALE + OFFSET


def recorded(
    rows: np.ndarray, cuts: tuple[int, ...] = (), *, timed: bool = True, first: float = EPOCH
) -> list[Recorded]:
    """Return rows as files that are cut at some rows."""
    times = first + PERIOD * np.arange(len(rows)) if timed else None
    ends = [*sorted(cuts), len(rows)]
    parts, start = [], 0
    for number, end in enumerate(ends):
        if end > start:
            part = None if times is None else times[start:end]
            parts.append(Recorded("m", rows[start:end], part, f"{number}.csv"))
        start = max(start, end)
    return parts


def learnt(parts: list[Recorded], **settings: object) -> Fitted:
    """Return what is learnt of recordings, with some settings."""
    return fit(lambda: parts, NAMES, FitSettings(**settings))

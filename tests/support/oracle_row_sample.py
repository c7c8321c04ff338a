"""The obvious twin of `RowSample`: all rows are kept with their priorities, and sorted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def smallest(
    rows: np.ndarray, sizes: Sequence[int], most: int, rng: np.random.Generator
) -> set[tuple[float, ...]]:
    """Return the rows with the smallest priorities, drawn block by block."""
    drawn = [word for n in sizes for word in np.frombuffer(rng.bytes(8 * n), dtype="<u8")]
    ranked = sorted(zip(drawn, map(tuple, rows), strict=True))
    return {row for _, row in ranked[:most]}

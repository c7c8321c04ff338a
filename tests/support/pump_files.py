"""Files of a pump, as people have them: a history, and a day with a fault."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

NAMES = ("flow", "pressure", "current", "temperature")
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
FAULT = slice(840, 930)
"""Rows in which the flow meter of a bad day reads too high: from 14:00 to 15:30."""


def readings(rows: int, seed: int = 0, *, first: int = 0, level: float = 0.0) -> np.ndarray:
    """Return a row a minute, (rows, 4), in the channels' units."""
    rng = np.random.default_rng(seed)
    load = 1 + 0.3 * np.sin((first + np.arange(rows)) / 200) + rng.normal(0, 0.05, rows)
    each = (40 * load, 3 + 1.5 * load**2, 4 + 6 * load, 45 + 8 * load)
    return np.column_stack(each) + rng.normal(size=(rows, 4)) * (0.4, 0.02, 0.1, 0.3) + level


def write(path: Path, rows: np.ndarray, *, first: int = 0, timed: bool = True) -> Path:
    """Write rows as CSV with headings, the first so many minutes after `BEGIN`."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(["time"] if timed else []), *NAMES])
        for minute, row in enumerate(rows, first):
            time = [(BEGIN + timedelta(minutes=minute)).isoformat()] if timed else []
            table.writerow([*time, *(f"{number:.3f}" for number in row)])
    return path


def bad_day(seed: int = 1) -> np.ndarray:
    """Return the rows of a day with a fault of the flow meter."""
    rows = readings(1440, seed, first=20_160)
    rows[FAULT, 0] += 6
    return rows

"""AnotherLevel: whether rows are at another level than those that were learnt.

A level is the median of a channel, so that a short fault is none. `fit`, `score`, `detect` and the
Python class decide it alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from submerge import Array
from submerge_files.console.units import printable

FAR = 6.0
"""Standard deviations of the median row beyond which the level is another one."""

FEWEST = 30
"""Rows that a level is of."""

SHOWN = 3
"""Channels that the warning names."""


class AnotherLevel:
    """Compares the level of rows with one that was learnt.

    mean, deviation : (channels,). Of the rows that were learnt, in units. A deviation of 0 compares
        nothing.
    """

    def __init__(self, names: Sequence[str], mean: Array, deviation: Array) -> None:
        self._names, self._mean, self._deviation = names, mean, deviation
        self._medians: list[Array] = []
        self._rows = 0

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account; lags beside them say nothing new."""
        rows = rows[:, : len(self._names)]
        known = np.isfinite(rows).any(axis=0)
        median = np.full(rows.shape[1], np.nan)
        median[known] = np.nanmedian(np.where(np.isfinite(rows), rows, np.nan)[:, known], axis=0)
        self._medians.append(median)
        self._rows += len(rows)

    @property
    def medians(self) -> Array:
        """(m, channels), the medians of what was added."""
        return np.array(self._medians).reshape(-1, len(self._names))

    def take(self, medians: Array, rows: int) -> None:
        """Take the medians (m, channels) of so many rows into account."""
        self._medians += list(medians)
        self._rows += rows

    def warn(self, stacklevel: int) -> None:
        """Warn if a channel is far from where it was learnt."""
        if self.said:
            warnings.warn(self.said, UserWarning, stacklevel=stacklevel + 1)

    @property
    def said(self) -> str:
        """Which channels are far from where they were learnt; empty if none is."""
        far = self.far
        return f"these rows are at another level than those that were learnt: {far}" if far else ""

    @property
    def far(self) -> str:
        """How far the furthest channels are; empty if none is."""
        if self._rows < FEWEST:
            return ""
        medians = np.array(self._medians)
        known = np.isfinite(medians).any(axis=0) & (self._deviation > 0)
        far = np.zeros(len(self._names))
        level = np.nanmedian(medians[:, known], axis=0)
        far[known] = (level - self._mean[known]) / self._deviation[known]
        worst = [i for i in np.argsort(-np.abs(far), kind="stable") if abs(far[i]) > FAR]
        if not worst:
            return ""
        said = [
            f"{printable(self._names[i])} is {abs(far[i]):.0f} standard deviations"
            f" {'higher' if far[i] > 0 else 'lower'}"
            for i in worst[:SHOWN]
        ]
        more = f", and {len(worst) - SHOWN} more" if len(worst) > SHOWN else ""
        return f"{', '.join(said)}{more}"

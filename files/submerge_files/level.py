"""AnotherLevel: whether median rows, not short faults, are far from those that were learnt."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from submerge import Array
from submerge_files.console.units import printable

FAR = 6.0  # standard deviations of the median row beyond which the level is another one
FEWEST = 30  # rows that a level is of
SHOWN = 3  # channels that the warning names
AT_ONCE = 4096  # rows whose median is taken together: the level is the median of these, by rows


class AnotherLevel:
    """Compares the level of rows with that learnt (channels,); deviations of 0 compare nothing."""

    def __init__(self, names: Sequence[str], mean: Array, deviation: Array) -> None:
        self._names, self._mean, self._deviation = names, mean, deviation
        self._waiting: list[Array] = []
        self._parts: list[Array] = []

    def fresh(self) -> AnotherLevel:
        """Return the same without rows."""
        return AnotherLevel(self._names, self._mean, self._deviation)

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account; lags beside them say nothing new."""
        self._waiting.append(rows[:, : len(self._names)])
        if sum(map(len, self._waiting)) >= AT_ONCE:
            self._close()

    @property
    def parts(self) -> Array:
        """(m, 2, channels), medians of what was added, and the readings in each."""
        self._close()
        return np.array(self._parts).reshape(-1, 2, len(self._names))

    def take(self, parts: Array) -> None:
        """Take `parts` of other rows into account."""
        self._parts += list(parts)

    def warn(self, stacklevel: int) -> None:
        """Warn if a channel is far from where it was learnt."""
        said = self.said
        if said:
            warnings.warn(said, UserWarning, stacklevel=stacklevel + 1)

    @property
    def said(self) -> str:
        """Which channels are far from where they were learnt; empty if none is."""
        far = self.far[1]
        return f"these rows are at another level than those that were learnt: {far}" if far else ""

    @property
    def far(self) -> tuple[float, str]:
        """The largest deviation, and how far the furthest channels are; 0 and "" if none is."""
        deviations = self._deviations()
        worst = np.argsort(-np.abs(deviations), kind="stable")
        worst = worst[np.abs(deviations[worst]) > FAR]
        if not len(worst):
            return 0.0, ""
        said = [
            f"{printable(self._names[i])} is {abs(deviations[i]):.0f} standard deviations"
            f" {'higher' if deviations[i] > 0 else 'lower'}"
            for i in worst[:SHOWN].tolist()
        ]
        more = f", and {len(worst) - SHOWN} more" if len(worst) > SHOWN else ""
        return float(abs(deviations[worst[0]])), f"{', '.join(said)}{more}"

    def _close(self) -> None:
        if not self._waiting:
            return
        rows = np.concatenate(self._waiting)
        self._waiting.clear()
        finite = np.isfinite(rows)
        counts, median = finite.sum(axis=0), np.full(rows.shape[1], np.nan)
        if finite.all() and len(rows):
            median = np.median(rows, axis=0)
        elif counts.any():
            known = counts > 0
            held = np.where(finite[:, known], rows[:, known], np.nan)
            median[known] = np.nanmedian(held, axis=0)
        self._parts.append(np.stack([median, counts]))

    def _deviations(self) -> Array:
        """Return by how many standard deviations each channel is off; 0 where that is not known."""
        far, parts = np.zeros(len(self._names)), self.parts
        for i in np.flatnonzero((parts[:, 1].sum(axis=0) >= FEWEST) & (self._deviation > 0)):
            some = parts[parts[:, 1, i] > 0, :, i]
            median = _weighted_median(some[:, 0], some[:, 1])
            far[i] = (median - self._mean[i]) / self._deviation[i]
        return far


def _weighted_median(values: Array, weights: Array) -> float:
    """Return the median of values (n,), each of which counts so many times."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    first, last = np.searchsorted(below, half), np.searchsorted(below, half, side="right")
    return float((values[order[first]] + values[order[min(last, len(values) - 1)]]) / 2)

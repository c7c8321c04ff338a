"""Whether a file is at the model's level: its mean reading, channel by channel.

A machine that stands elsewhere than those of the history is above every limit, and nothing is wrong
with it. Each row counts at most `MOST` standard deviations: a short fault is no level.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from submerge import Array
from submerge.judge.prepare import Block
from submerge_files.console.printable import printable
from submerge_files.score.columns import lags_of
from submerge_files.score.mean import Center
from submerge_files.score.model import Normal

FAR = 3.0
"""Standard deviations from which a file is said to be at another level."""

MOST = 10.0
"""Most standard deviations that one row counts: with 30 % of such rows a file is at another level,
and not with less."""


def deviations_of(normal: Normal) -> Array:
    """Return the standard deviation of each channel by the model, lags left out; scaled."""
    linear = normal.summary.parts[-1]
    held = np.square(linear.basis, dtype=np.float64) @ linear.explained_variance
    if normal.factors:
        factors = normal.factors[-1]
        variance = factors.noise + np.square(factors.loadings_of(linear)).sum(axis=1)
    elif linear.channel_energies is not None:
        variance = linear.channel_energies / linear.weight
    else:
        rest = (linear.energy - np.square(linear.sigma).sum()) / linear.weight
        variance = held + max(rest, 0.0) / linear.dim
    deviations: Array = np.sqrt(variance)
    return deviations[: normal.schema.width // lags_of(normal.schema.names)]


class Levels:
    """How far files are from the means that their rows are measured from."""

    def __init__(self, normal: Normal) -> None:
        self._normal = normal
        self._deviations = deviations_of(normal)
        self._paths: set[Path] = set()
        self._furthest: tuple[float, str, Path] = (0.0, "", Path())
        self._files = 0

    def begin(self, center: Center) -> None:
        """Begin a file whose rows are measured from this mean."""
        mean = self._normal.summary.parts[-1].mean if center.own is None else center.own.rows
        self._mean: Array = mean[: len(self._deviations)]
        self._sum = np.zeros(len(self._mean))
        self._count = np.zeros(len(self._mean))
        self._files += 1

    def add(self, block: Block) -> None:
        """Take rows into account; what was filled says nothing."""
        width = len(self._mean)
        # A channel that never varied has no level that another one could be compared with.
        unit = np.where(self._deviations > 0, self._deviations, np.inf)
        off = np.clip((block.rows[:, :width] - self._mean) / unit, -MOST, MOST)
        known = np.ones(off.shape, bool) if block.gaps is None else ~block.gaps[:, :width]
        self._sum += np.where(known, off, 0.0).sum(axis=0)
        self._count += known.sum(axis=0)

    def end(self, path: Path) -> None:
        """End a file."""
        off = np.abs(self._sum) / np.maximum(self._count, 1)
        channel = int(off.argmax())
        if off[channel] >= FAR:
            self._paths.add(path)
            found = float(off[channel]), self._normal.schema.names[channel], path
            self._furthest = max(self._furthest, found)

    @property
    def warning(self) -> str | None:
        """One line about files at another level, with what to do; None if there are none."""
        if not self._paths:
            return None
        off, channel, path = self._furthest
        of = f"{printable(str(path))} is"
        if len(self._paths) > 1:
            of = f"{len(self._paths)} of {self._files} files are"
            channel = f"in {printable(str(path))} {channel}"
        own = " or its own mean (--mean own)" if self._normal.schema.center == "own" else ""
        return (
            f"{of} at another level than the model: {printable(channel)} is off by {off:.1f}"
            " standard deviations on average; if that is normal there, measure from the first"
            f" rows (--mean first:400){own}"
        )

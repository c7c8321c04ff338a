"""RowSets: the rows that a client holds for jobs, each in one set and one group for its life."""

# 1. A set is drawn when a job asks, and stays until as many rows have come: no two sets share one.
# 2. Its rows are in groups of five or more that are near each other. What jobs hold out, and what
#    k-means sums, are whole groups: so no sums, of however many rounds and jobs, tell fewer apart.
# 3. Distances of rows held out are told one by one, in steps. So a set takes part a bounded number
#    of times. They are counted in memory, where the rows are: after a restart there are others.

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.features.draws import uniforms
from submerge.jobs.landmark_sample import RowSample
from submerge.protocol.names import RandomSource

FEWEST = 5
"""Rows of a node in each sum that it sends: one of fewer says too much of each."""

LEAST_ROWS = 8
"""Rows of a set: sums over fewer say too much of each."""

MOST_ATTEMPTS = 400
"""Attempts that jobs over the same rows may make: fifty jobs of eight."""

Labels = npt.NDArray[np.intp]

STEPS = 3  # of the power method: enough to cut along a long direction


class RowSets:
    """A sample of `most` rows, at least 1, of a stream, and the set that jobs have now."""

    def __init__(self, most: int, width: int, rng: RandomSource) -> None:
        self._most, self._width, self._rng = most, width, rng
        self._sample = RowSample(most, width, rng)
        self._set: Array = np.empty((0, width))
        self._order = np.empty(0)
        self._attempts = 0

    def __len__(self) -> int:
        """Return how many rows wait for the next set."""
        return len(self._sample)

    def add(self, rows: Array) -> None:
        self._sample.add(rows)

    def draw(self, attempts: int) -> tuple[Array, Array, int]:
        """Return a job's rows (n, width), a secret number for each, and attempts so far in all."""
        # Drawn once for a set: what is held out follows from these numbers, and from no job.
        if len(self._sample) >= max(LEAST_ROWS, len(self._set)):
            words = self._rng.bytes(8 * len(self._sample))
            self._set, self._attempts = self._sample.rows, 0
            self._order = uniforms(np.frombuffer(words, dtype="<u8"))
            self._sample = RowSample(self._most, self._width, self._rng)
        self._attempts += attempts
        return self._set.copy(), self._order, self._attempts


def near_groups(rows: Array, least: int = FEWEST) -> Labels:
    """Return the number of each row's group: `least` rows or more in each, or all; O(n d log n)."""
    # Cut in two, across the longest direction, where that leaves the least squares.
    labels = np.zeros(len(rows), dtype=np.intp)
    todo, found = [np.arange(len(rows))] if len(rows) else [], 0
    while todo:
        at = todo.pop()
        n = len(at)
        if n < 2 * least:
            labels[at], found = found, found + 1
            continue
        off = rows[at] - rows[at].mean(axis=0)
        along = np.argsort(off @ _longest(off), kind="stable")
        at, off = at[along], off[along]
        firsts = np.cumsum(off, axis=0)[:-1]
        m = np.arange(1.0, n)
        saved = np.square(firsts).sum(axis=1) * (1 / m + 1 / (n - m))
        # No crumbs: the depth stays logarithmic.
        side = max(least, n // 16)
        cut = side + int(np.argmax(saved[side - 1 : n - side]))
        todo += [at[cut:], at[:cut]]
    return labels


def _longest(off: Array) -> Array:
    """Return nearly the longest direction (d,) of rows (n, d) about their mean."""
    direction = np.zeros(off.shape[1])
    direction[np.argmax(np.square(off).sum(axis=0))] = 1.0
    for _ in range(STEPS):
        found = off.T @ (off @ direction)
        length = float(np.linalg.norm(found))
        if not 0.0 < length < np.inf:
            break
        direction = found / length
    return direction

"""ColumnRanges: what all rows of a channel say: marks of missing values, standstill, meters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from submerge import Array
from submerge.judge.prepare import LARGEST_SCALED

MARKS = 5  # outermost values of a channel, on each side, that may be apart from the others
FEWEST_IN_RANGE = 3  # rows of such a value from which it marks something
APART = 2.0  # how far it is then from all others, over the range of these

FEWEST_RISES, RISES_EACH = 50, 1000
"""Steps up that show a meter, and for each step down, as where it begins again."""

FOLDED = 8  # rows laid side by side to find ranges: NumPy reduces long rows sooner than many


class _Edge:
    """The outermost values of each channel, (MARKS + 1, n), ascending times `sign`."""

    def __init__(self, n: int, sign: float) -> None:
        self.values: Array = np.full((MARKS + 1, n), np.inf)
        self.rows: Array = np.zeros((MARKS + 1, n))
        self._sign = sign
        # fmin and fmax pass over NaN.
        self._outermost = np.fmin if sign > 0 else np.fmax

    def add(self, rows: Array) -> None:
        # Mostly no channel goes as far as it has gone before, and nothing is to be counted.
        for i in np.flatnonzero(self._edge_of(rows) <= self.values[-1]):
            column = self._sign * rows[:, i]
            found, times = np.unique(column[column <= self.values[-1, i]], return_counts=True)
            values, which = np.unique([*self.values[:, i], *found], return_inverse=True)
            counts = np.bincount(which, [*self.rows[:, i], *times])
            kept = min(len(values), MARKS + 1)
            self.values[:kept, i], self.rows[:kept, i] = values[:kept], counts[:kept]

    def _edge_of(self, rows: Array) -> Array:
        width = self.values.shape[1]
        if len(rows) % FOLDED == 0 and rows.flags.c_contiguous:
            rows = rows.reshape(-1, FOLDED * width)
        nothing = self._sign * np.inf
        folded = self._outermost.reduce(rows, axis=0, initial=nothing).reshape(-1, width)
        return np.asarray(self._sign * self._outermost.reduce(folded, axis=0, initial=nothing))


class ColumnRanges:
    """Takes all rows, those of a machine in their order; then it has a note for each channel."""

    def __init__(
        self,
        names: Sequence[str],
        gaps: str = "{} makes it a gap",
        states: str = "leave these rows out",
    ) -> None:
        self._names, self._gaps, self._states = names, gaps, states
        self._low, self._high = _Edge(len(names), 1.0), _Edge(len(names), -1.0)
        self._last: Array = np.full((1, len(names)), np.nan)
        self._rises: npt.NDArray[np.intp] = np.zeros(len(names), dtype=np.intp)
        self._falls = self._rises.copy()

    def add(self, rows: Array) -> None:
        """Take rows (n, channels) into account."""
        self._low.add(rows)
        self._high.add(rows)
        rows = np.vstack([self._last, rows])
        with np.errstate(invalid="ignore"):  # of infinities
            steps = np.diff(rows, axis=0)
        rises, falls = (np.count_nonzero(each, axis=0) for each in (steps > 0, steps < 0))
        self._last = rows[-1:].copy()
        for i in np.flatnonzero(np.isnan(rows).any(axis=0)):
            # From a known value to the next.
            known = rows[~np.isnan(rows[:, i]), i]
            above, below = known[1:] > known[:-1], known[1:] < known[:-1]
            rises[i], falls[i] = np.count_nonzero(above), np.count_nonzero(below)
            self._last[0, i] = known[-1] if len(known) else np.nan
        self._rises += rises
        self._falls += falls

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each channel that has one."""
        for i, name in enumerate(self._names):
            low, high = float(self._low.values[0, i]), -float(self._high.values[0, i])
            if low > high:
                yield f"channel {name} has no value in any row"
            elif low == high:
                yield f"channel {name} is {low:g} in all rows"
            elif max(-low, high) >= LARGEST_SCALED:
                yield (
                    f"channel {name} goes from {low:g} to {high:g}: numbers above"
                    f" {LARGEST_SCALED:g} are no readings; their rows are not learnt, and judged as"
                    f" if they were that many scales of the channel"
                )
            else:
                yield from self._marked(i)
                yield from self._meter(i)

    def _marked(self, i: int) -> Iterator[str]:
        """Yield a sentence for values that are far from all others, and come often."""
        marks, begin, end = self._marks(i)
        if marks:
            often = " and ".join(f"{value:g} in {rows:,} rows" for value, rows in marks)
            # In full, so that it is the value.
            gaps = self._gaps.format(",".join(repr(v).removesuffix(".0") for v, _ in marks))
            yield (
                f"channel {self._names[i]} is {often}, and from {begin:g} to {end:g} in all others:"
                f" if that marks missing values, {gaps}; if the machine stands still then,"
                f" {self._states}"
            )

    def _marks(self, i: int) -> tuple[list[tuple[float, int]], float, float]:
        """Return values and their rows, and the least and the greatest of the others."""
        lows, highs = self._low.values[:, i], -self._high.values[:, i]
        most = (0, 0)
        for below in range(MARKS + 1):
            for above in range(MARKS + 1):
                width = highs[above] - lows[below]
                if not 0 < width < np.inf:
                    continue
                apart = below == 0 or lows[below] - lows[below - 1] > APART * width
                apart &= above == 0 or highs[above - 1] - highs[above] > APART * width
                if apart and below + above > sum(most):
                    most = below, above
        found = [
            (float(value), int(rows))
            for values, counts, n in (
                (lows, self._low.rows[:, i], most[0]),
                (highs, self._high.rows[:, i], most[1]),
            )
            for value, rows in zip(values[:n], counts[:n], strict=True)
            if rows >= FEWEST_IN_RANGE
        ]
        return found, float(lows[most[0]]), float(highs[most[1]])

    def _meter(self, i: int) -> Iterator[str]:
        """Yield a sentence for a channel that rises, and falls at most where it begins again."""
        rises, falls = int(self._rises[i]), int(self._falls[i])
        if rises >= FEWEST_RISES and rises >= RISES_EACH * falls:
            yield (
                f"channel {self._names[i]} rises in {rises:,} rows and"
                f" {f'falls in {falls:,} alone' if falls else 'never falls'}: a meter or a counter"
                " is higher on each later day, and that is an alarm; learn what it rises by from"
                " row to row in its place, or leave it out"
            )

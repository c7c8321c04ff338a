"""Recorded: rows of one machine that follow one another, as they were recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Rows of one machine, in the order of time.

    machine : Which machine they are of. Rows of one machine come together, and one machine after
        another.
    rows : (n, channels). In their units; NaN is a gap.
    times : (n,) or None. Seconds since 1970, never falling; None if nothing says when they were.
    file : Where they are from, for people.
    first : The number of the first of them in its file, from 1.
    numbers : (n,) or None. The number of each, where they do not follow one another in their file.
    """

    machine: str
    rows: Array
    times: Array | None
    file: str = ""
    first: int = 1
    numbers: npt.NDArray[np.int64] | None = None

    def number(self, row: int) -> int:
        """Return the number of one of the rows in its file."""
        return self.first + row if self.numbers is None else int(self.numbers[row])

    def part(self, start: int, stop: int) -> Recorded:
        """Return some of the rows."""
        return replace(
            self,
            rows=self.rows[start:stop],
            times=None if self.times is None else self.times[start:stop],
            first=self.number(start),
            numbers=None if self.numbers is None else self.numbers[start:stop],
        )

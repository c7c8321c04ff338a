"""NumberedRows: readings that follow from their number, so that no client has to keep them.

Reading k of stream s is row `hash(seed, s, k)` of a bank of rows. A stream is a machine's.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge_lab.simulator.feeds import BANK, Rows

Picks = npt.NDArray[np.intp]

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = 2**64 - 1

AT_ONCE = 1 << 22
"""Readings whose rows are counted at once, at the end of a run."""


class NumberedRows(Rows):
    """Rows of a bank, by stream and number.

    Attributes
    ----------
    taken : dict of int to int
        Readings taken so far, by stream.
    """

    def __init__(self, dim: int, rank: int, oversample: int, rng: np.random.Generator) -> None:
        super().__init__(dim, rank, oversample, rng)
        self.taken: dict[int, int] = {}
        self._seed = int(rng.integers(2**63))

    @property
    def bank(self) -> Array:
        """All rows that readings are picked from, (BANK, dim)."""
        return self._bank

    def take(self, stream: int, n: int) -> int:
        """Let a stream take n readings; return the number of the first."""
        first = self.taken.get(stream, 0)
        self.taken[stream] = first + n
        self.generated += n
        return first

    def picks(self, stream: int, first: int, last: int) -> Picks:
        """Return which rows of the bank the readings [first, last) of a stream are."""
        numbers = np.arange(first, last, dtype=np.uint64)
        return _picked(numbers, np.uint64(self._start(stream)))

    def rows(self, stream: int, first: int, last: int) -> Array:
        """Return the readings [first, last) of a stream, (n, dim)."""
        return np.asarray(self._bank[self.picks(stream, first, last)])

    def count(self) -> None:
        """Count how often each row of the bank was read, for `angle`."""
        self._learnt[:] = 0
        numbers, starts, waiting = list[npt.NDArray[np.uint64]](), list[npt.NDArray[np.uint64]](), 0
        for stream, n in self.taken.items():
            numbers.append(np.arange(n, dtype=np.uint64))
            starts.append(np.full(n, self._start(stream), dtype=np.uint64))
            waiting += n
            if waiting >= AT_ONCE:
                self._add(np.concatenate(numbers), np.concatenate(starts))
                numbers, starts, waiting = [], [], 0
        if numbers:
            self._add(np.concatenate(numbers), np.concatenate(starts))

    def _add(self, numbers: npt.NDArray[np.uint64], starts: npt.NDArray[np.uint64]) -> None:
        self._learnt += np.bincount(_picked(numbers, starts), minlength=BANK)

    def _start(self, stream: int) -> int:
        return mixed(self._seed + stream * _GOLDEN)


def mixed(number: int) -> int:
    """Return a hash of 64 bits (the finalizer of SplitMix64)."""
    number = (number + _GOLDEN) & _WORD
    number = ((number ^ number >> 30) * _FIRST) & _WORD
    number = ((number ^ number >> 27) * _SECOND) & _WORD
    return number ^ number >> 31


def _picked(numbers: npt.NDArray[np.uint64], start: np.uint64 | npt.NDArray[np.uint64]) -> Picks:
    """As `mixed`, of many numbers, and then to a row of the bank."""
    x = numbers * np.uint64(_GOLDEN) + start
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    x ^= x >> np.uint64(31)
    return np.asarray(x % np.uint64(BANK)).astype(np.intp)

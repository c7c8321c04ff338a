"""QuantileSketch: counts of scores that give quantiles, merge exactly and fit in a message.

It is a uniformly collapsing DDSketch, with buckets of equal width in the logarithm (Masson, Rim &
Lee, PVLDB 12, 2019; the collapse: Epicoco et al., UDDSketch, IEEE Access 8, 2020). Its rules:

1. A bucket is (lo, hi]. Two neighbours collapse into exactly one bucket of the next level.
2. A sketch has the smallest level of its grain at which it has no more buckets than the grain
   allows. So it depends on the scores alone, and the merge of sketches *is* the sketch of all
   scores.
3. Empty buckets cost nothing: an outlying score takes one bucket, however far out it lies.

COARSE takes a hundred bytes and holds all scores; FINE takes under two kilobytes, with buckets two
percent wide, and holds the block maxima that alarm limits need.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from math import frexp, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import NothingLearnt, PeerError, UsageError, whole


class Grain(NamedTuple):
    """The smallest level of a sketch, with 8 / 2^level buckets an octave, and its most buckets."""

    level: int
    bins: int

    @property
    def bytes(self) -> int:
        """Largest packed sketch: two bytes, then an index and a count for each bucket."""
        return 2 + self.bins * (3 + 9)


COARSE, FINE = Grain(0, 16), Grain(-2, 160)

# Scores are clipped to these: zero has no logarithm.
_OCTAVES = 900
_SMALLEST, _LARGEST = 2.0**-_OCTAVES, 2.0**_OCTAVES
# Bucket edges inside an octave at the smallest level. Mantissas are compared with these instead of
# rounding a logarithm: a score on an edge then falls on the same side alone and in an array.
_FINEST = min(COARSE.level, FINE.level)
_PARTS = 8 << -_FINEST
_EDGES = [2.0 ** (k / _PARTS) / 2 for k in range(_PARTS)]
Indices = npt.NDArray[np.int64]

# From this many scores on, NumPy is faster than a loop.
_MANY = 32


@dataclass(frozen=True, slots=True)
class QuantileSketch:
    """Counts of scores by bucket.

    Parameters
    ----------
    level : int
        From its grain's level to 10, where there are at most 16 buckets.
    bins : tuple of (index, count)
        Ascending by index, counts above 0. Bucket i is (width^(i-1), width^i].
    """

    level: int
    bins: tuple[tuple[int, int], ...]
    grain: Grain = COARSE

    @classmethod
    def of(cls, values: Array, grain: Grain = COARSE) -> QuantileSketch:
        """Return the sketch of scores, in an array of any shape.

        Scores below 2^-900, also 0, count as 2^-900; those above 2^900, also infinite
        ones, count as 2^900. A negative score or NaN is a `UsageError`.
        """
        return collapsed(grain, grain.level, _counts(_indices(values, grain)))

    @property
    def n(self) -> int:
        """Number of scores."""
        return sum([count for _, count in self.bins])

    @property
    def width(self) -> float:
        """Upper over lower edge of a bucket, 2^(2^level / 8): the largest error of a quantile."""
        return float(2.0 ** (2**self.level / 8))


def empty(grain: Grain = COARSE) -> QuantileSketch:
    """Return the sketch of no scores."""
    return QuantileSketch(grain.level, (), grain)


def merged(*sketches: QuantileSketch, grain: Grain = COARSE) -> QuantileSketch:
    """Return the sketch of all scores together, of one grain, exactly, in any order or grouping."""
    level = max((sketch.level for sketch in sketches), default=grain.level)
    counts: dict[int, int] = {}
    for sketch in sketches:
        for index, count in sketch.bins:
            wide = _widened(index, level - sketch.level)
            counts[wide] = counts.get(wide, 0) + count
    return collapsed(grain, level, counts)


def quantile(sketch: QuantileSketch, q: float, *, falling: bool = False) -> float:
    """Return the value that a share `q` of the scores, 0 < q <= 1, does not exceed.

    falling : whether scores become fewer within a bucket, exponentially from edge to edge, as they
        do beyond a limit. Spread evenly over a coarse one, ten times fewer were beyond the 99 %
        limit of a statistic of one degree of freedom than should be.

    Returns
    -------
    float, in the bucket of the ceil(q n)-th smallest score: off by at most the factor
    `sketch.width`. Where n scores are too few, (1 - q) n < 1, it is the highest bucket's upper
    edge: no score so far is larger, though later ones may be.

    Raises
    ------
    NothingLearnt
        If the sketch is empty.
    """
    if not 0 < q <= 1:
        raise UsageError(f"q must be above 0 and at most 1, got {q!r}")
    if not sketch.bins:
        raise NothingLearnt("a sketch without scores has no quantiles")
    n = sketch.n
    # This is (1 - q) n < 1, written so that 0.9 of 10 is 9 in spite of rounding.
    rank = n if q * n > n - 1 else q * n
    upto = list(accumulate(count for _, count in sketch.bins))
    at = bisect_left(upto, rank)
    (index, count), left, beyond = sketch.bins[at], upto[at] - rank, n - upto[at]
    if not falling:
        return _edge(sketch, index - left / count)
    low, high = _edge(sketch, index - 1), _edge(sketch, index)
    # Above all scores is half a one.
    first, wanted, last = beyond + count, max(beyond + left, 0.5), max(beyond, 0.5)
    return low + (high - low) * log(first / wanted) / log(first / last)


def _edge(sketch: QuantileSketch, index: float) -> float:
    """Return the upper edge of a bucket; at high levels the outermost reach beyond float64."""
    return float(2.0 ** max(-_OCTAVES, min(_OCTAVES, index * 2**sketch.level / 8)))


class SketchTally:
    """Counts scores as they come, and has the sketch of the last `window` to 2 `window`.

    A full window becomes the previous one, and the one before is forgotten: scores
    against an old model are gone 2 `window` scores later. Only whole windows are
    collapsed, so that `sketch` is exactly that of its scores.

    Parameters
    ----------
    window : int
        Number of scores. With more, limits are steadier and further out, and follow changes
        more slowly. Memory is a dict of the buckets in use, about a hundred and never more
        than `window`.
    kept : (QuantileSketch, QuantileSketch), optional
        The previous window and the current one, as `windows` returned them.
    """

    def __init__(
        self,
        window: int = 1024,
        grain: Grain = COARSE,
        kept: tuple[QuantileSketch, QuantileSketch] | None = None,
    ) -> None:
        self._window = self._room = whole("window", window, least=1)
        self._grain = grain
        self._previous = empty(grain)
        self._current: dict[int, int] = {}
        if kept is not None:
            self._previous, current = kept
            # At the smallest level again, a bucket's scores lie at its upper edge.
            finer = current.level - grain.level
            self._current = {index << finer: count for index, count in current.bins}
            self._room = max(1, window - current.n)

    def add(self, values: Array) -> None:
        """Count scores, oldest first: all of them, or none on an error."""
        counts, indices = self._current, _indices(values, self._grain)
        if len(indices) < self._room:
            for index, n in _counts(indices).items():
                counts[index] = counts.get(index, 0) + n
            self._room -= len(indices)
            return
        for index in map(int, indices):
            counts[index] = counts.get(index, 0) + 1
            self._room -= 1
            if not self._room:
                self._previous, self._room = self.windows[1], self._window
                self._current = counts = {}

    def after(self, values: Array) -> SketchTally:
        """Return a tally with these scores counted too; this one does not change."""
        new = copy(self)
        new._current = dict(self._current)
        new.add(values)
        return new

    @property
    def windows(self) -> tuple[QuantileSketch, QuantileSketch]:
        """The previous window and the current one."""
        return self._previous, collapsed(self._grain, self._grain.level, dict(self._current))

    @property
    def sketch(self) -> QuantileSketch:
        """The sketch of both windows."""
        return merged(*self.windows, grain=self._grain)


def packed(sketch: QuantileSketch) -> bytes:
    """Return the sketch as bytes: at most 98 while counts are below 2^28.

    They are the level above the grain's and the number of bins, then as varints for each bin its
    distance to the one before (for the first its index, zigzag) and its count.
    """
    out = bytearray((sketch.level - sketch.grain.level, len(sketch.bins)))
    before = None
    for index, count in sketch.bins:
        step = index << 1 ^ index >> 63 if before is None else index - before
        before = index
        out += varint(step) + varint(count)
    return bytes(out)


def unpacked(data: bytes, grain: Grain = COARSE) -> QuantileSketch:
    """Return the sketch that was `packed`; other bytes are a `PeerError`."""
    if not 2 <= len(data) <= grain.bytes:
        raise PeerError(f"a sketch has 2 to {grain.bytes} bytes, got {len(data)}", kind="sketch")
    level, size, body = data[0] + grain.level, data[1], data[2:]
    # Every aggregator does this for each sketch of each report: loops over bins are C's.
    numbers = list(body) if body.isascii() else _varints(body)
    if size > grain.bins or len(numbers) != 2 * size:
        raise PeerError(
            f"{size} bins, at most {grain.bins}, do not come as {len(numbers)} numbers",
            kind="sketch",
        )
    steps, counts = numbers[::2], numbers[1::2]
    if not all(steps[1:]) or not all(counts) or sum(counts) >= 2**63:
        raise PeerError(
            "indices must rise, and counts be above 0 and below 2^63 in all", kind="sketch"
        )
    if steps:
        steps[0] = steps[0] >> 1 ^ -(steps[0] & 1)
    sketch = QuantileSketch(level, tuple(zip(accumulate(steps), counts, strict=True)), grain)
    if not _attainable(sketch):
        raise PeerError(f"no scores have these {size} bins at level {level}", kind="sketch")
    return sketch


def _attainable(sketch: QuantileSketch) -> bool:
    """Return whether some scores fill exactly these bins, and too many one level below."""
    lowest, highest = _reach(sketch.level)
    bins = sketch.bins
    if bins and not lowest <= bins[0][0] <= bins[-1][0] <= highest:
        return False
    if sketch.level == sketch.grain.level:
        return True
    if not bins:
        return False
    lowest, highest = _reach(sketch.level - 1)
    # A bin has two below it, at the ends of the range one; of one score it fills one of them.
    counts = [count for _, count in bins]
    inner = counts[1:-1]
    ends = bins[:1] + bins[1:][-1:]
    most = 2 * len(inner) - inner.count(1)
    most += sum([min(n, (2 * i - 1 >= lowest) + (2 * i <= highest)) for i, n in ends])
    return most > sketch.grain.bins


def _reach(level: int) -> tuple[int, int]:
    levels, most = level - _FINEST, _PARTS * _OCTAVES
    return _widened(-most, levels), _widened(most, levels)


def collapsed(grain: Grain, level: int, counts: dict[int, int]) -> QuantileSketch:
    """Return the sketch of scores that are counted by bucket, at the smallest level that fits."""
    while len(counts) > grain.bins:
        wider: dict[int, int] = {}
        for index, count in counts.items():
            wide = _widened(index, 1)
            wider[wide] = wider.get(wide, 0) + count
        level, counts = level + 1, wider
    return QuantileSketch(level, tuple(sorted(counts.items())), grain)


def _widened(index: int, levels: int) -> int:
    """Return ceil(index / 2^levels)."""
    return -(-index >> levels)


def _indices(values: Array, grain: Grain) -> list[int] | Indices:
    """Return each score's bucket at a grain's smallest level."""
    values = np.asarray(values, dtype=np.float64).ravel()
    levels = grain.level - _FINEST
    if values.size < _MANY:
        return [_widened(_index(score), levels) for score in values.tolist()]
    for score in values[~(values >= 0)]:
        raise _refusal(score)
    mantissas, powers = np.frexp(np.clip(values, _SMALLEST, _LARGEST))
    finest = _PARTS * (powers - 1) + np.searchsorted(_EDGES, mantissas)
    return np.asarray(-(-finest >> levels))


def _counts(indices: list[int] | Indices) -> dict[int, int]:
    if isinstance(indices, list):
        return Counter(indices)
    least = int(indices.min())
    counts = np.bincount(indices - least)
    some = np.flatnonzero(counts)
    return dict(zip((some + least).tolist(), counts[some].tolist(), strict=True))


def _index(score: float) -> int:
    """Return a score's bucket at the smallest level there is."""
    if not score >= 0:
        raise _refusal(score)
    mantissa, power = frexp(min(max(score, _SMALLEST), _LARGEST))
    return _PARTS * (power - 1) + bisect_left(_EDGES, mantissa)


def _refusal(score: float) -> UsageError:
    return UsageError(f"scores must be numbers of at least 0, got {score:g}")


_ONE_BYTE = [bytes((number,)) for number in range(0x80)]


def varint(number: int) -> bytes:
    """Return a number of at least 0 in seven bits a byte, the lowest first."""
    if number <= 0x7F:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varints(data: bytes) -> list[int]:
    numbers, number, shift = [], 0, 0
    for byte in data:
        if byte > 0x7F:
            number |= (byte & 0x7F) << shift
            shift += 7
        elif not shift:
            numbers.append(byte)
        elif byte:
            numbers.append(number | byte << shift)
            number = shift = 0
        else:
            raise PeerError("a sketch's numbers must be as short as they can", kind="sketch")
    if shift:
        raise PeerError("a sketch's last number must be whole", kind="sketch")
    return numbers

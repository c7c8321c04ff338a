"""What scores usually are: a quantile sketch that merges and fits in a message.

A limit for `spe` or `hotelling` is a quantile of scores that were seen. A `Sketch` counts
them in buckets of equal width in the logarithm. Three rules:

1. A bucket is (lo, hi], and two neighbours join into exactly one of the next level.
2. A sketch stands at the smallest level at which it has at most 16 buckets: it depends on
   nothing but the scores, and the merge of sketches *is* the sketch of the whole.
3. Empty buckets cost nothing: a wild score takes one bucket, however far out it lies.

Nothing is ever taken out of a sketch again: scores age by windows, see `Tally`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from math import frexp

import numpy as np

from submerge._linalg import Array
from submerge.errors import NothingLearnt, PeerError, UsageError, whole

MOST_BINS = 16

# Scores beyond these count as these: zero has no logarithm.
_OCTAVES = 900
_SMALLEST, _LARGEST = 2.0**-_OCTAVES, 2.0**_OCTAVES
# Edges inside an octave. We compare mantissas with these rather than round a logarithm: a
# score on an edge then falls on the same side whether it comes alone or in an array.
_EDGES = [2.0 ** (k / 8) / 2 for k in range(8)]
# With so many scores or more, NumPy is faster than a loop.
_MANY = 32
# Two bytes, then two varints a bucket, each below 2^63.
_MOST_BYTES = 2 + MOST_BINS * 2 * 9


@dataclass(frozen=True, slots=True)
class Sketch:
    """How many scores fell into which bucket.

    Parameters
    ----------
    level : int
        0 to 10: at 10 there are no more than 16 buckets.
    bins : tuple of (index, count)
        Ascending by index, counts above 0. Bucket i is (width^(i-1), width^i].
    """

    level: int
    bins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, values: Array) -> Sketch:
        """Return the sketch of scores, in an array of any shape.

        Scores below 2^-900, also 0, count as 2^-900, those above 2^900, also infinite
        ones, as 2^900. A negative one or NaN is a `UsageError`.
        """
        return _settled(0, Counter(_indices(values)))

    @property
    def n(self) -> int:
        """Number of scores."""
        return sum(count for _, count in self.bins)

    @property
    def width(self) -> float:
        """Upper over lower edge of a bucket, 2^(2^level / 8): how far off a quantile may be."""
        return float(2.0 ** (2**self.level / 8))


EMPTY = Sketch(0, ())


def merged(*sketches: Sketch) -> Sketch:
    """Return the sketch of all scores together, exactly, in whatever order or grouping."""
    level = max((sketch.level for sketch in sketches), default=0)
    counts: dict[int, int] = {}
    for sketch in sketches:
        for index, count in sketch.bins:
            wide = _widened(index, level - sketch.level)
            counts[wide] = counts.get(wide, 0) + count
    return _settled(level, counts)


def quantile(sketch: Sketch, q: float) -> float:
    """Return the value that a share `q` of the scores, 0 < q <= 1, does not exceed.

    Returns
    -------
    float, in the bucket of the ceil(q n)-th smallest score: at most the factor
    `sketch.width` away from it. Where n scores cannot tell, (1 - q) n < 1, it is the
    highest bucket's upper edge: no score is larger, but it says nothing of what may come.
    An empty sketch has none: `NothingLearnt`, a `UsageError`.
    """
    if not 0 < q <= 1:
        raise UsageError(f"q must be above 0 and at most 1, got {q!r}")
    if not sketch.bins:
        raise NothingLearnt("a sketch without scores has no quantiles")
    n = sketch.n
    # (1 - q) n < 1, so written that 0.9 of 10 is 9 in spite of rounding.
    rank = n if q * n > n - 1 else q * n
    upto = list(accumulate(count for _, count in sketch.bins))
    at = bisect_left(upto, rank)
    index, count = sketch.bins[at]
    octaves = (index - (upto[at] - rank) / count) * 2**sketch.level / 8
    # At high levels the outermost buckets reach beyond any score, and beyond float64.
    return float(2.0 ** max(-_OCTAVES, min(_OCTAVES, octaves)))


class Tally:
    """Counts scores as they come, and speaks of the last `window` to 2 `window`.

    A full window becomes the previous one, and the one before is forgotten: scores
    against an old model are gone 2 `window` scores later. Only whole windows are ever
    made coarser, so that `sketch` is exactly that of the scores it speaks of.

    Parameters
    ----------
    window : int
        In scores. Raising it: steadier limits, further out, slower to follow. Memory
        is a dict of the buckets in use, about a hundred and never more than `window`.
    """

    def __init__(self, window: int = 1024) -> None:
        self._window = self._room = whole("window", window, least=1)
        self._previous = EMPTY
        self._current: dict[int, int] = {}

    def add(self, values: Array) -> None:
        """Count scores, oldest first: all of them, or none if one is refused."""
        counts = self._current
        for index in _indices(values):
            counts[index] = counts.get(index, 0) + 1
            self._room -= 1
            if not self._room:
                self._previous, self._room = _settled(0, counts), self._window
                self._current = counts = {}

    @property
    def sketch(self) -> Sketch:
        """The sketch of both windows."""
        return merged(self._previous, _settled(0, self._current))


def packed(sketch: Sketch) -> bytes:
    """Return the sketch as bytes: at most 98 while counts are below 2^28.

    Level, number of bins; then, as varints, each bin's distance to the one before (the
    first one's index, zigzag) and count.
    """
    out = bytearray((sketch.level, len(sketch.bins)))
    before = None
    for index, count in sketch.bins:
        step = index << 1 ^ index >> 63 if before is None else index - before
        before = index
        out += varint(step) + varint(count)
    return bytes(out)


def unpacked(data: bytes) -> Sketch:
    """Return the sketch that was `packed`; whatever no sketch packs to is a `PeerError`."""
    if not 2 <= len(data) <= _MOST_BYTES:
        raise PeerError(f"a sketch has 2 to {_MOST_BYTES} bytes, got {len(data)}", kind="sketch")
    level, size, numbers = data[0], data[1], _varints(data[2:])
    if size > MOST_BINS or len(numbers) != 2 * size:
        raise PeerError(
            f"{size} bins, at most {MOST_BINS}, do not come as {len(numbers)} numbers",
            kind="sketch",
        )
    steps, counts = numbers[::2], numbers[1::2]
    if not all(steps[1:]) or not all(counts) or sum(counts) >= 2**63:
        raise PeerError(
            "indices must rise, and counts be above 0 and below 2^63 in all", kind="sketch"
        )
    if steps:
        steps[0] = steps[0] >> 1 ^ -(steps[0] & 1)
    sketch = Sketch(level, tuple(zip(accumulate(steps), counts, strict=True)))
    if not _attainable(sketch):
        raise PeerError(f"no scores have these {size} bins at level {level}", kind="sketch")
    return sketch


def _attainable(sketch: Sketch) -> bool:
    """Whether scores exist that fill these bins, and more than 16 one level below."""
    lowest, highest = _reach(sketch.level)
    bins = sketch.bins
    if bins and not lowest <= bins[0][0] <= bins[-1][0] <= highest:
        return False
    if not sketch.level:
        return True
    lowest, highest = _reach(sketch.level - 1)
    most = sum(min(n, (2 * i - 1 >= lowest) + (2 * i <= highest)) for i, n in bins)
    return most > MOST_BINS


def _reach(level: int) -> tuple[int, int]:
    return _widened(-8 * _OCTAVES, level), _widened(8 * _OCTAVES, level)


def _settled(level: int, counts: dict[int, int]) -> Sketch:
    while len(counts) > MOST_BINS:
        wider: dict[int, int] = {}
        for index, count in counts.items():
            wide = _widened(index, 1)
            wider[wide] = wider.get(wide, 0) + count
        level, counts = level + 1, wider
    return Sketch(level, tuple(sorted(counts.items())))


def _widened(index: int, levels: int) -> int:
    """Return ceil(index / 2^levels)."""
    return -(-index >> levels)


def _indices(values: Array) -> list[int]:
    """Return each score's bucket at level 0, ceil(8 log2(score))."""
    values = np.asarray(values, dtype=np.float64).ravel()
    if values.size < _MANY:
        return [_index(score) for score in values.tolist()]
    for score in values[~(values >= 0)]:
        raise _refusal(score)
    mantissas, powers = np.frexp(np.clip(values, _SMALLEST, _LARGEST))
    return list((8 * powers - 8 + np.searchsorted(_EDGES, mantissas)).tolist())


def _index(score: float) -> int:
    if not score >= 0:
        raise _refusal(score)
    mantissa, power = frexp(min(max(score, _SMALLEST), _LARGEST))
    return 8 * power - 8 + bisect_left(_EDGES, mantissa)


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
        elif byte or not shift:
            numbers.append(number | byte << shift)
            number = shift = 0
        else:
            raise PeerError("a sketch's numbers must be as short as they can", kind="sketch")
    if shift:
        raise PeerError("a sketch's last number must be whole", kind="sketch")
    return numbers

"""Block length: how long the blocks of a group are (docs/decisions/0035).

Method of batch means (Law and Kelton 2000, section 9.5.3): the first span whose successive means
are correlated by less than `ALIKE` is long enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array
from submerge.stats.block_maxima import HOUR_S

FIRST = 8  # rows of the shortest span: shorter ones do not matter, for no block is so short
ALIKE = 0.2  # correlation from which the means of two spans count as alike
PAIRS = 8  # pairs of spans from which a correlation is believed

LEAST_ROWS, USUAL_ROWS = 16, 64
"""Rows of a block at least; rows from which a block is at most `MOST_S` long. An alarm outlasts its
cause by 32 rows (`detect`)."""

MOST_S = 2.0**13
"""Longest block of rows that are not slow: two hours. A longer one counts once, however many alarms
are raised in it: the generated room raised 2.7 times what was promised in blocks of 18 hours, and
1.9 times in these (docs/decisions/0035)."""

SOON_S, SOON = 3 * 86400.0, 64
"""A group's blocks are no longer than so that its nodes together have `SOON` in this time."""

MOST = 2**20  # nodes from which more make no difference
LONGEST = 24  # largest exponent of a length: 2^24 seconds are half a year
APART = 4.0  # by what factor another length has to differ from the present for the group to change

_Level = tuple[int, float, float, float, float]
"""Pairs of spans of one length; the sums of their means, of the squares, and of the products; and
the mean of a span that waits for its neighbour, else NaN."""


@dataclass(frozen=True, slots=True)
class ScoreCorrelation:
    """How long the scores of one node stay alike; `rows` leave out the first, which has no time."""

    rows: int = 0
    seen_s: float = 0.0
    _waiting: tuple[float, ...] = ()
    _levels: tuple[_Level, ...] = ()

    def after(self, scores: Array, seen_s: float) -> ScoreCorrelation:
        """Return it after the scores of more rows, (n,), that stand for so much time."""
        seen_s += self.seen_s
        # The first rows of a process stand for no time: without their end, none has a length.
        rows = self.rows + len(scores) if self.seen_s else len(scores) * (seen_s > 0)
        whole = len(self._waiting) + len(scores)
        whole -= whole % FIRST
        if not whole:
            waiting = (*self._waiting, *scores.tolist())
            return ScoreCorrelation(rows, seen_s, waiting, self._levels)
        every = np.concatenate((self._waiting, scores))
        means = every[:whole].reshape(-1, FIRST).mean(axis=1).tolist()
        # Scores are positive, and vary by factors: one wild row must not hide all others.
        levels = _with_means(self._levels, [math.log(max(mean, 1e-300)) for mean in means])
        return ScoreCorrelation(rows, seen_s, tuple(every[whole:].tolist()), levels)

    @property
    def row_s(self) -> float:
        """Time that a row stands for, on average; 0 before the first."""
        return self.seen_s / self.rows if self.rows else 0.0

    @property
    def alike_rows(self) -> int:
        """Rows after which scores are no longer alike, as far as that can be known yet."""
        for j, (pairs, sums, squares, products, _) in enumerate(self._levels):
            if pairs < PAIRS:
                return FIRST << j
            mean = sums / (2 * pairs)
            variance = squares / (2 * pairs) - mean * mean
            if products / pairs - mean * mean < ALIKE * variance or variance <= 0:
                return FIRST << j
        return FIRST << len(self._levels)

    @property
    def exponent(self) -> int:
        """The i of the length, 2^i seconds, that its rows call for; -1 while it is not known."""
        if self.rows < FIRST or self.row_s <= 0:
            return -1
        usual_s = min(max(USUAL_ROWS, self.alike_rows) * self.row_s, MOST_S)
        length_s = max(LEAST_ROWS * self.row_s, usual_s)
        return min(max(math.ceil(math.log2(length_s)), 0), LONGEST)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length that its rows call for, as `BlockMaxima.lengths` has it."""
        i = self.exponent
        return () if i < 0 else (*i * (0,), 1)


def _with_means(levels: tuple[_Level, ...], means: list[float]) -> tuple[_Level, ...]:
    """Return the levels after the means of more spans of `FIRST` rows."""
    known = list(levels)
    for j in range(LONGEST):
        if not means:
            break
        if j == len(known):
            known.append((0, 0.0, 0.0, 0.0, math.nan))
        pairs, sums, squares, products, waiting = known[j]
        if not math.isnan(waiting):
            means = [waiting, *means]
        both = list(zip(means[:-1:2], means[1::2], strict=True))
        for one, next_ in both:
            sums = sums + one + next_
            squares = squares + one * one + next_ * next_
            products += one * next_
        waiting = means[-1] if len(means) % 2 else math.nan
        known[j] = pairs + len(both), sums, squares, products, waiting
        means = [(one + next_) / 2 for one, next_ in both]
    return tuple(known)


def group_block_s(lengths: Sequence[int], now_s: float) -> float:
    """Return the length of a group's blocks, `now_s` so far: 2^i seconds, or 0 for an hour."""
    # The upper quartile of what nodes call for, or less where few would have too few such blocks.
    # It stays unless that differs by `APART`: with every change, nodes count from zero.
    nodes, seen = sum(lengths), 0
    for i, count in enumerate(lengths[: LONGEST + 1]):
        seen += count
        if count and 4 * seen >= 3 * nodes:
            length_s = 2.0 ** min(i, math.floor(math.log2(min(nodes, MOST) * SOON_S / SOON)))
            return now_s if 1 / APART < length_s / (now_s or HOUR_S) < APART else length_s
    return now_s


def block_rows(block_s: float, period_s: float) -> int:
    """Return the rows of a block; 0 where rows have no period, and blocks go by the clock."""
    return max(1, round((block_s or HOUR_S) / period_s)) if period_s else 0


def block_length_s(block_s: float, period_s: float) -> float:
    """Return the length of a block: a whole number of rows, if rows have a period."""
    rows = block_rows(block_s, period_s)
    return rows * period_s if rows else block_s or HOUR_S

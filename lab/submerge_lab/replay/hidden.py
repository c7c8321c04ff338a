"""hidden_error(): how far a model's values are from known ones that it was not shown.

The error over rows whose gaps the same model has filled says nothing about the gaps. So a second
replay is given fewer values than there are, and predicts those.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from submerge import Array, Subspace
from submerge.pca.expectation import Mask
from submerge.pca.missing import fill

SHARE = 0.05
"""Share of the values that is hidden at once: few enough to change little."""

TURNS = 8
"""Times that values are hidden: large errors are rare, and one draw has too few of them."""

SEED = 1907_08059


def hidden_error(rows: Array, learn: Callable[[Array], Subspace]) -> float | None:
    """Return the mean squared error of hidden values, in squared units of the rows (n, dim).

    None if nothing could be hidden.

    rows : (n, dim). NaN at gaps.
    learn : Returns what is learnt of such rows.

    Notes
    -----
    What is hidden resembles what is missing: the runs of gaps of each channel, moved to another
    time, and of these a few. A value that is missing for hours is harder to fill than one of a
    moment, for the model has not seen those hours. Draws have `SEED`.
    """
    rng, squares, count = np.random.default_rng(SEED), 0.0, 0
    gaps = np.isnan(rows)
    for _ in range(TURNS):
        hidden = _some_runs(np.roll(gaps, rng.integers(len(rows)), axis=0), rng) & ~gaps
        shown = np.where(hidden, np.nan, rows)
        guessed, _ = fill(shown, learn(shown))
        squares += float(np.sum((guessed - rows)[hidden] ** 2))
        count += int(np.count_nonzero(hidden))
    return squares / count if count else None


def _some_runs(gaps: Mask, rng: np.random.Generator) -> Mask:
    """Return some of the runs of True in the columns of (n, dim), drawn; about `SHARE` of all."""
    begins = gaps.copy()
    begins[1:] &= ~gaps[:-1]
    number = np.cumsum(begins.T).reshape(gaps.shape[::-1]).T
    kept = rng.random(int(number.max()) + 1) < SHARE / gaps.mean()
    return np.asarray(gaps & kept[number])

"""Rows before they are learnt: gaps, centers, leaves; and how well gaps are filled. Filled values
and dropped rows are counted and reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from submerge import Array, Subspace, UsageError
from submerge.pca.expectation import Mask
from submerge.pca.missing import fill
from submerge.pca.subspace import LARGEST

Missing = Literal["reject", "drop", "impute"]

SHARE = 0.05
"""Share of the values that is hidden at once: few enough to change little."""

TURNS = 8
"""Times that values are hidden: large errors are rare, and one draw has too few of them."""

SEED = 1907_08059


@dataclass(frozen=True)
class Gaps:
    """Rows after the treatment of gaps that is possible before the stream.

    rows : (n, dim), NaN only where `impute` will fill
    zeros, dropped : values read as missing because they are 0; rows left out
    """

    rows: Array
    zeros: int
    dropped: int
    missing: int


def deal_with_gaps(
    rows: Array, names: tuple[str, ...], *, missing: Missing, zero_is_missing: bool
) -> Gaps:
    """Reject missing values, drop their rows, or leave them to be filled."""
    zeros = 0
    if zero_is_missing:
        zeros = int(np.count_nonzero(rows == 0))
        rows = np.where(rows == 0, np.nan, rows)
    gaps = np.isnan(rows)
    silent = np.flatnonzero(gaps.all(axis=0))
    if len(silent):
        raise UsageError(
            f"expected values in every column, got none in the {len(rows)} rows of column"
            f" {names[int(silent[0])]}: leave it out with --skip {names[int(silent[0])]}"
        )
    count = int(np.count_nonzero(gaps))
    if count and missing == "reject":
        row, column = (int(i) for i in np.argwhere(gaps)[0])
        raise UsageError(
            f"expected a number everywhere, got {count} missing values, the first in data row"
            f" {row + 1}, column {names[column]}: choose --missing drop or --missing impute"
        )
    if count and missing == "drop":
        whole = ~gaps.any(axis=1)
        if not whole.any():
            raise UsageError(
                f"every one of the {len(rows)} rows has a missing value, so --missing drop"
                " leaves nothing: choose --missing impute"
            )
        return Gaps(rows[whole], zeros, int(np.count_nonzero(~whole)), 0)
    return Gaps(rows, zeros, 0, count)


def check_magnitudes(rows: Array, names: tuple[str, ...]) -> None:
    """Refuse readings too large for an engine, and name their place in the file."""
    large = np.abs(rows) >= LARGEST / 10
    if large.any():
        row, column = (int(i) for i in np.argwhere(large)[0])
        raise UsageError(
            f"expected readings below {LARGEST / 10:g}, got {rows[row, column]:g} in data row"
            f" {row + 1}, column {names[column]}: scale the column, or leave it out with --skip"
        )


def without_mean(rows: Array) -> Array:
    """Subtract the mean of all rows (of the known values, if some are missing)."""
    if np.isnan(rows).any():
        return np.asarray(rows - np.nanmean(rows, axis=0))
    return np.asarray(rows - rows.mean(axis=0))


def deal(rows: Array, leaves: int, how: Literal["turn", "runs"]) -> list[Array]:
    """Deal rows to leaves, in turn or a run of rows to each."""
    if leaves > len(rows):
        raise UsageError(f"cannot deal {len(rows)} rows to {leaves} leaves: use fewer leaves")
    if how == "turn":
        return [rows[leaf::leaves] for leaf in range(leaves)]
    return np.array_split(rows, leaves)


def hidden_error(rows: Array, learn: Callable[[Array], Subspace]) -> float | None:
    """Return the mean squared error of hidden values, in squared units of the rows (n, dim)."""
    # The error over rows whose gaps the same model has filled says nothing about the gaps. So a
    # second replay is given fewer values than there are, and predicts those. None if nothing could
    # be hidden.
    # What is hidden resembles what is missing: the runs of gaps of each channel, moved to another
    # time, and of these a few. A value that is missing for hours is harder to fill than one of a
    # moment, for the model has not seen those hours. Draws have `SEED`.
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

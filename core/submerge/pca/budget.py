"""Memory contracts of the engine, and the choice between its two memories (docs/mathematics.md).

On the exact path, a block with gaps takes 8 (7 b dim + 32 dim^2) + 512 kB more, while it is filled.
Its b is cut to what the budget has room for, but not below that of the low-rank path, nor below
4 dim or 400: above 80 columns an engine whose rows have gaps may take more than its budget.
"""

from __future__ import annotations

from typing import Literal

Exact = Literal["auto", "never"]

DEFAULT_MEMORY = 4_200_000  # bytes: exact to some 400 columns, to 320 with 500 rows at once
MOST_AT_ONCE = 500  # rows of a block: of more, none is faster

MOST_WAITING = 1000
"""Rows of a block with gaps: they are filled together, and the more of them, the better."""

MOST_SUMS, SUMS = 8, 60_000
"""Sums of rows that lack the same channels, beside that of complete rows, and numbers in them."""

COVARIANCES = 1 << 14  # numbers of rows' conditional covariances that are held at once
FIXED = 64_000  # bytes for Python's objects, and for all that does not grow with dim, k or b


def exact_bytes(dim: int, kept: int, rows: int, *, number: int = 8) -> int:
    """Return the contract of the exact path for blocks of rows whose numbers take 8 or 4 bytes."""
    # The past, the block and its product; when it is read, a copy of the block, then eigenvectors.
    scatter, block = 8 * dim**2, number * rows * dim
    return 2 * scatter + block + max(scatter + 8 * kept * dim, block) + FIXED


def low_rank_bytes(dim: int, kept: int, rows: int) -> int:
    """Return the contract of the low-rank path, in bytes, for `kept` directions."""
    return 8 * dim * (3 * kept + rows + 4) + 48 * (kept + rows + 1) ** 2 + FIXED


def is_exact(
    dim: int, kept: int, rows: int, memory: int, *, adaptive: bool, number: int = 8
) -> bool:
    """Return whether the exact path is within the budget, or within the other's contract."""
    # Its eigenproblem, one a block, must not exceed the other's size.
    if adaptive:
        return dim <= kept + rows
    most = max(memory, low_rank_bytes(dim, kept, rows))
    return exact_bytes(dim, kept, rows, number=number) <= most


def rows_at_once(dim: int, kept: int, least: int, memory: int, *, number: int = 8) -> int:
    """Return how many rows a block of the exact path may have: from `least` to 500."""
    free, row = memory - FIXED - 16 * dim**2, number * dim
    most = min((free - 8 * dim * (dim + kept)) // row, free // (2 * row))
    return max(least, min(MOST_AT_ONCE, most))


def most_sums(dim: int) -> int:
    """Return how many sums of rows that lack the same channels are held at most."""
    return max(1, min(MOST_SUMS, SUMS // dim**2))


def gapped_bytes(dim: int, rows: int, room: int = 0) -> int:
    """Return the exact path's contract for blocks of `rows` with gaps, or `room` rows without."""
    most = 8 * (9 * rows * dim + 4 * (most_sums(dim) + 1) * dim**2) + 32 * COVARIANCES + FIXED
    return most + 8 * dim * max(0, room - rows)


def rows_with_gaps(dim: int, least: int, memory: int) -> int:
    """Return how many rows a block with gaps may have: from `least` to 1000."""
    return max(
        least, min(MOST_WAITING, (memory - gapped_bytes(dim, 0)) // (64 * dim)), min(4 * dim, 400)
    )

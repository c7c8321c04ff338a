"""What hypothesis draws: kinds of data that sensors really send, and trees of parts."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

KINDS = (
    "noise",
    "decaying",
    "low rank",
    "constant channels",
    "late channel",
    "badly scaled",
    "far from zero",
    "one row repeated",
    "zeros",
)


def rows_of(kind: str, n: int, dim: int, seed: int) -> np.ndarray:
    """(n, dim) rows of one kind."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dim))
    if kind == "decaying":
        X *= 0.7 ** np.arange(dim)
    elif kind == "low rank":
        X = X[:, : max(1, dim // 3)] @ rng.standard_normal((max(1, dim // 3), dim))
    elif kind == "constant channels":
        X[:, ::2] = 5.0
    elif kind == "late channel":
        X[: n // 2, 0] = 0.0
        X[n // 2 :, 0] *= 100
    elif kind == "badly scaled":
        X *= 10.0 ** np.linspace(4, -6, dim)
    elif kind == "far from zero":
        X += 1e6
    elif kind == "one row repeated":
        X[:] = X[0]
    elif kind == "zeros":
        X[:] = 0.0
    return X


@st.composite
def streams(draw, *, max_rows: int = 120, max_dim: int = 24) -> np.ndarray:
    """Rows of any kind and shape, down to one row of one column."""
    return rows_of(
        draw(st.sampled_from(KINDS)),
        draw(st.integers(1, max_rows)),
        draw(st.integers(1, max_dim)),
        draw(st.integers(0, 2**16)),
    )


@st.composite
def cuts(draw, total: int) -> list[slice]:
    """Ways to cut so many rows into runs, none empty."""
    places = draw(st.lists(st.integers(1, max(1, total - 1)), max_size=6, unique=True))
    edges = sorted({0, total, *(p for p in places if p < total)})
    return [slice(a, b) for a, b in itertools.pairwise(edges)]

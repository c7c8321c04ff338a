"""Rows of uneven leverage: a steep spectrum, and few rows far out that make most of a kernel.

It stands in for CASP (UCI, protein structures: nine channels), which the disKPCA paper measures on:
uniform points miss within a factor of two as much of it. Four rows in five fall off as j^-3/2 from
channel to channel. The others lie in all directions, at distances that are the quantiles of a
Pareto law: its tail is the same for every seed.

The rows are equal to the bit on every machine: there is nothing but + - * / and square roots.
"""

from __future__ import annotations

import numpy as np

from submerge import Array
from submerge.features.draws import lengths, normals, uniforms, words

CHANNELS = 9
OUTLYING = 0.2
"""Share of the rows that lie far out."""

REACH = 3.0
"""The least distance of those, where all channels count alike."""

ROWS, GAMMA = 4000, 0.375
"""Rows that are measured on, and a Gaussian's gamma for them: one over their median |x - y|^2."""

NORMALS, SIZES, WHICH, ORDER = range(1, 5)
"""Streams of a seed."""


def uneven(n: int = ROWS, seed: int = 0) -> Array:
    """Return rows (n, 9).

    Examples
    --------
    >>> uneven(1000).shape
    (1000, 9)
    """
    number = np.arange(1.0, CHANNELS + 1.0)
    root = np.sqrt(number)
    g = normals(seed, NORMALS, n * CHANNELS).reshape(n, CHANNELS)
    rows = g * (0.5 + np.abs(normals(seed, SIZES, n)))[:, None] / (number * root)
    far = uniforms(words(seed, WHICH, n)) < OUTLYING
    m = int(np.count_nonzero(far))
    quantile = (np.argsort(words(seed, ORDER, m), kind="stable") + 0.5) / m
    fourth = np.sqrt(np.sqrt(quantile))
    distance = REACH / (fourth * np.sqrt(fourth))  # quantile^-3/8
    ball = g[far] / lengths(g[far])[:, None]
    rows[far] = ball * distance[:, None] / (number * np.sqrt(root))
    return np.asarray(rows)

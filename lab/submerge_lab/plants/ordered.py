"""product(): a product of matrices with one order of its sums, for rows that are generated.

The order in which BLAS adds depends on the processor, and with it the last bits. Here one term is
added after the other, a product and a sum at a time, so that nothing is fused: the same bits on
every machine.
"""

from __future__ import annotations

import numpy as np

from submerge import Array


def product(left: Array, right: Array) -> Array:
    """Return left (n, m) times right (m, dim), in O(n m dim): for a few terms, not for speed.

    Examples
    --------
    >>> product(np.ones((2, 3)), np.ones((3, 2))).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    total: Array = np.zeros((len(left), right.shape[1]))
    for column, row in zip(left.T, right, strict=True):
        total += column[:, None] * row
    return total

"""Lags: puts each row together with those before it, so that a summary sees time.

One channel that swings has no direction of its own; next to its own past it has two. The last
`lags - 1` rows are remembered, however much time lies between them.
"""

from __future__ import annotations

import numpy as np

from submerge import Array
from submerge.errors import ShapeError, whole


class Lags:
    """Puts rows side by side with their past.

    lags : Rows side by side, the present one among them, at least 1. With 1, rows pass through as
        they are.
    width : Channels of a row, at least 1.

    counts : "lead_in": rows that gave no vector, because their past is unknown.

    Examples
    --------
    >>> Lags(2, width=1).embed(np.array([[1.0], [2.0], [3.0]]))
    array([[2., 1.],
           [3., 2.]])
    """

    def __init__(self, lags: int, width: int) -> None:
        self.lags = whole("lags", lags, least=1)
        self.width = whole("width", width, least=1)
        self.counts = {"lead_in": 0}
        self._past = np.empty((0, self.width))

    def embed(self, rows: Array) -> Array:
        """Return the rows that are complete, (m, lags * width).

        rows : (n, width). The next rows; NaN is a gap, and stays one in each vector that contains
            it.

        Notes
        -----
        Lag-major: all channels of this row, then all of the row before, and so on.
        """
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ShapeError("rows", expected=f"(n, {self.width})", got=rows.shape)
        if self.lags == 1:
            return rows
        known = np.concatenate([self._past, rows])
        complete = max(len(known) - self.lags + 1, 0)
        self.counts["lead_in"] += len(rows) - complete
        # A copy: a view would keep the whole block alive.
        self._past = known[max(len(known) - self.lags + 1, 0) :].copy()
        newest = self.lags - 1
        return np.concatenate(
            [known[newest - lag : newest - lag + complete] for lag in range(self.lags)], axis=1
        )

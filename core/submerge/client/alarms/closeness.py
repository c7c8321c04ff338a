"""Closeness: how close a node's rows came to an alarm, minute by minute.

It is the notion of `newest_score`, for the highest row in place of the newest: the statistic of a
row, as it is compared with limits, over the limit that holds. Nothing is decided by it. It counts
by the minute because then most blocks cannot raise it: `bounds` says what a block needs to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.protocol.score_trail import MINUTE_S


class Closeness(NamedTuple):
    """How close the rows of one minute came to an alarm.

    minute : wall time divided by 60 and rounded down
    share : the highest statistic of a row over its limit; None while there are no limits
    """

    minute: float = 0.0
    share: float | None = None

    def at(self, wall: float) -> Closeness:
        """Return that of the minute of this moment, which may begin here.

        wall : seconds
        """
        minute = wall // MINUTE_S
        return self if minute == self.minute else Closeness(minute)

    def bounds(self, most: list[float]) -> list[float]:
        """Return what the statistic of each kind has to exceed to raise it.

        most : the limit of each kind; infinite or 0 while there is none
        """
        share = self.share or 0.0
        return [limit * share if _is_known(limit) else math.inf for limit in most]

    def after(self, most: list[float], statistics: Array | None) -> Closeness:
        """Return it after a block.

        most : as in `bounds`
        statistics : (kinds, n), of its rows; None if none exceeds a bound
        """
        known = [i for i, limit in enumerate(most) if _is_known(limit)]
        if not known:
            return self
        if statistics is None:
            return self.at_least(0.0)
        highest = statistics.max(axis=1).tolist()
        if math.inf in highest:
            # After a restart the scores before an open alarm's first row are infinite.
            highest = np.where(statistics < math.inf, statistics, 0.0).max(axis=1).tolist()
        return self.at_least(max(highest[i] / most[i] for i in known))

    def at_least(self, share: float) -> Closeness:
        """Return it with a share that is no lower."""
        low = self.share is None or self.share < share
        return Closeness(self.minute, share) if low else self


NOT_CLOSE = Closeness()
"""Of a node without limits."""


def _is_known(limit: float) -> bool:
    return 0 < limit < math.inf

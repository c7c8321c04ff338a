"""newest_score(): how close a node's newest rows are to an alarm, for a person who looks."""

from __future__ import annotations

import math
from typing import NamedTuple

from submerge.client.alarms.recent_scores import row_statistics
from submerge.client.monitor import NodeMonitor
from submerge.stats.block_maxima import By


class NewestScore(NamedTuple):
    """The statistic of the newest row that is closest to its limit.

    kind : which one
    value : as it is compared with limits: the `after`-th largest of the last `of` scores
    limit : 0 while there is none
    """

    kind: By
    value: float
    limit: float

    @property
    def share(self) -> float | None:
        """The value over its limit: above 1 there is an alarm. None without a limit."""
        return self.value / self.limit if self.limit else None


def newest_score(monitor: NodeMonitor) -> NewestScore | None:
    """Return it; None before the first row was scored, or without alarms.

    It reads values that are replaced whole, so that any thread may call it. O(kinds * of).
    """
    detector, own = monitor.detector, monitor.own
    if detector is None:
        return None
    kinds, scores = detector.recent.kinds, detector.recent.scores
    of, after = detector.settings.of, detector.settings.after
    if not kinds or scores.shape[1] < of:
        return None
    settled = own is None or own.settled
    values = row_statistics(kinds, scores[:, -of:], of, after)[:, -1].tolist()
    found = []
    for kind, value in zip(kinds, values, strict=True):
        limit = detector.limit(kind, settled=settled)
        # After a restart the scores before an open alarm's first row are infinite.
        if math.isfinite(value):
            found.append(NewestScore(kind, value, limit if 0 < limit < math.inf else 0.0))
    # Without limits it is the statistic by which alarms will be raised first.
    return max(found, key=lambda each: each.share or 0.0, default=None)

"""Widening: a group whose alarms come more often than promised gets wider limits.

On normal data that drifts, limits that were measured last week are too narrow this week. If there
is evidence that more alarms come than promised (`stats.alarm_account`), the limits of the whole
group are multiplied by a factor of at most `MOST_WIDENED`.

No single machine can buy silence so. Only alarms count that no person has confirmed as faults; of
nodes that are outliers or in quarantine none count; of any other node at most twice as many as
were promised for it, and one; and those of at least `LEAST_NODES` nodes. No node counts for more
time than the typical one. A confirmation takes the widening back.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from submerge.aggregator.pool import Row
from submerge.protocol.alarm_status import MOST_WIDENED, AlarmStatus, TypicalAlarms
from submerge.stats.alarm_account import EACH, LEAST_NODES, surely_more

TAIL = 5.0
"""Logarithm of the blocks for each of which a limit is exceeded once: 168 hours of a week. In an
exponential tail, m times as many exceed a limit that is ln(m) / TAIL lower."""


def typical_allowance(rows: Iterable[Row]) -> float:
    """Return the most false alarms that count as promised to one client: the clients' median.

    A client says itself how long it watched. By a long time it could outweigh all others.
    """
    said = [row.report.alarm_status for row in rows if row.from_client]
    allowed = [status.allowed for status in said if status is not None and status.allowed > 0]
    return statistics.median(allowed) if allowed else math.inf


def typical_alarms(row: Row, *, left_out: bool, usual: float = math.inf) -> TypicalAlarms:
    """Return the alarms of a child that count.

    left_out : whether the child is an outlier, or in quarantine
    usual : as `typical_allowance`; a client that was promised more counts for a part of its time
    """
    status = row.report.alarm_status
    if status is None or left_out:
        return TypicalAlarms()
    if not row.from_client:
        return status.typical
    unconfirmed = max(status.raised - status.confirmed, 0)
    promised = min(status.allowed, usual)
    if promised < status.allowed:
        unconfirmed = math.floor(unconfirmed * (promised / status.allowed))
    counted = min(unconfirmed, 1 + math.floor(EACH * promised))
    return TypicalAlarms(promised, counted, int(counted > 0))


def widening(status: AlarmStatus | None) -> float:
    """Return the factor on a group's limits: 1 to `MOST_WIDENED`."""
    if status is None or status.typical.nodes < LEAST_NODES:
        return 1.0
    typical = status.typical
    more = surely_more(typical.unconfirmed, typical.promised)
    return min(MOST_WIDENED, 1 + math.log(more) / TAIL)

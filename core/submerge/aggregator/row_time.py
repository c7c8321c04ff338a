"""The time of a row and of its alarms: by its node's clock, by ours, or by the median row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from submerge.aggregator.pool import Row
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Now
from submerge.protocol.messages import Incarnation, Report
from submerge.protocol.report_bytes import digest
from submerge.protocol.summaries import Summaries

if TYPE_CHECKING:
    from submerge.aggregator.presence import Presence

AHEAD_S = 30.0
"""The most that a believed clock may run ahead."""


def time_of(report: Report, now: Now, max_age_s: float) -> float:
    """Return the wall time that a report describes."""
    if not report.synced:
        # Without a synchronized clock a report counts from its arrival, unless ours lacks one too.
        return now.wall
    if not now.synced:
        return report.as_of
    return min(max(report.as_of, now.wall - max_age_s), now.wall + AHEAD_S)


def seen_from(now: Now, rows: Iterable[Row]) -> float:
    """Return the wall time as of which the rows are read.

    Now, by a synchronized clock. Another clock may be years behind synchronized children, and rows
    must not gain weight by coming from its future. Then it is at least the median time of the rows:
    a single wrong one moves it little.
    """
    if now.synced:
        return now.wall
    times = sorted(row.as_of for row in rows)
    return max(now.wall, times[len(times) // 2] if times else -math.inf)


def alarms_begun(report: Report, held: Iterable[Report], now: Now) -> Report:
    """Return a report whose alarms are not of the future: their times are now + 30 s at most.

    A clock ahead costs no alarm: it keeps its number, and so its name. What was set to an earlier
    now stays, so that a report after it brings no news.

    held : the reports of the node that are held
    """
    status, latest = report.alarm_status, now.wall + AHEAD_S
    if status is None or not now.synced:
        return report
    if all(max(each.began, each.peaked, each.ended) <= latest for each in status.alarms):
        return report
    known = {alarm.name: alarm for each in held for alarm in each.alarms}
    alarms = tuple(_begun(each, known.get(each.name, each), latest) for each in status.alarms)
    return replace(report, alarm_status=replace(status, alarms=alarms))


def brought_up(
    rows: Mapping[tuple[str, Incarnation], Row],
    presence: Presence,
    newest: tuple[str, Incarnation],
    now: Now,
    summaries: Summaries,
) -> Iterator[tuple[tuple[str, Incarnation], Row]]:
    """Yield the earlier rows of a node that were heard before its row `newest`, with its alarms.

    Alarms are the node's, and not an incarnation's. When the newest row is sealed, an older one may
    stand for the node until the next report: an alarm that has ended would be open again. Rows of
    later incarnations stay: a final may come late, and know less than they do.
    """
    node, status = newest[0], rows[newest].report.alarm_status
    unheard_s = presence.unheard(*newest, now.steady)
    for other in presence.live(node):
        row = rows[node, other]
        earlier = other < newest[1] and presence.unheard(node, other, now.steady) > unheard_s
        if earlier and status is not None and status != row.report.alarm_status:
            report = replace(row.report, alarm_status=status)
            # The report that it came as may come again.
            seen = row.digest or digest(row.report, summaries)
            yield (node, other), replace(row, report=report, digest=seen)


def _begun(alarm: Alarm, held: Alarm, latest: float) -> Alarm:
    """Return an alarm whose times are `latest` at most; later ones are as held, if they can be."""
    began, peaked, ended = alarm.began, alarm.peaked, alarm.ended
    if began > latest:
        began = min(held.began, latest)
    if peaked > latest:
        peaked = min(held.peaked, latest)
    if ended > latest:
        ended = min(held.ended or latest, latest)
    return replace(alarm, began=began, peaked=peaked, ended=ended)

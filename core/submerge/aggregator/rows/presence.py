"""Presence: which incarnations of each node have a row, and when each was heard."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from submerge.aggregator.rows.pool import Row
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Note, Now
from submerge.protocol.messages import Incarnation, Report
from submerge.protocol.report_bytes import digest
from submerge.protocol.summaries import Summaries

AHEAD_S = 30.0  # the most that a believed clock may run ahead


def time_of(report: Report, now: Now, max_age_s: float) -> float:
    if not report.synced:
        # Without a synchronized clock a report counts from its arrival, unless ours lacks one too.
        return now.wall
    if not now.synced:
        return report.as_of
    return min(max(report.as_of, now.wall - max_age_s), now.wall + AHEAD_S)


def seen_from(now: Now, rows: Iterable[Row]) -> float:
    """Return the wall time as of which the rows are read: now, by a synchronized clock."""
    if now.synced:
        return now.wall
    # Another may be years behind synchronized children, and rows must not gain weight by coming
    # from its future. A single wrong row moves the median little.
    times = sorted(row.as_of for row in rows)
    return max(now.wall, times[len(times) // 2] if times else -math.inf)


def alarms_begun(report: Report, held: Iterable[Report], now: Now) -> Report:
    """Return a report whose alarms are not of the future: their times are now + 30 s at most."""
    status, latest = report.alarm_status, now.wall + AHEAD_S
    if status is None or not now.synced:
        return report
    if all(max(each.began, each.peaked, each.ended) <= latest for each in status.alarms):
        return report
    # A clock ahead costs no alarm: it keeps its number. What a `held` report has of it stays, so
    # that a report after it brings no news.
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
    """Yield the earlier rows of a node that were heard before its row `newest`, with its alarms."""
    # When the newest row is sealed, an older one may stand for the node until the next report: an
    # alarm that has ended would be open again. Rows of later incarnations stay: a final may come
    # late, and know less than they do.
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


SILENT_INTERVALS = 3.0  # a child is silent after so many report intervals without a report


class Presence:
    """Incarnations that may still report: when each was last heard, on the steady clock."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.heard: dict[tuple[str, Incarnation], float] = {}
        self.turns = Turns(interval_s)
        self._came: dict[tuple[str, Incarnation], float] = {}
        self._live: dict[str, list[Incarnation]] = {}
        self._silent_s: dict[tuple[str, Incarnation], float] = {}
        self._gaps: dict[tuple[str, Incarnation], tuple[float, float]] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._live

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(self._live)

    def live(self, node: str) -> tuple[Incarnation, ...]:
        """Return a node's incarnations, in the order in which they were first heard."""
        return tuple(self._live.get(node, ()))

    def hear(self, node: str, incarnation: Incarnation, steady: float) -> None:
        """Note that an incarnation was heard; the first time adds it."""
        key = node, incarnation
        if key not in self.heard:
            self._live.setdefault(node, []).append(incarnation)
            self._came[key] = steady
        elif steady > self.heard[key]:
            self._gaps[key] = steady - self.heard[key], self._gaps.get(key, (0.0, 0.0))[0]
        self.heard[key] = steady
        self._silent_s.pop(key, None)

    def load(self, as_of: Mapping[tuple[str, Incarnation], float], now: Now) -> None:
        """Add the incarnations of a store's rows, with the wall time that each describes."""
        # While the store was closed nothing could be heard: an incarnation counts as silent for as
        # long as its row is older than the newest; without a synchronized clock, from now.
        newest = max((at for at in as_of.values() if at <= now.wall + AHEAD_S), default=0.0)
        for (node, incarnation), at in as_of.items():
            self.hear(node, incarnation, now.steady)
            self._silent_s[node, incarnation] = max(0.0, newest - at) if now.synced else 0.0

    def end(self, node: str, incarnation: Incarnation) -> None:
        """Forget an incarnation: its row is gone."""
        del self.heard[node, incarnation], self._came[node, incarnation]
        self._silent_s.pop((node, incarnation), None)
        self._gaps.pop((node, incarnation), None)
        self.turns.end(node, incarnation)
        self._live[node].remove(incarnation)
        if not self._live[node]:
            del self._live[node]

    def longest_silent(self, node: str, spared: Incarnation) -> Incarnation:
        others = [incarnation for incarnation in self._live[node] if incarnation != spared]
        return min(others, key=lambda each: (self.heard[node, each], each))

    def silence(self, node: str, incarnation: Incarnation, steady: float) -> float:
        """Return for how long an incarnation was silent while the node reported under another."""
        heard = self.heard[node, incarnation]
        others = [
            self._came[node, other] for other in self._live[node] if self.heard[node, other] > heard
        ]
        # From when the other was first heard: a client that was away for days sends the final
        # report of its last incarnation only after it has come back.
        return steady - max(heard, min(others)) if others else 0.0

    def unheard(self, node: str, incarnation: Incarnation, steady: float) -> float:
        """Return for how long nothing was heard of an incarnation, also before a restart."""
        key = node, incarnation
        return max(0.0, steady - self.heard[key]) + self._silent_s.get(key, 0.0)

    def is_silent(self, node: str, incarnation: Incarnation, steady: float) -> bool:
        """Return whether nothing was heard for three intervals: ours, or its longer of two."""
        interval_s = max(self.interval_s, *self._gaps.get((node, incarnation), (0.0, 0.0)))
        return self.unheard(node, incarnation, steady) > SILENT_INTERVALS * interval_s


RETURNS = 3
"""So many times an incarnation reports after another one has: A, B, A, B, A, B, A. Without a
second machine there are two at most: A, B, late A, B, C, late B."""

INTERVALS = 6.0  # two machines count as one again so many report intervals after the last return


class Turns:
    """Which incarnations of each node report in turns.

    interval_s : A report interval; machines that report less often are recognised as well.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._named: set[str] = set()
        self._last: dict[str, Incarnation] = {}
        # Times of the last returns of each, on the steady clock.
        self._returns: dict[str, dict[Incarnation, tuple[float, ...]]] = {}

    def take(self, node: str, incarnation: Incarnation, steady: float) -> None:
        """Note that a report with a new number has come."""
        last, self._last[node] = self._last.get(node, incarnation), incarnation
        if last == incarnation:
            return
        returns = self._returns.setdefault(node, {last: ()})
        known = returns.get(incarnation)
        returns[incarnation] = () if known is None else (*known, steady)[-RETURNS:]

    def end(self, node: str, incarnation: Incarnation) -> None:
        returns = self._returns.get(node, {})
        returns.pop(incarnation, None)
        if not returns:
            self._returns.pop(node, None)
            self._named.discard(node)
        if self._last.get(node) == incarnation:
            del self._last[node]

    def at_once(self, node: str, steady: float) -> tuple[Incarnation, ...]:
        """Return the incarnations of a node that run at once; none, if it is one machine."""
        returns = [
            (incarnation, times)
            for incarnation, times in self._returns.get(node, {}).items()
            if len(times) >= RETURNS - 1
            and steady - times[-1] <= max(INTERVALS * self._interval_s, 2 * (times[-1] - times[0]))
        ]
        if len(returns) < 2 or max(len(times) for _, times in returns) < RETURNS:
            return ()
        return tuple(incarnation for incarnation, _ in returns)

    def nodes_at_once(self, steady: float) -> tuple[str, ...]:
        """Return the nodes that several machines run, by name."""
        return tuple(node for node in sorted(self._returns) if self.at_once(node, steady))

    def notes(self, group: str, node: str, steady: float) -> list[Note]:
        """Return a note if a second machine reports as this node, once."""
        several = self.at_once(node, steady)
        if not several:
            self._named.discard(node)
        if not several or node in self._named:
            return []
        self._named.add(node)
        facts = {
            "group": group,
            "node": node,
            "incarnations": tuple(map(str, several)),
            "meaning": "both have one kit; all their readings count",
            "todo": "find the second machine, and give it a kit of its own",
        }
        return [Note("two machines report as one", facts, "warning")]

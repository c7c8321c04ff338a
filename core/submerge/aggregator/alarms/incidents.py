"""Incidents: alarms of several nodes whose onsets lie closer together than their rates explain."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count, pairwise
from typing import NamedTuple

from submerge.protocol.alarm_status import TOP, Alarm, AlarmPart, AlarmStatus

# 1. An incident is a function of the alarms that are held, and of their rates: neither the order in
#    which they came, nor repetitions, restarts or moves change it.
# 2. Onsets of m nodes within a window are an incident if chance brings that at most `MOST_PER_YEAR`
#    times a year: n nodes that raise r alarms a second begin such a window at most
#    n r P(N >= m - 1) times a second, N being a Poisson number of mean n r (window + row).
# 3. r is what was promised, or what came without the alarms in question, if that is more.
# 4. Windows that overlap are one incident. It has ended when all its alarms have.
# 5. An earlier alarm is no part where chance brings one there sooner than the incident does.
#
# Clocks are the nodes': who was first is as good as they are synchronized. Where people say which
# node comes after which, the one upstream of the most others leads, whenever its alarm began.

WINDOWS_S = (300.0, 3600.0)
"""A fault that stops a machine shows at its neighbours in minutes; a slow one takes hours."""

ROW_S = 300.0
"""Longest time between two rows for which the false rate is promised: onsets fall on rows."""

YEAR_S = 365.25 * 86400.0

MOST_PER_YEAR = 1.0  # incidents by chance, in a group


class AlarmRates(NamedTuple):
    """How often the nodes of a group raise alarms."""

    nodes: int = 0
    promised: float = 0.0  # by one node, a second; 0 while that is not known
    raised: int = 0
    watched_s: float = 0.0  # by all nodes together
    flow: tuple[tuple[str, ...], ...] = ()  # lines of nodes, the most upstream first

    @classmethod
    def of(cls, status: AlarmStatus | None) -> AlarmRates:
        """Return what an alarm status says of them."""
        if status is None or not status.watched_s:
            return NO_RATES
        watched_s = status.watched_s
        return cls(sum(status.states), status.allowed / watched_s, status.raised, watched_s)

    def least(self, window_s: float, apart: int = 0) -> int:
        """Return the fewest nodes that are an incident, by a rate without `apart` alarms."""
        return least_nodes(self.nodes, self.per_s(apart), window_s)

    def per_s(self, apart: int = 0) -> float:
        """Return how often a node raises alarms, without `apart` that came."""
        return max(self.promised, max(self.raised - apart, 0) / self.watched_s)


NO_RATES = AlarmRates()
"""While no rate is known, nothing is more than it explains."""


def least_nodes(nodes: int, per_s: float, window_s: float) -> int:
    """Return the fewest of n nodes whose onsets within a window are more than chance."""
    onsets = nodes * per_s
    mean, most = onsets * (window_s + ROW_S), MOST_PER_YEAR / len(WINDOWS_S) / YEAR_S
    for others in count(max(1, math.floor(mean))):
        # The tail of a Poisson distribution is below a geometric series from its first term on.
        first = math.exp(others * math.log(mean) - mean - math.lgamma(others + 1))
        if onsets * min(1.0, first / (1 - mean / (others + 1))) <= most:
            return others + 1
    raise AssertionError  # pragma: no cover


def incidents(alarms: Iterable[Alarm], rates: AlarmRates) -> tuple[Alarm, ...]:
    """Return the incidents among alarms, in the order of their beginnings."""
    if not rates.promised:
        return ()
    onsets = sorted(_by_name(alarms), key=lambda each: (each.began, each.node, each.number))
    spans = sorted(span for window_s in WINDOWS_S for span in _spans(onsets, window_s, rates))
    return tuple(
        _incident(onsets[_beginning(onsets, first, end, rates) : end], rates)
        for first, end in _joined(spans)
    )


def _by_name(alarms: Iterable[Alarm]) -> Iterable[Alarm]:
    """Return alarms that count, each once: of two of one name the one that has ended."""
    known: dict[str, Alarm] = {}
    for alarm in alarms:
        held = known.setdefault(alarm.name, alarm)
        if held.is_open and not alarm.is_open:
            known[alarm.name] = alarm
    return (alarm for alarm in known.values() if not (alarm.is_quiet or alarm.parts))


def _spans(
    onsets: Sequence[Alarm], window_s: float, rates: AlarmRates
) -> Iterable[tuple[int, int]]:
    """Return the spans of onsets that are dense enough, by windows of one length."""
    for first, end in _joined(_dense(onsets, 0, len(onsets), window_s, rates.least(window_s))):
        least = rates.least(window_s, apart=end - first)
        yield from _joined(_dense(onsets, first, end, window_s, least))


def _dense(
    onsets: Sequence[Alarm], first: int, last: int, window_s: float, least: int
) -> Iterable[tuple[int, int]]:
    """Return each window from an onset on that has the onsets of so many nodes."""
    within, end = Counter[str](), first
    for begin in range(first, last):
        while end < last and onsets[end].began - onsets[begin].began <= window_s:
            within[onsets[end].node] += 1
            end += 1
        if len(within) >= least:
            yield begin, end
        within[onsets[begin].node] -= 1
        if not within[onsets[begin].node]:
            del within[onsets[begin].node]


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, those that overlap as one."""
    joined: list[tuple[int, int]] = []
    for first, end in spans:
        if joined and first < joined[-1][1]:
            first, end = joined[-1][0], max(end, joined.pop()[1])
        joined.append((first, end))
    return joined


def _beginning(onsets: Sequence[Alarm], first: int, end: int, rates: AlarmRates) -> int:
    """Return where a span of onsets begins, without earlier ones that chance brings sooner."""
    per_s = rates.nodes * rates.per_s(apart=end - first)
    while any(
        any(_dense(onsets, first + 1, end, window_s, rates.least(window_s, apart=end - first)))
        for window_s in WINDOWS_S
    ):
        # Gaps are exponential, with a mean that the other gaps tell: one more has Lomax's density.
        gaps, began = end - first - 2, onsets[first + 1].began
        length = onsets[end - 1].began - began + ROW_S
        gap = began - onsets[first].began
        if gaps / length * (1 + gap / length) ** (-gaps - 1) >= per_s:
            break
        first += 1
    return first


def downstream(node: str, flow: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the nodes that a fault of a node reaches, the next ones first."""
    reached = [node]
    for each in reached:  # it grows
        after = [b for line in flow for a, b in pairwise(line) if a == each]
        reached += dict.fromkeys(b for b in after if b not in reached)
    return tuple(reached[1:])


def _incident(alarms: Sequence[Alarm], rates: AlarmRates) -> Alarm:
    """Return several alarms, in the order of their onsets, as one."""
    below = {each.node: downstream(each.node, rates.flow) for each in alarms}
    # The earliest of those that reach the most others; without a flow that is the first.
    first = max(alarms, key=lambda each: len(below.keys() & set(below[each.node])))
    worst = max(alarms, key=lambda each: each.worst)
    parts = tuple(
        AlarmPart(each.node, each.number, each.began, next(iter(each.first or each.top), ("",))[0])
        for each in alarms
    )
    blamed = Counter(channel for _, channel in {(part.node, part.channel) for part in parts})
    del blamed[""]
    nodes, verdicts = len({part.node for part in parts}), {each.verdict for each in alarms}
    is_over = not any(each.is_open for each in alarms)
    return Alarm(
        first.node,
        first.number,
        alarms[0].began,
        worst.peaked,
        max(each.ended for each in alarms) if is_over else 0.0,
        worst.worst,
        Counter(each.cause for each in alarms).most_common(1)[0][0],
        tuple(
            (channel, of / nodes)
            for channel, of in sorted(blamed.items(), key=lambda each: (-each[1], each[0]))[:TOP]
        ),
        first.version,
        sum(each.withheld for each in alarms),
        verdicts.pop() if len(verdicts) == 1 else "",
        first.first,
        first.deviations,
        parts=parts,
        downstream=below[first.node],
    )

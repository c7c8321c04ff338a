"""Fair places: which alarms are listed where there is no room for all.

Children compete for places, and so do the nodes below one child. A child that reports many alarms
takes places from its own alarms first: dates, numbers and names that it makes up get it no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from submerge.protocol.alarm_status import (
    MOST_ALARMS,
    REMEMBERED,
    STATES,
    Alarm,
    AlarmStatus,
    TypicalAlarms,
)

MOST_OF_NODE = 1 + REMEMBERED
"""Alarms that one node has: one is open, and `REMEMBERED` have ended."""


def most_urgent_first(alarm: Alarm) -> tuple[bool, float, str, int]:
    """Return a key: open alarms come first, then the newest."""
    return (not alarm.is_open, -max(alarm.began, alarm.ended), alarm.node, alarm.number)


def places(chains: Iterable[Iterable[Alarm]]) -> list[tuple[int, Alarm]]:
    """Return all alarms in the order in which they get places, each with its chain's index.

    Open alarms come before those that have ended. Within each kind they come in rounds: round n
    has the n-th alarm of each chain, and a chain puts the first alarm of each of its nodes before
    the second of any. Within a round the newest is first. So of `m` places each of `c` chains gets
    `m // c` at least, if it has so many open alarms.

    chains : the alarms that each child reports
    """
    ranked: list[tuple[bool, int, tuple[bool, float, str, int], int, Alarm]] = []
    for index, chain in enumerate(chains):
        for is_open in (True, False):
            kind = sorted(
                (alarm for alarm in chain if alarm.is_open == is_open), key=most_urgent_first
            )
            for turn, alarm in enumerate(_by_turns(kind)):
                ranked.append((not is_open, turn, most_urgent_first(alarm), index, alarm))
    ranked.sort(key=lambda each: each[:4])
    return [(index, alarm) for *_, index, alarm in ranked]


def chosen(chains: Iterable[Iterable[Alarm]], most: int) -> tuple[Alarm, ...]:
    """Return `most` alarms of these chains, chosen fairly; open ones first, then the newest."""
    chains = [tuple(chain) for chain in chains]
    kept = [alarm for chain in chains for alarm in chain]
    if len(kept) > most:
        kept = [alarm for _, alarm in islice(places(chains), most)]
    return tuple(sorted(kept, key=most_urgent_first))


def pooled(parts: Iterable[AlarmStatus], *, desired: int = 0) -> AlarmStatus:
    """Return the statuses of several children as one; without `silent`, which is not a sum."""
    parts = list(parts)
    states = [sum(counts) for counts in zip(*(part.states for part in parts), strict=True)]
    waits = [part.armed_in_s for part in parts if part.armed_in_s > 0]
    unknown = any(part.armed_in_s < 0 for part in parts)
    provisional = [part.provisional_rows for part in parts if part.provisional_rows > 0]
    return AlarmStatus(
        tuple(states) or (0,) * len(STATES),
        chosen((part.alarms for part in parts), MOST_ALARMS),
        sum(part.open for part in parts),
        sum(part.watched_s for part in parts),
        sum(part.allowed for part in parts),
        sum(part.raised for part in parts),
        sum(part.confirmed for part in parts),
        max(waits) if waits else (-1.0 if unknown else 0.0),
        desired,
        typical=TypicalAlarms(*map(sum, zip(*(part.typical for part in parts), strict=True))),
        provisional_rows=min(provisional, default=0.0),
    )


def most_of_each_node(alarms: Iterable[Alarm]) -> tuple[list[Alarm], list[Alarm]]:
    """Return the alarms that their nodes can have, each once, and those that are too many.

    Of two alarms with one name the one that has ended counts: one child reports both.
    """
    of_nodes: dict[str, dict[int, Alarm]] = {}
    for alarm in alarms:
        of_node = of_nodes.setdefault(alarm.node, {})
        held = of_node.get(alarm.number)
        if held is None or (held.is_open and not alarm.is_open):
            of_node[alarm.number] = alarm
    kept, excess = list[Alarm](), list[Alarm]()
    for of_node in of_nodes.values():
        several = list(of_node.values())
        if len(several) > MOST_OF_NODE:
            several.sort(key=most_urgent_first)
        kept += several[:MOST_OF_NODE]
        excess += several[MOST_OF_NODE:]
    return kept, excess


def _by_turns(alarms: list[Alarm]) -> list[Alarm]:
    """Return the first alarm of each node, then the second of each; newest first in each turn."""
    turns: dict[str, int] = {}
    keyed = []
    for alarm in alarms:
        turn = turns[alarm.node] = turns.get(alarm.node, -1) + 1
        keyed.append((turn, alarm))
    return [alarm for _, alarm in sorted(keyed, key=lambda each: each[0])]

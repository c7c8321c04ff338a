"""diff(): what happened between two states of alarms. All readers of alarms use it.

1. Two states give events, in the order in which the alarms began; an end follows its start.
2. The order of the alarms in a state does not matter. Where two alarms of a state have one name,
   the ended one counts, then the one that has withheld more readings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from submerge.protocol.alarm_status import Alarm

AlarmEventKind = Literal["start", "end", "change", "worse", "gone"]
"""The alarm began; it ended; its revision changed otherwise (a verdict came, or it is open again);
only the figures of an open alarm changed; it has left the state."""


class AlarmEvent(NamedTuple):
    """One thing that happened to an alarm, as it is now; as it was, if it is gone."""

    kind: AlarmEventKind
    alarm: Alarm


def diff(before: Iterable[Alarm], after: Iterable[Alarm]) -> list[AlarmEvent]:
    """Return what happened between two states; a new alarm that has ended has two events."""
    before, after = tuple(before), tuple(after)
    if before == after:
        return []
    old, new = _by_name(before), _by_name(after)
    events: list[AlarmEvent] = []
    for alarm in sorted((old | new).values(), key=lambda each: (each.number, each.node)):
        was = old.get(alarm.name)
        if alarm.name not in new:
            events.append(AlarmEvent("gone", alarm))
        elif was is None:
            events.append(AlarmEvent("start", alarm))
            if not alarm.is_open:
                events.append(AlarmEvent("end", alarm))
        elif was.is_open and not alarm.is_open:
            events.append(AlarmEvent("end", alarm))
        elif was != alarm:
            same = was.revision == alarm.revision
            events.append(AlarmEvent("worse" if same else "change", alarm))
    return events


def is_urgent(events: Iterable[AlarmEvent]) -> bool:
    """Return whether people wait for an event: not for `worse`, nor of a quiet alarm."""
    return any(event.kind != "worse" and not event.alarm.is_quiet for event in events)


def _by_name(alarms: Iterable[Alarm]) -> dict[str, Alarm]:
    known: dict[str, Alarm] = {}
    for alarm in alarms:
        held = known.setdefault(alarm.name, alarm)
        if held is not alarm and _rank(held) < _rank(alarm):
            known[alarm.name] = alarm
    return known


def _rank(alarm: Alarm) -> tuple[bool, int, bytes]:
    return not alarm.is_open, alarm.withheld, alarm.packed

"""AlarmDisputes: alarms that a child reports and that are not believed, counted and named once."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import Literal, NamedTuple

from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Note, Now

LeftOutWhy = Literal[
    "its node reports here, and says otherwise",
    "an aggregator raises no alarms",
    "another child says that it is open",
    "a node has nine alarms at most",
]
"""Why an alarm is left out, as people read it."""

AGAIN_S = 600.0  # a child is named in the log again after this time at the soonest
NAMED = 3  # alarms that a line of the log names


class LeftOutAlarm(NamedTuple):
    """An alarm as the child `by` reports it, and why it is left out."""

    alarm: Alarm
    by: str
    why: LeftOutWhy


class AlarmDisputes:
    """What a group's children report that is not believed; an alarm counts once while left out."""

    def __init__(self) -> None:
        self.contradicted = 0
        self._standing: dict[str, frozenset[tuple[str, str]]] = {}
        self._said_at: dict[str, float] = {}

    def take(self, group: str, by: str, left_out: Iterable[LeftOutAlarm], now: Now) -> list[Note]:
        """Take what is left out of a child's report; return a note, if it is time for one."""
        left_out = list(left_out)
        before = self._standing.pop(by, frozenset())
        after = frozenset((each.alarm.name, each.why) for each in left_out)
        if after:
            self._standing[by] = after
        new = [each for each in left_out if (each.alarm.name, each.why) not in before]
        self.contradicted += len(new)
        if not new or now.steady - self._said_at.get(by, -math.inf) < AGAIN_S:
            return []
        self._said_at[by] = now.steady
        facts = {
            "group": group,
            "by": by,
            "alarms": tuple(each.alarm.name for each in new[:NAMED]),
            "why": new[0].why,
            "left_out": len(left_out),
            "meaning": "what it reports of these alarms does not count",
        }
        return [Note("alarms contradicted", facts, "warning")]

    def only(self, children: Container[object]) -> None:
        self._standing = {by: each for by, each in self._standing.items() if by in children}
        self._said_at = {by: at for by, at in self._said_at.items() if by in children}

"""Delivered: what a sink has delivered of alarms, and what is new to it.

Alarms come as a state: all alarms that the node remembers, or all nodes below an aggregator. A
sink delivers the difference between that state and what it delivered before. So a kill loses
nothing: what was on its way is still in the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from submerge.protocol.alarm_changes import AlarmEvent, diff
from submerge.protocol.alarm_status import Alarm

MOST = 32
"""Ended alarms of a node that a sink remembers; the node itself remembers a quarter of that."""

MOST_IN_ALL = 20_000
"""Ended alarms of all nodes together that a sink remembers."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one sink has delivered.

    open : Alarms whose start is delivered and whose end is not, as they were at the start.
    over : Names of alarms of which all is delivered; each node's newest ones.
    """

    open: tuple[Alarm, ...] = ()
    over: tuple[str, ...] = ()

    @classmethod
    def since(cls, alarms: Iterable[Alarm], begun: Collection[str] = ()) -> Delivered:
        """Return where a new sink begins: alarms that ended before count as delivered.

        `begun`: names of alarms whose start is delivered and whose end is still due.
        """
        over = [each for each in alarms if not each.is_open and each.name not in begun]
        over.sort(key=lambda each: (each.number, each.node))
        return cls((), _newest([each.name for each in over]))

    def after(self, event: AlarmEvent) -> Delivered:
        """Return a copy that counts a start or an end as delivered."""
        name = event.alarm.name
        others = tuple(each for each in self.open if each.name != name)
        if event.kind == "start":
            return Delivered((*others, event.alarm), self.over)
        return Delivered(others, _newest([*(each for each in self.over if each != name), name]))

    def started(self, alarm: Alarm) -> Alarm | None:
        """Return an alarm as it was when its start was delivered; None if it is not open here."""
        return next((each for each in self.open if each.name == alarm.name), None)


def undelivered(delivered: Delivered, alarms: Iterable[Alarm]) -> list[AlarmEvent]:
    """Return the starts and ends that a sink has not delivered, in the order in which they came.

    An alarm that is open for the sink and unknown to the node is over as well: a node that loses
    its state file loses its alarms, and nothing else would end them.
    """
    over, begun = frozenset(delivered.over), {each.name: each for each in delivered.open}
    # Its start may have been delivered when it was over already: its end is still due.
    before = (replace(each, ended=0.0) for each in delivered.open)
    new: list[AlarmEvent] = []
    for kind, alarm in diff(before, (each for each in alarms if each.name not in over)):
        if kind == "start" or kind == "end":
            new.append(AlarmEvent(kind, alarm))
        elif kind == "gone":
            new.append(AlarmEvent("end", begun[alarm.name].over(alarm.peaked)))
    return new


def _newest(names: list[str]) -> tuple[str, ...]:
    """Return the last names of each node, in the same order."""
    counts = Counter[str]()
    kept: list[str] = []
    for name in reversed(names):
        node = name.rpartition("-")[0]
        counts[node] += 1
        if counts[node] <= MOST:
            kept.append(name)
    return tuple(reversed(kept[:MOST_IN_ALL]))

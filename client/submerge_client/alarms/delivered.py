"""Told: what a sink has told of alarms, and what is new to it.

Alarms come as a state: all that the node remembers, or all nodes below an aggregator do. What has
to be told is the difference to what was told before; so nobody has to remember what was on its
way when he was killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from submerge.protocol.alarm_changes import AlarmEvent, diff
from submerge.protocol.alarm_status import Alarm

MOST = 32
"""Alarms of a node that are over and that a sink knows it has told; it remembers a quarter."""

MOST_IN_ALL = 20_000
"""Of all nodes together."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one sink has told.

    Attributes
    ----------
    open : tuple of Alarm
        Whose start was told and whose end was not, as they were then.
    over : tuple of str
        Names of alarms of which there is nothing more to tell; each node's newest ones.
    """

    open: tuple[Alarm, ...] = ()
    over: tuple[str, ...] = ()

    @classmethod
    def since(cls, alarms: Iterable[Alarm], begun: Collection[str] = ()) -> Delivered:
        """Return where a new sink begins: what was over before it came, it need not tell.

        `begun`: names of those whose start is known to have been told all the same.
        """
        over = [each for each in alarms if not each.is_open and each.name not in begun]
        over.sort(key=lambda each: (each.number, each.node))
        return cls((), _newest([each.name for each in over]))

    def after(self, event: AlarmEvent) -> Delivered:
        """Return it once a start or an end is delivered."""
        name = event.alarm.name
        others = tuple(each for each in self.open if each.name != name)
        if event.kind == "start":
            return Delivered((*others, event.alarm), self.over)
        return Delivered(others, _newest([*(each for each in self.over if each != name), name]))

    def started(self, alarm: Alarm) -> Alarm | None:
        """Return an alarm as it was when its start was told; None if it is not told as open."""
        return next((each for each in self.open if each.name == alarm.name), None)


def undelivered(delivered: Delivered, alarms: Iterable[Alarm]) -> list[AlarmEvent]:
    """Return the starts and ends that a sink has not delivered, in the order in which they came.

    An alarm that is open for the sink and that the node no longer knows is over, too: with its
    state file a node loses its alarms, and then nothing else ends them.
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
    """The last of each node, in the order in which they are."""
    counts = Counter[str]()
    kept: list[str] = []
    for name in reversed(names):
        node = name.rpartition("-")[0]
        counts[node] += 1
        if counts[node] <= MOST:
            kept.append(name)
    return tuple(reversed(kept[:MOST_IN_ALL]))

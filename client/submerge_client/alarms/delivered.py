"""Told: what a sink has told of alarms, and what is new to it.

Alarms come as a state: all that the node remembers, or all nodes below an aggregator do. What has
to be told is the difference to what was told before; so nobody has to remember what was on its
way when he was killed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from submerge.protocol.alarm_status import Alarm

Event = Literal["start", "end"]

MOST = 32
"""Alarms of a node that are over and that a sink knows it has told; it remembers a quarter."""

MOST_IN_ALL = 20_000
"""Of all nodes together."""


class News(NamedTuple):
    """Something to tell, once."""

    alarm: Alarm
    event: Event


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
        return cls((), _newest([each.name for each in sorted(over, key=_order)]))

    def after(self, news: News) -> Delivered:
        """Return it once that was told."""
        name = news.alarm.name
        others = tuple(each for each in self.open if each.name != name)
        if news.event == "start":
            return Delivered((*others, news.alarm), self.over)
        return Delivered(others, _newest([*(each for each in self.over if each != name), name]))

    def started(self, alarm: Alarm) -> Alarm | None:
        """Return an alarm as it was when its start was told; None if it is not told as open."""
        return next((each for each in self.open if each.name == alarm.name), None)


def news(delivered: Delivered, alarms: Iterable[Alarm]) -> list[News]:
    """Return what is new, in the order in which it came about.

    An alarm that is told as open and that the node no longer knows is over, too: with its
    state file a node loses its alarms, and nobody else would ever end them.
    """
    new: list[News] = []
    known = {each.name: each for each in alarms}
    begun, over = {each.name: each for each in delivered.open}, frozenset(delivered.over)
    for name, newest in sorted((begun | known).items(), key=lambda each: _order(each[1])):
        if name not in known:
            new.append(News(newest.over(newest.peaked), "end"))
        elif name not in over:
            if name not in begun:
                new.append(News(newest, "start"))
            if not newest.is_open:
                new.append(News(newest, "end"))
    return new


def _order(alarm: Alarm) -> tuple[int, str]:
    return alarm.number, alarm.node


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

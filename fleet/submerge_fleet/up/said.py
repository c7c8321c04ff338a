"""Line: how a machine is, in one line for a person."""

from __future__ import annotations

from dataclasses import dataclass

from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Now
from submerge_aggregator.questions import alarm_survey, survey
from submerge_aggregator.questions.alarm_views import AlarmView, WatchView
from submerge_fleet.console.units import in_words

MOST_NAMED = 2
"""Most channels that a line names."""


@dataclass(frozen=True)
class Line:
    """How a machine is.

    Attributes
    ----------
    learnt, withheld : int
        Readings that its root holds, of all its lives.
    state : str
        Its alarm status, in a word; empty while there is none.
    alarms : tuple of AlarmView
        Those that are open.
    """

    learnt: int
    withheld: int
    state: str
    alarms: tuple[AlarmView, ...]

    def text(self, rows: int) -> str:
        """Return the line; `rows`: read since the program began."""
        held = f"{self.learnt:,} readings learnt"
        held += f", {self.withheld:,} withheld" if self.withheld else ""
        state = f"; {self.state}" if self.state else ""
        return f"{rows:,} rows read; {held}{state}; {self._alarms}"

    @property
    def _alarms(self) -> str:
        if not self.alarms:
            return "no alarm"
        alarm = self.alarms[0]
        named = ", ".join(list(alarm.top)[:MOST_NAMED]) or alarm.cause
        more = f" and {len(self.alarms) - 1} more" if len(self.alarms) > 1 else ""
        return f"ALARM: {named}{more}"


def line_of(node: AggregatorNode, now: Now, group: str, name: str) -> Line:
    """Return how a machine is, as its root knows it."""
    views = survey.nodes(node, now, group, name)
    held = [(each.learnt, each.withheld) for view in views for each in view.rows]
    held += [(each.learnt, each.withheld) for view in views for each in view.sealed]
    watch = next((view.watch for view in views if view.watch is not None), None)
    return Line(
        sum(learnt for learnt, _ in held),
        sum(withheld for _, withheld in held),
        "" if watch is None else _state(watch),
        tuple(alarm_survey.alarms(node, now, group, name, open_only=True)),
    )


def _state(watch: WatchView) -> str:
    """Return an alarm status in words."""
    if watch.waiting:
        return f"no limits yet: waits for {watch.waiting}"
    if watch.armed_in_s:
        return f"limits are provisional for {in_words(watch.armed_in_s)}"
    return ", ".join(state for state, nodes in watch.states.items() if nodes)

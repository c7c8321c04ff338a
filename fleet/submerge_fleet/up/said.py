"""Line: how a machine is, in one line for a person."""

from __future__ import annotations

from dataclasses import dataclass

from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Now
from submerge_aggregator.questions import alarm_survey, survey
from submerge_aggregator.questions.alarm_views import AlarmView

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
    rows = [each for view in survey.nodes(node, now, group, name) for each in view.rows]
    sealed = [each for view in survey.nodes(node, now, group, name) for each in view.sealed]
    watch = next((view.watch for view in survey.nodes(node, now, group, name)), None)
    return Line(
        sum(each.learnt for each in (*rows, *sealed)),
        sum(each.withheld for each in (*rows, *sealed)),
        "" if watch is None else watch.state,
        tuple(alarm_survey.alarms(node, now, group, name, open_only=True)),
    )

"""Subtree: the alarms below an aggregator, as people are notified of them.

Rows report a state, and a state has gaps that mean nothing: a site has lost its store and waits
for its nodes' reports, a node was forgotten and begins again, more alarms are open than fit in a
report. An open alarm is over when its node reports that; or if no node has reported it for some
time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm

OLD_S = 7 * 86400.0
"""An alarm that ended so long before it was reported here is not sent: a node has moved."""


class Subtree:
    """The alarms of one group.

    begun : People were notified of their start, and not of their end.
    patience_s : An open alarm counts as open for so long after the last report of it.
    """

    def __init__(self, begun: Iterable[Alarm], patience_s: float) -> None:
        self._open = {alarm.name: alarm for alarm in begun}
        self._sent = frozenset(self._open)
        self._missing: dict[str, float] = {}
        self._reported: tuple[Alarm, ...] = ()
        self._whole, self._patience_s = True, patience_s

    def hear(self, reported: tuple[Alarm, ...], *, whole: bool) -> None:
        """Take the alarms of rows; `whole`: no open alarm was left out for lack of room."""
        self._reported, self._whole = reported, whole

    def state(self, now_s: float, wall: float) -> tuple[Alarm, ...]:
        """Return the alarms to send, at a steady and a wall time."""
        missing = {
            alarm.name: self._missing.get(alarm.name, now_s)
            for kind, alarm in diff(self._open.values(), self._reported)
            if kind == "gone"
        }
        believed = [
            self._open[name]
            for name, since in missing.items()
            if not self._whole or now_s - since < self._patience_s
        ]
        fresh = [
            alarm
            for alarm in self._reported
            if alarm.is_open or alarm.name in self._sent or alarm.ended > wall - OLD_S
        ]
        # A slow sink still needs an alarm that has ended since.
        self._sent = frozenset(alarm.name for alarm in (*fresh, *believed))
        self._open = {alarm.name: alarm for alarm in (*fresh, *believed) if alarm.is_open}
        self._missing = {name: since for name, since in missing.items() if name in self._open}
        return tuple(sorted((*fresh, *believed), key=lambda each: (each.number, each.node)))

    @property
    def due_s(self) -> float:
        """When the first missing alarm is over, on the steady clock."""
        if not self._whole:
            return math.inf
        return min(self._missing.values(), default=math.inf) + self._patience_s

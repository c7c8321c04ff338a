"""Subtree: the alarms below an aggregator, as whoever tells people hears of them.

What rows tell is a state, and a state has gaps that mean nothing: a site has lost its store and
hears of its nodes again, a node was forgotten and begins anew, more alarms are open than fit in
a report. An alarm that was told as open is over when its node says so; or if for a good while
nobody tells of it at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm

OLD_S = 7 * 86400.0
"""What was over for so long before it is heard of here is no news to anybody: a node has moved."""


class Subtree:
    """Those of one group.

    Parameters
    ----------
    begun : iterable of Alarm
        Whose start people were told, and whose end they were not.
    patience_s : float
        For so long an open alarm of which nobody tells is believed to be open.
    """

    def __init__(self, begun: Iterable[Alarm], patience_s: float) -> None:
        self._open = {alarm.name: alarm for alarm in begun}
        self._missing: dict[str, float] = {}
        self._reported: tuple[Alarm, ...] = ()
        self._whole, self._patience_s = True, patience_s

    def hear(self, reported: tuple[Alarm, ...], *, whole: bool) -> None:
        """Take what rows tell; `whole`: no open alarm is left out for there being too many."""
        self._reported, self._whole = reported, whole

    def state(self, now_s: float, wall: float) -> tuple[Alarm, ...]:
        """Return the alarms to tell of, at a steady and a wall time."""
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
            if alarm.is_open or alarm.name in self._open or alarm.ended > wall - OLD_S
        ]
        self._open = {alarm.name: alarm for alarm in (*fresh, *believed) if alarm.is_open}
        self._missing = {name: since for name, since in missing.items() if name in self._open}
        return tuple(sorted((*fresh, *believed), key=lambda each: (each.number, each.node)))

    @property
    def due_s(self) -> float:
        """When patience ends with the first that is missing, on the steady clock."""
        if not self._whole:
            return math.inf
        return min(self._missing.values(), default=math.inf) + self._patience_s

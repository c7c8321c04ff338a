"""Sinks: where alarms of a client go. Each one receives a state and delivers what is new in it.

1. A sink receives all alarms that the node remembers when one begins, ends or gets a verdict, at
   each start, and now and then. It knows what it has delivered (`journal`), also after a kill: each
   alarm has one start and one end, in that order.
2. A sink never blocks. What it cannot deliver now goes with a later state: nothing piles up.
3. A failure in a sink stops neither the node nor another sink.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from submerge.protocol.alarm_changes import diff, is_urgent
from submerge.protocol.alarm_status import Alarm
from submerge_client.logs import say

GRACE_S = 2.0  # For all sinks together at the end of the program. The next start delivers the rest.


class Sink(Protocol):
    def update(self, alarms: tuple[Alarm, ...]) -> None:
        """Take the alarms that the node remembers; deliver what is new, now or soon."""

    def close(self, patience_s: float) -> None:
        """Deliver what is possible within `patience_s` seconds, then end."""


class Sinks:
    """All sinks of a client, which receive the alarms that `sends` lets through."""

    def __init__(
        self,
        sinks: Sequence[Sink] = (),
        sends: Callable[[Alarm], bool] = lambda alarm: not alarm.is_quiet,
    ) -> None:
        self.alarms: tuple[Alarm, ...] = ()
        self._sinks, self._sends = list(sinks), sends
        self._failed: set[int] = set()

    def update(self, alarms: tuple[Alarm, ...]) -> None:
        self.alarms = alarms
        alarms = tuple(filter(self._sends, alarms))
        for i, sink in enumerate(self._sinks):
            try:
                sink.update(alarms)
            except Exception as error:  # rule 3
                self._log_once(i, error)

    def refresh(self, alarms: tuple[Alarm, ...]) -> None:
        """Hand over newer figures of the same alarms; a report that is sent again may be older."""
        if not is_urgent(diff(self.alarms, alarms)):
            self.update(alarms)

    def close(self) -> None:
        """Close every sink, within `GRACE_S` for all together."""
        until = time.monotonic() + GRACE_S
        for i, sink in enumerate(self._sinks):
            try:
                sink.close(max(0.0, until - time.monotonic()))
            except Exception as error:
                self._log_once(i, error)

    def _log_once(self, i: int, error: Exception) -> None:
        if i not in self._failed:
            self._failed.add(i)
            sink, why = type(self._sinks[i]).__name__, f"{type(error).__name__}: {error}"
            say("a bug in an alarm sink, please report it", level="error", sink=sink, why=why)

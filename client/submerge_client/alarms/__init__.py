"""Where alarms of a client go: sinks, each of which is told a state, and tells what is new.

1. A sink hears all the alarms that the node remembers: the open one, and those that were over
   last. It hears them when one begins, is over or is judged, at each start, and now and then.
2. What it has told before it knows by itself (`told`), whoever was killed meanwhile. So each
   alarm has one start and one end, in that order, however often it is heard.
3. A sink holds nothing up: what cannot be told now is in the state, and is told with a later one.
   Nothing piles up; of more alarms than the node remembers, the oldest go untold.
4. What fails in a sink stops neither the node nor another sink.

No alarm is raised or ended here: `submerge.client` does that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

from submerge.protocol.alarm_changes import diff, is_urgent
from submerge.protocol.alarm_status import Alarm
from submerge_client.logs import say

GRACE_S = 2.0
"""For all sinks together, when the program ends: what is not told by then, the next start tells."""


class Sink(Protocol):
    """Somewhere that alarms are told."""

    def tell(self, alarms: tuple[Alarm, ...]) -> None:
        """Hear the alarms that the node remembers; tell what is new, now or soon."""

    def close(self, patience_s: float) -> None:
        """Tell what can still be told in so many seconds; then end."""


class Sinks:
    """All that a client has.

    Parameters
    ----------
    sinks : sequence of Sink

    Attributes
    ----------
    alarms : tuple of Alarm
        As they were told last.
    """

    def __init__(self, sinks: Sequence[Sink] = ()) -> None:
        self.alarms: tuple[Alarm, ...] = ()
        self._sinks = list(sinks)
        self._failed: set[int] = set()

    def tell(self, alarms: tuple[Alarm, ...]) -> None:
        """Tell every sink."""
        self.alarms = alarms
        for i, sink in enumerate(self._sinks):
            try:
                sink.tell(alarms)
            except Exception as error:  # rule 4
                self._blame(i, error)

    def refresh(self, alarms: tuple[Alarm, ...]) -> None:
        """Tell the same alarms with newer figures.

        A report that is sent again may be older than what the sinks know: it tells them nothing.
        """
        if not is_urgent(diff(self.alarms, alarms)):
            self.tell(alarms)

    def close(self) -> None:
        """Let each tell what it can, for a moment."""
        until = time.monotonic() + GRACE_S
        for i, sink in enumerate(self._sinks):
            try:
                sink.close(max(0.0, until - time.monotonic()))
            except Exception as error:
                self._blame(i, error)

    def _blame(self, i: int, error: Exception) -> None:
        if i not in self._failed:
            self._failed.add(i)
            sink, why = type(self._sinks[i]).__name__, f"{type(error).__name__}: {error}"
            say("alarms not told", level=logging.ERROR, sink=sink, why=why)

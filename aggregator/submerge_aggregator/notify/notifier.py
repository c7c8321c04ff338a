"""AlarmNotifier: sends alarms to people, in a thread of its own, as sinks wait for disks.

It gets the newest state of each group and hands it to the group's sinks. Nothing piles up: a
newer state replaces one that is still waiting.
"""

from __future__ import annotations

import logging
import math
import threading
import traceback
from collections.abc import Callable, Mapping

from submerge.protocol.machine import Now
from submerge_aggregator.batch import AlarmsChanged
from submerge_aggregator.notify.subtree import Subtree
from submerge_client.alarms import Sinks
from submerge_client.logs import say

LONGEST_WAIT_S = 3600.0


class AlarmNotifier:
    """Sends the alarms of all groups."""

    def __init__(
        self, groups: Mapping[str, tuple[Subtree, Sinks]], clock: Callable[[], Now]
    ) -> None:
        self._groups, self._clock = groups, clock
        self._heard: dict[str, AlarmsChanged] = {}
        self._stirred = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="alarms", daemon=True)
        self._thread.start()

    def notify(self, news: AlarmsChanged) -> None:
        """Send the newest state of a group; returns at once."""
        if news.group in self._groups:
            with self._stirred:
                self._heard[news.group] = news
                self._stirred.notify()

    def close(self) -> None:
        """Send what can be sent in a moment; the next start sends the rest."""
        with self._stirred:
            self._closing = True
            self._stirred.notify()
        self._thread.join()
        for _, sinks in self._groups.values():
            sinks.close()

    def _run(self) -> None:
        known: set[str] = set()
        while True:
            heard, closing = self._wait(known)
            known |= heard.keys()
            try:
                self._send(known, heard)
            except Exception:  # no thread dies in silence
                say("a bug, please report it", level=logging.ERROR, trace=traceback.format_exc())
            if closing:
                return

    def _send(self, known: set[str], heard: Mapping[str, AlarmsChanged]) -> None:
        for name in known:
            subtree, sinks = self._groups[name]
            if name in heard:
                subtree.hear(heard[name].alarms, whole=heard[name].whole)
            now = self._clock()
            if name in heard or subtree.due_s <= now.steady:
                sinks.update(subtree.state(now.steady, now.wall))

    def _wait(self, known: set[str]) -> tuple[dict[str, AlarmsChanged], bool]:
        """Wait for news, or until a missing alarm is over; return the news."""
        with self._stirred:
            now_s = self._clock().steady
            due_s = min((self._groups[name][0].due_s for name in known), default=math.inf)
            if not self._heard and not self._closing and due_s > now_s:
                self._stirred.wait(min(due_s - now_s, LONGEST_WAIT_S))
            heard, self._heard = self._heard, {}
            return heard, self._closing

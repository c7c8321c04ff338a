"""Refusals: what was not taken, counted by reason, and told once a minute for each sender.

The reasons are a closed set, all of them there from the start, at 0: an alarm can rest on
each. Three speak of them: the codec, of bytes (`submerge.errors.KINDS`); the machine, in its
answers (`Reason`); and the doors, of what they let nobody see (`DOORS`).

1. A message is counted under one reason, by the first that does not take it.
2. The log is bounded whatever comes in: so many lines a minute, then their number.
3. It can be told from any thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

from submerge.errors import KINDS
from submerge.protocol.messages import Reason
from submerge_client.logs import say

BORDERS = {
    "spoofed": "another name in it than in the certificate or the topic that it came by",
    "throttled": "too much from one node, or from one connection without a name",
    "foreign_topic": "a topic or a method that no child speaks by",
    "empty": "no bytes at all: a report that was taken back from its broker",
    "dropped": "no room, or stopping: said to the child, where it can be",
    "stranger": "from a broker, and for another aggregator's store",
    "overtaken": "an older report than the one that is held: nothing changes",
    "handshake": "a connection that came to nothing: no certificate, or none that is trusted",
}
"""Why a door takes something in no further; each in a line, for people."""

REASONS: dict[str, str] = (
    BORDERS
    | KINDS
    | {reason.name.lower(): reason.value for reason in Reason if reason is not Reason.ACK}
    | {"schema": "another schema, or one that cannot be read"}
)
"""All reasons, and what each means. What codec and machine share is one."""

HARMLESS = frozenset({"unavailable", "empty", "overtaken", "stranger"})
"""What honest nodes and brokers do every day: told to who wants to see everything."""

MINUTE_S, MOST_LINES = 60.0, 100
"""Lines in a minute, at most: a flood under many names must not fill the disk."""


class Refusals:
    """Counts, and tells.

    Parameters
    ----------
    steady : callable
        A clock that is never set back, in seconds.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady, self._lock = steady, threading.Lock()
        self._counts = dict.fromkeys(REASONS, 0)
        self._minute_at = -math.inf
        self._said: set[tuple[str, str]] = set()
        self._unsaid = 0

    @property
    def counts(self) -> dict[str, int]:
        """Messages that were not taken, by reason."""
        return dict(self._counts)

    def count(
        self, reason: str, who: str = "", /, *, what: str = "child refused", **facts: object
    ) -> None:
        """Count one message, and tell it, if nothing alike was told this minute.

        Parameters
        ----------
        reason : str
            One of `REASONS`.
        who : str
            The node as far as it is known, or its address.
        what : str
            How the line begins.
        **facts
            What else to tell.
        """
        with self._lock:
            self._counts[reason] += 1
            unsaid = self._turned()
            tells = (who, reason) not in self._said and len(self._said) < MOST_LINES
            if tells:
                self._said.add((who, reason))
            elif (who, reason) not in self._said:
                self._unsaid += 1
        if unsaid:
            say("messages refused, not told one by one", level=logging.WARNING, count=unsaid)
        if tells:
            level = logging.DEBUG if reason in HARMLESS else logging.WARNING
            reported = {"node": who} if who else {}
            say(what, level=level, **reported, reason=reason, **facts)

    def _turned(self) -> int:
        """Begin another minute if it is time; return what the last one left untold."""
        now = self._steady()
        if now < self._minute_at + MINUTE_S:
            return 0
        unsaid, self._unsaid, self._minute_at = self._unsaid, 0, now
        self._said.clear()
        return unsaid

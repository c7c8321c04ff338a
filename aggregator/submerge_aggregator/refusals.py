"""Refusals: messages that were not taken, counted by reason, and logged once a minute by sender.

The reasons are a closed set, all shown from the start, at 0, so that an alert can use each: of the
codec (`submerge.errors.KINDS`), the machine (`Reason`) and the transports (`BORDERS`). A message is
counted under the first that refuses it, from any thread. The log is bounded whatever comes in.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from submerge.errors import KINDS
from submerge.protocol.machine import Level
from submerge.protocol.messages import Reason
from submerge_aggregator.audit import Record, record_nothing
from submerge_client.logs import say

BORDERS = {
    "spoofed": "its name differs from the certificate's, or from the topic's that it came by",
    "throttled": "too much from one node, or from one connection without a name",
    "foreign_topic": "a topic or a method that no child uses",
    "empty": "no bytes at all: a report that was taken back from its broker",
    "dropped": "no room, or stopping: answered as busy, where that is possible",
    "stranger": "from a broker, and for another aggregator's store",
    "overtaken": "an older report than the one that is held: nothing changes",
    "handshake": "a connection that came to nothing: no certificate, or an untrusted one",
}
"""Why a transport refuses a message; each in a line, for people."""

REASONS: dict[str, str] = (
    BORDERS
    | KINDS
    | {reason.name.lower(): reason.value for reason in Reason if reason is not Reason.ACK}
    | {"schema": "another schema, or one that cannot be read"}
)
"""All reasons, and what each means. The codec and the machine share some."""

HARMLESS = frozenset({"unavailable", "empty", "overtaken", "stranger"})
"""What honest nodes and brokers do every day: logged at debug level."""

MINUTE_S, MOST_LINES = 60.0, 100
"""Most lines in a minute: a flood under many names must not fill the disk."""


class Refusals:
    """Counts refusals, and logs them.

    record : Of the audit log: each reason once a minute, with the number since the last time.
    """

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        record: Record = record_nothing,
        *,
        reasons: Iterable[str] = REASONS,
        sender: str = "node",
    ) -> None:
        self._sender = sender
        self._steady, self._lock, self._record = steady, threading.Lock(), record
        self._counts = dict.fromkeys(reasons, 0)
        self._unrecorded = dict(self._counts)
        self._record_at = dict.fromkeys(self._counts, -math.inf)
        self._minute_at = -math.inf
        self._logged: set[tuple[str, str]] = set()
        self._unlogged = 0

    @property
    def counts(self) -> dict[str, int]:
        return dict(self._counts)

    def count(
        self, reason: str, who: str = "", /, *, what: str = "child refused", **facts: object
    ) -> None:
        """Count one message, and log it, unless the same was logged this minute."""
        with self._lock:
            self._counts[reason] += 1
            unlogged = self._begin_minute()
            new = (who, reason) not in self._logged
            logs = new and len(self._logged) < MOST_LINES
            if logs:
                self._logged.add((who, reason))
            elif new:
                self._unlogged += 1
            count = self._unrecorded_now(reason)
        if unlogged:
            say("messages refused, not logged one by one", level="warning", count=unlogged)
        if count:
            self._record("refused", **{**facts, "reason": reason, "count": count, "node": who})
        if logs:
            level: Level = "debug" if reason in HARMLESS else "warning"
            sender: dict[str, Any] = {self._sender: who} if who else {}
            say(what, level=level, **sender, reason=reason, **facts)

    def _unrecorded_now(self, reason: str) -> int:
        """Return how many have come since the last entry; 0 if it is too soon for another."""
        if reason in HARMLESS:
            return 0
        self._unrecorded[reason] += 1
        now = self._steady()
        if now < self._record_at[reason] + MINUTE_S:
            return 0
        count, self._unrecorded[reason], self._record_at[reason] = self._unrecorded[reason], 0, now
        return count

    def _begin_minute(self) -> int:
        """Begin another minute if it is time; return how many the last one left unlogged."""
        now = self._steady()
        if now < self._minute_at + MINUTE_S:
            return 0
        unlogged, self._unlogged, self._minute_at = self._unlogged, 0, now
        self._logged.clear()
        return unlogged

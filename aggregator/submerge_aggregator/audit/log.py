"""AuditLog: entries go into a queue, and a thread of its own writes them.

1. `record` never waits, and may be called from any thread. It costs the making of one line.
2. What it records has happened: callers come after the commit that it rests on.
3. A full disk, or a queue that is full, costs entries and nothing else. They are counted, and
   once a write succeeds, an entry has their number.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from submerge_aggregator.audit.entries import line_of
from submerge_aggregator.audit.files import AuditFiles
from submerge_client.logs import say

MOST_WAITING = 10_000
"""Lines that wait: 4 MiB at most, and 2 MiB as a rule."""

PATIENCE_S = 5.0
"""At the end, the longest wait for the disk."""


class Record(Protocol):
    """What records an entry."""

    def __call__(self, event: str, /, **facts: object) -> None:
        """Record an event, one of `entries.EVENTS`, with its facts."""


def record_nothing(event: str, /, **facts: object) -> None:
    """Record nothing: there is no audit log."""


class AuditLog:
    """The audit log of one aggregator; without files entries are not kept."""

    def __init__(self, files: AuditFiles | None, wall: Callable[[], float] = time.time) -> None:
        self._files, self._wall = files, wall
        self.dropped = 0
        self._unsaid = 0
        self._failing = False
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def record(self, event: str, /, **facts: object) -> None:
        """Record an event, one of `entries.EVENTS`, with its facts."""
        if self._files is None:
            return
        line = line_of(event, self._wall(), facts)
        with self._changed:
            if self._closing or len(self._waiting) >= MOST_WAITING:
                self._drop(1)
                return
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="audit", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, and close the file."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._unsaid += count

    def _write_all(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                lines = list(self._waiting)
                self._waiting.clear()
                unsaid, self._unsaid = self._unsaid, 0
                if not lines:
                    break
            self._write(lines, unsaid)
        if self._files is not None:
            self._files.close()

    def _write(self, lines: list[bytes], unsaid: int) -> None:
        if self._files is None:
            return
        first = [line_of("dropped", self._wall(), {"count": unsaid})] if unsaid else []
        try:
            self._files.append(b"".join(first + lines))
        except OSError as error:
            with self._changed:
                self._drop(len(lines))
                self._unsaid += unsaid
            if not self._failing:
                self._failing = True
                why = error.strerror or str(error)
                say("audit log not written, entries are dropped", level="error", why=why)
            return
        if self._failing:
            self._failing = False
            say("audit log written again", dropped=unsaid)

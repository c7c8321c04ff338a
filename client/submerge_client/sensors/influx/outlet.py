"""MetricOutlet: standard output of a processor (docs/decisions/0056, docs/telegraf.md).

A reader that is gone is found out also while nothing is written. The sensor's thread writes; any
thread adds.
"""

from __future__ import annotations

import os
import select
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from submerge_client.logs import say
from submerge_client.uplink.waker import Waker

KEPT = 1 << 14
"""Rows that may be between a sensor and their scores: a node is `AHEAD` rows behind at most, and at
the end as many as a last chunk has lines."""


class RowTimes:
    """Times of the newest `KEPT` rows. The sensor's thread adds, the node's looks up."""

    def __init__(self) -> None:
        self._times = np.zeros(KEPT, dtype=np.int64)
        self._rows = 0

    def add(self, times: Sequence[int]) -> None:
        """Take the times of the next rows, before these are handed over."""
        places = np.arange(self._rows, self._rows + len(times)) % KEPT
        self._times[places] = times
        self._rows += len(times)

    def of(self, row: int) -> int:
        """Return the time of a row, the first of which is 0."""
        return int(self._times[row % KEPT])


SLOW_S = 1.0  # for so long a reader may take nothing, before it counts as blocked

GRACE_S = 2.0
"""How long the end waits for the reader: less than a supervisor waits for a program to end."""


class MetricOutlet:
    """A pipe, socket, file or terminal to write to; `gone` says why nothing more can be written."""

    def __init__(self, descriptor: int, *, steady: Callable[[], float] = time.monotonic) -> None:
        self._descriptor, self._steady = descriptor, steady
        kind = os.fstat(descriptor).st_mode
        self._is_pipe = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
        if self._is_pipe:
            os.set_blocking(descriptor, False)
        self._lock = threading.Lock()
        # What waits, in order, and whether it is ours.
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._ours: list[bytes] = []  # until the line that goes on is whole
        self._is_whole = True
        self._stuck_at: float | None = None
        self._is_said = False
        self.times, self.waker, self.gone = RowTimes(), Waker(), ""
        self.counts = dict.fromkeys(("blocked", "not_passed_on", "unsaid"), 0)

    def fileno(self) -> int:
        return self._descriptor

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    @property
    def problem(self) -> str:
        if self.gone:
            return f"standard output: {self.gone}"
        return "standard output is blocked, reading stops" if self._is_said else ""

    def pass_on(self, chunk: bytes) -> None:
        """Let bytes go on, behind all that waits."""
        with self._lock:
            if self._ours and (end := chunk.find(b"\n") + 1):
                self._waiting.append((chunk[:end], False))
                self._add_ours()
                chunk = chunk[end:]
            if chunk:
                self._waiting.append((chunk, False))
                self._is_whole = chunk.endswith(b"\n")
        self.write()

    def add(self, lines: bytes) -> None:
        """Let lines of ours go out at the next line's end; from any thread."""
        with self._lock:
            self._ours.append(lines)
            if self.gone:
                self._give_up()
            elif self._is_whole:
                self._add_ours()
        self.waker.ring()

    def write(self) -> None:
        with self._lock:
            while self._waiting and not self.gone:
                data, ours = self._waiting.popleft()
                try:
                    taken = os.write(self._descriptor, data)
                except BlockingIOError:
                    taken = 0
                except OSError as error:
                    taken, broken = 0, isinstance(error, BrokenPipeError)
                    self.gone = "its reader has ended" if broken else str(error)
                if taken < len(data):
                    self._waiting.appendleft((data[taken:], ours))
                if taken:
                    self._stuck_at = None
                else:
                    break
            self._note_stuck()
            if self.gone:
                self._give_up()

    def look(self) -> None:
        """Find out whether the reader is gone, although nothing is to be written."""
        if not self.gone:
            poll = select.poll()
            poll.register(self._descriptor, 0)
            if poll.poll(0):
                with self._lock:
                    self.gone = "its reader has ended"
                    self._give_up()

    def finish(self, patience_s: float = GRACE_S) -> None:
        """Write what waits, for so long at most; then count what is left. It ends the outlet."""
        with self._lock:
            if self._ours:
                self._waiting.append((b"\n", True))
                self._add_ours()
        until = self._steady() + patience_s
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        self.write()
        while self._waiting and not self.gone and (left := until - self._steady()) > 0:
            poll.poll(left * 1000)
            self.write()
        with self._lock:
            if not self.gone:
                self.gone = "it did not go on before the end" if self._waiting else "ended"
            self._give_up()
        self.waker.close()
        if self._is_pipe:
            os.set_blocking(self._descriptor, True)

    # Under the lock:
    def _add_ours(self) -> None:
        self._waiting.append((b"".join(self._ours), True))
        self._ours, self._is_whole = [], True

    def _note_stuck(self) -> None:
        """Say it when the reader begins to take nothing, and when it goes on."""
        if not self._waiting:
            self._stuck_at = None
        elif self._stuck_at is None:
            self._stuck_at = self._steady()
        if self._stuck_at is None and self._is_said:
            self._is_said = False
            say("standard output is read again")
        if self._stuck_at is None or self._is_said:
            return
        if self._steady() - self._stuck_at >= SLOW_S:
            self._is_said = True
            self.counts["blocked"] += 1
            say(
                "standard output is blocked: reading stops until its reader goes on",
                level="warning",
                blocked=self.counts["blocked"],
                bytes=sum(len(data) for data, _ in self._waiting),
            )

    def _give_up(self) -> None:
        left = {"not_passed_on": 0, "unsaid": 0}
        for data, ours in [*self._waiting, *((each, True) for each in self._ours)]:
            # A line of which a part has gone counts.
            left["unsaid" if ours else "not_passed_on"] += sum(map(bool, data.split(b"\n")))
        self._waiting.clear()
        self._ours.clear()
        for what, lines in left.items():
            self.counts[what] += lines
        if any(left.values()):
            say("metrics did not go on", level="warning", why=self.gone, **left)

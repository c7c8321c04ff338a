"""JobCalls: messages of jobs to a gRPC parent, each a call; few at a time, beside reports.

A call that fails is not repeated here, and no person hears of it: the sender repeats the message
until the parent has what it holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from submerge_client.uplink.job_queue import JobQueue

MOST_JOB_CALLS = 2
"""Calls at once. The next message goes when the parent has taken one: it sets the pace."""


class JobCalls:
    """The calls with messages of jobs, on one channel.

    call : gRPC's.
    patience_s : Deadline of a call.
    failed : Called for an error that is no network error.

    lost : Messages that the parent has not taken.
    """

    def __init__(self, call: Any, patience_s: float, failed: Callable[[], object]) -> None:
        self._call, self._patience_s, self._failed = call, patience_s, failed
        # A call that has ended runs its new callback at once, on this very thread.
        self._lock = threading.RLock()
        self._queue: JobQueue[bytes] = JobQueue()
        self._under_way = self.lost = 0
        self._closed = False

    def send(self, data: bytes) -> None:
        """Send a message as soon as its turn comes."""
        with self._lock:
            if not self._closed:
                self._queue.put(data, len(data))
                self._next()

    def close(self) -> None:
        """Forget what waits."""
        with self._lock:
            self._closed = True
            self._queue.clear()

    def _next(self) -> None:
        """Make the calls that are due; the lock is held."""
        while self._queue and self._under_way < MOST_JOB_CALLS and not self._closed:
            data = self._queue.take()
            try:
                call = self._call.future(data, timeout=self._patience_s)
            except Exception:  # the channel may be closed by now
                self._failed()
                self._queue.clear()
                return
            self._under_way += 1
            call.add_done_callback(self._ended)

    def _ended(self, call: Any) -> None:
        """Go on after a call; on one of gRPC's threads."""
        with self._lock:
            self._under_way -= 1
            self.lost += call.code().value[0] != 0
            self._next()

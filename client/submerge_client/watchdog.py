"""Watchdog: reports to the service manager that this process works, and how far it has come.

1. Only the loop that does the work feeds it, and no timer: a loop that hangs feeds nothing.
2. It is fed only while the sensor delivers: a restart is what helps a bus that hangs.
3. It is ready with the first row or with the parent's connection, whichever comes first: a
   device that is out of reach, or reads once an hour, has started all the same.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from submerge_client.logs import say

EVERY_S = 15.0  # seconds between two signs of life, unless the service manager wants them sooner
LONGEST = 240  # characters of a status: gRPC has reasons of many lines
START_S = 90.0  # how much longer a start may take; it is reported again while there is progress


class Watchdog:
    """What one process reports to its service manager; it is fed until `silence_s` without rows."""

    def __init__(
        self,
        silence_s: float = math.inf,
        *,
        alive: Path | None = None,
        environ: Mapping[str, str] | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        environ = {} if environ is None else environ
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._silence_s, self._alive, self._steady = silence_s, alive, steady
        watched = self._address is not None or alive is not None
        self._every_s = min(EVERY_S, _wanted_s(environ) / 2) if watched else math.inf
        self._rows_at = steady()
        self._feed_at = -math.inf if watched else math.inf
        self._started = self._ready = self._ending = self._failed = False
        self.silent = False

    @property
    def due_s(self) -> float:
        at = self._feed_at
        if not self.silent and not self._ending:
            at = min(at, self._rows_at + self._silence_s)
        return max(0.0, at - self._steady())

    def start(self) -> None:
        if not self._started:
            self._started, self._feed_at = True, min(self._feed_at, self._steady())

    def rows(self) -> None:
        self.start()
        self._rows_at = self._steady()
        if self.silent:
            self.silent, self._feed_at = False, self._steady()
            say("the sensor delivers again")

    def tick(self, status: Callable[[], str]) -> None:
        """Note one round of the loop; report it, if a report is due."""
        now = self._steady()
        if not self.silent and now - self._rows_at >= self._silence_s and not self._ending:
            self.silent = True
            say("the sensor is silent", level="warning", for_s=round(now - self._rows_at))
            self._notify(STATUS=f"the sensor is silent; {status()}")
        if now < self._feed_at:
            return
        # Counted from now: a loop that is late does not feed twice.
        self._feed_at = now + self._every_s
        if self._ending:
            self._notify(WATCHDOG="1")
        elif not self.silent:
            self._feed(status())

    def stopping(self, at_most_s: float) -> None:
        """Report that the process ends, and how long that may take; rows no longer count."""
        self._ending = True
        self._feed_at = min(self._feed_at, self._steady() + self._every_s)
        # Twice: files are written and closed after that.
        longest = _micro(2 * at_most_s + EVERY_S)
        self._notify(STOPPING="1", WATCHDOG="1", EXTEND_TIMEOUT_USEC=longest, STATUS="stopping")
        if self._alive is not None:
            try:
                self._alive.unlink(missing_ok=True)
            except OSError as error:
                self._log_once(error)
            self._alive = None

    def _feed(self, status: str) -> None:
        if not self._started:
            self._notify(EXTEND_TIMEOUT_USEC=_micro(START_S), STATUS=f"starting; {status}")
            return
        first = {} if self._ready else {"READY": "1"}
        self._ready = self._notify(**first, WATCHDOG="1", STATUS=status) or self._ready
        if self._alive is not None:
            try:
                self._alive.touch()
            except OSError as error:
                self._log_once(error)

    def _notify(self, **facts: str) -> bool:
        """Send facts to the service manager; return whether it worked."""
        if self._address is None:
            return False
        import socket  # late: not needed without a service manager

        text = "\n".join(f"{name}={_line(fact)}" for name, fact in facts.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.setblocking(False)
                manager.sendto(text.encode(), self._address)
        except OSError as error:
            self._log_once(error)
            return False
        return True

    def _log_once(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            say("watchdog not fed", level="warning", why=str(error))


def _address(text: str) -> str | None:
    """Return the service manager's socket: a path, or a name that begins with @."""
    if text.startswith("@"):
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _wanted_s(environ: Mapping[str, str]) -> float:
    """Return the service manager's time limit; infinity without one."""
    wanted = environ.get("WATCHDOG_USEC", "")
    # WATCHDOG_PID may name another process: a shell that is the parent of this one.
    ours = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
    return int(wanted) / 1e6 if ours and wanted.isdecimal() and int(wanted) else math.inf


def _line(fact: str) -> str:
    """Return a fact as one short line: foreign text cannot add another fact."""
    line = " ".join(fact.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _micro(seconds: float) -> str:
    return str(int(seconds * 1e6))

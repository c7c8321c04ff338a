"""Watchdog: tells whoever looks after this process that it is at work, and how far it has come.

systemd (`Type=notify` and `WatchdogSec=`) hears it over a socket; a container's health check
sees a file whose time moves on. Where there is neither, nothing is said.

1. Only the loop that does the work feeds it, and no timer: a loop that hangs feeds nothing.
2. It is fed only while the sensor delivers. A loop that turns in front of a sensor that has
   died is no progress, and to start again is what helps a bus that hangs.
3. It is ready with the first row, or when its parent is there, whichever comes first: a
   device that is out of reach, or reads once an hour, has started all the same.
4. It never waits for who listens, and what could not be said is said at the next turn.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from submerge_client.logs import say

EVERY_S = 15.0
"""Between two signs of life, unless who looks wants them sooner."""

LONGEST = 240
"""Characters of a status: gRPC has reasons of many lines."""

START_S = 90.0
"""How much longer a start may take, said again and again while there is progress."""


class Watchdog:
    """What a service manager hears of one process.

    Parameters
    ----------
    silence_s : float
        How long no rows may come before it is fed no more; infinity for what has no sensor.
    alive : Path or None
        A file that is touched with each feed.
    environ : mapping of str to str
        Where the service manager says how it is reached; empty: there is none.
    steady : callable
        A clock that is never set back, in seconds.

    Attributes
    ----------
    silent : bool
        No rows have come for too long.
    """

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
        heard = self._address is not None or alive is not None
        self._every_s = min(EVERY_S, _wanted_s(environ) / 2) if heard else math.inf
        self._rows_at = steady()
        self._feed_at = -math.inf if heard else math.inf
        self._begun = self._ready = self._ending = self._failed = False
        self.silent = False

    @property
    def due_s(self) -> float:
        """How long the loop may sleep."""
        at = self._feed_at
        if not self.silent and not self._ending:
            at = min(at, self._rows_at + self._silence_s)
        return max(0.0, at - self._steady())

    def begun(self) -> None:
        """Take note that what it was started for has begun."""
        if not self._begun:
            self._begun, self._feed_at = True, min(self._feed_at, self._steady())

    def rows(self) -> None:
        """Take note that the sensor has delivered."""
        self.begun()
        self._rows_at = self._steady()
        if self.silent:
            self.silent, self._feed_at = False, self._steady()
            say("the sensor delivers again")

    def turned(self, status: Callable[[], str]) -> None:
        """Take note that the loop has turned; say so, if it is time.

        Parameters
        ----------
        status : callable
            Returns the facts, in one line for people.
        """
        now = self._steady()
        if not self.silent and now - self._rows_at >= self._silence_s and not self._ending:
            self.silent = True
            say("the sensor is silent", level=logging.WARNING, for_s=round(now - self._rows_at))
            self._say(STATUS=f"the sensor is silent; {status()}")
        if now < self._feed_at:
            return
        # Not from when it was due: a loop that is late is not fed twice for it.
        self._feed_at = now + self._every_s
        if self._ending:
            self._say(WATCHDOG="1")
        elif not self.silent:
            self._feed(status())

    def stopping(self, at_most_s: float) -> None:
        """Say that it ends, and how long that may take; rows are no matter any more."""
        self._ending = True
        self._feed_at = min(self._feed_at, self._steady() + self._every_s)
        # As much again, for what is written and closed.
        longest = _micro(2 * at_most_s + EVERY_S)
        self._say(STOPPING="1", WATCHDOG="1", EXTEND_TIMEOUT_USEC=longest, STATUS="stopping")
        if self._alive is not None:
            try:
                self._alive.unlink(missing_ok=True)
            except OSError as error:
                self._complain(error)
            self._alive = None

    # -- inside ----------------------------------------------------------------

    def _feed(self, status: str) -> None:
        if not self._begun:
            self._say(EXTEND_TIMEOUT_USEC=_micro(START_S), STATUS=f"starting; {status}")
            return
        first = {} if self._ready else {"READY": "1"}
        self._ready = self._say(**first, WATCHDOG="1", STATUS=status) or self._ready
        if self._alive is not None:
            try:
                self._alive.touch()
            except OSError as error:
                self._complain(error)

    def _say(self, **facts: str) -> bool:
        """Tell the service manager; whether it was told."""
        if self._address is None:
            return False
        import socket  # not for a process that nobody looks after

        text = "\n".join(f"{name}={_line(fact)}" for name, fact in facts.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
                way.setblocking(False)
                way.sendto(text.encode(), self._address)
        except OSError as error:
            self._complain(error)
            return False
        return True

    def _complain(self, error: OSError) -> None:
        if not self._failed:
            self._failed = True
            say("no sign of life given", level=logging.WARNING, why=str(error))


def _address(text: str) -> str | None:
    """Where the service manager listens: a path, or a name that begins with @; else nowhere."""
    if text.startswith("@"):
        return "\0" + text[1:]
    return text if text.startswith("/") else None


def _wanted_s(environ: Mapping[str, str]) -> float:
    """How long it may go without a sign of life; infinity if nobody minds."""
    wanted = environ.get("WATCHDOG_USEC", "")
    # With WATCHDOG_PID it is for that process: a shell's, of which this one is the child.
    ours = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
    return int(wanted) / 1e6 if ours and wanted.isdecimal() and int(wanted) else math.inf


def _line(fact: str) -> str:
    """What says one thing: foreign words cannot add another, and leave room for the next."""
    line = " ".join(fact.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _micro(seconds: float) -> str:
    return str(int(seconds * 1e6))

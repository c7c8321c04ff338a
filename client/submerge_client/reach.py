"""Reach: logs that the parent is out of reach, and that it is back.

A client and its parent that start together find each other within seconds: the first warning waits
START_S for that. It logs at most one warning in REMIND_S. A parent that comes and goes, or a
connection that fails for a new reason each second, must not fill the log of a node that runs for
years.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from submerge_client.logs import say

REMIND_S = 60.0
"""Seconds between two warnings that the parent is out of reach."""

START_S = 5.0
"""How long a parent may be away after the start, without a warning."""

SILENT_S = 20.0
"""How long a parent may be silent once the connection is open. Over a broker, a misspelt name
shows by nothing else."""


class Reach:
    """Whether the parent can be reached, as far as is known.

    steady : A steady clock, in seconds.

    why : Why it is out of reach; None if it is not, or before the first try.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self.why: str | None = None
        self._steady = steady
        self._logged = False  # this absence
        self._next_at = steady() + START_S
        self._refusal, self._refused_at = "", -math.inf
        self._slowed_at = -math.inf
        self._silent_at = math.inf  # when its silence is too long

    @property
    def due_s(self) -> float:
        """Seconds until there may be something to log."""
        at = self._silent_at if self.why is None else self._next_at
        return max(0.0, at - self._steady())

    def parted(self, why: str) -> None:
        """Note that the parent cannot be reached."""
        self.why, self._silent_at = why, math.inf
        self.remind()

    def opened(self) -> None:
        """Note that the parent can be reached."""
        if self._logged:
            say("parent reached again")
        self.why, self._logged = None, False
        self._silent_at = self._steady() + SILENT_S

    def heard(self) -> None:
        """Note that a message came."""
        self._silent_at = math.inf

    def refused(self, why: str) -> None:
        """Note that the parent refused a message."""
        if why != self._refusal or self._steady() >= self._refused_at + REMIND_S:
            self._refusal, self._refused_at = why, self._steady()
            say("refused by the parent", level=logging.WARNING, why=why)

    def slowed(self, why: str) -> None:
        """Note that the parent asks for fewer messages; the node backs off by itself."""
        if self._steady() >= self._slowed_at + REMIND_S:
            self._slowed_at = self._steady()
            say("the parent asks for less, trying later", level=logging.WARNING, why=why)

    def remind(self) -> None:
        """Log that the parent is away or silent, if it is and a warning is due."""
        if self.why is None and self._steady() >= self._silent_at:
            self._silent_at = self._steady() + REMIND_S
            why = "is it there, under that name, and in that fleet?"
            say("the parent does not answer", level=logging.WARNING, why=why)
        if self.why is None or self._steady() < self._next_at:
            return
        what = "parent still unreachable" if self._logged else "parent unreachable, trying on"
        say(what, level=logging.WARNING, why=self.why)
        self._logged, self._next_at = True, self._steady() + REMIND_S

"""Reach: says in the log that the parent is out of reach, and that it is back.

At most one warning in REMIND_S, whatever the parent does: one that comes and goes, or a way
that fails for a new reason each second, must not fill the log of a node that runs for years.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from submerge_client.logs import say

REMIND_S = 60.0
"""How often it is said that the parent is away."""

SILENT_S = 20.0
"""How long a parent may say nothing, once the way is open: over a broker that is all that one
sees of a name that is misspelt."""


class Reach:
    """Whether the parent can be reached, as far as is known.

    Parameters
    ----------
    steady : callable
        A clock that is never set back, in seconds.

    Attributes
    ----------
    why : str or None
        Why it cannot; None if it can, or was not tried yet.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self.why: str | None = None
        self._steady = steady
        self._reported = False  # of this absence
        self._next_at = -math.inf
        self._refusal, self._refused_at = "", -math.inf
        self._slowed_at = -math.inf
        self._silent_at = math.inf  # when it will have said nothing for too long

    @property
    def due_s(self) -> float:
        """How long until there may be something to say."""
        at = self._silent_at if self.why is None else self._next_at
        return max(0.0, at - self._steady())

    def parted(self, why: str) -> None:
        """Take note that it cannot be reached."""
        self.why, self._silent_at = why, math.inf
        self.remind()

    def opened(self) -> None:
        """Take note that it can."""
        if self._reported:
            say("parent reached again")
        self.why, self._reported = None, False
        self._silent_at = self._steady() + SILENT_S

    def heard(self) -> None:
        """Take note that it says something."""
        self._silent_at = math.inf

    def refused(self, why: str) -> None:
        """Take note that the parent does not take what is sent."""
        if why != self._refusal or self._steady() >= self._refused_at + REMIND_S:
            self._refusal, self._refused_at = why, self._steady()
            say("refused by the parent", level=logging.WARNING, why=why)

    def slowed(self, why: str) -> None:
        """Take note that the parent wants less; whoever sends backs off by itself."""
        if self._steady() >= self._slowed_at + REMIND_S:
            self._slowed_at = self._steady()
            say("the parent asks for less, trying later", level=logging.WARNING, why=why)

    def remind(self) -> None:
        """Say that it is away, or silent, if it is, and it is time."""
        if self.why is None and self._steady() >= self._silent_at:
            self._silent_at = self._steady() + REMIND_S
            why = "is it there, under that name, and in that fleet?"
            say("the parent does not answer", level=logging.WARNING, why=why)
        if self.why is None or self._steady() < self._next_at:
            return
        what = "parent still unreachable" if self._reported else "parent unreachable, trying on"
        say(what, level=logging.WARNING, why=self.why)
        self._reported, self._next_at = True, self._steady() + REMIND_S

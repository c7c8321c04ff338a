"""Tether: the way to a parent. Join first; then one report at a time.

Whoever reports upward, client or aggregator, has one of these. It holds the newest report
that is not answered yet, and when to try what again. A newer report takes the place of one
that is still waiting: however long the parent is away, one report waits.
"""

from __future__ import annotations

import math

import numpy as np

from submerge.protocol.messages import Report
from submerge.protocol.retry import Retry

KNOCKS = 3
"""Reports that go unanswered before it asks again to join: a join is small, and whichever
store is there now answers it. On a shared broker nobody answers a report for a dead store."""

AGAIN = 10
"""Reports are said again after so many intervals without news, in case the parent was
restored from a backup and did not notice."""


TWIN_S = 3600.0
"""Contradicted twice within this time, a node keeps silent for as long."""


class Contradictions:
    """When another process spoke as this one does: once it may be chance, twice it is a copy.

    Two copies that share even their random numbers would reset each other for ever.
    """

    def __init__(self) -> None:
        self._at = -math.inf

    def add(self, steady: float) -> bool:
        """Count one more; return whether it is the second in short time."""
        last, self._at = self._at, steady
        return steady - last < TWIN_S


class ParentSession:
    """The way to a parent.

    Attributes
    ----------
    join, wait : Retry
        Asking to speak; waiting for the pending report's answer.
    pending : Report or None
        Sent, and not answered.
    acked : int
        The newest seq that the parent is known to hold.
    forced : bool
        Report now, news or not.
    silent_until : float
        Nothing is sent before, on the steady clock.
    """

    def __init__(self, report_every_s: float, patience_s: float, cap_s: float) -> None:
        self.join, self.wait = Retry(patience_s, cap_s), Retry(patience_s, cap_s)
        self.pending: Report | None = None
        self.acked = 0
        self.forced = False
        self.silent_until = -math.inf
        self._knocked = False
        self._every = report_every_s
        self._built_at, self._report_at = math.inf, -math.inf

    @property
    def joining(self) -> bool:
        """Whether a join is unanswered: nothing is reported before."""
        return self.join.at < math.inf

    @property
    def asked(self) -> bool:
        """Whether an answer to a join is waited for: one that comes unasked is an old one."""
        return self.joining and self.join.tries > 0

    def due_at(self, *, news: bool) -> float:
        """When something is to be sent, if nothing else happens."""
        return max(self._due_at(news=news), self.silent_until)

    def _due_at(self, *, news: bool) -> float:
        if self.joining:
            return self.join.at
        if self.pending is not None:
            return self.wait.at
        if self.forced:
            return -math.inf
        again = self._built_at + AGAIN * self._every
        return min(self._report_at if news else again, self.wait.at)

    def rejoin(self) -> None:
        """Ask to speak, if that is not being asked already."""
        if not self.joining:
            self.join.again()

    def greeted(self, steady: float, rng: np.random.Generator, *, first: bool) -> None:
        """The parent says that it is there: join it, soon.

        Not if a first join is on its way already, and this is the `first` that is heard of it:
        a link that opens brings both at once, and the answer would come unasked.
        """
        if not (first and self.joining and self.join.unanswered and self.join.tries == 1):
            self.join.soon(steady, rng)

    def joined(self, newest: int) -> bool:
        """The parent lets it speak, and holds `newest`.

        Returns
        -------
        bool : whether the parent has lost what it once held.
        """
        self.join.stop()
        behind = newest < self.acked
        self.acked = min(self.acked, newest)
        if self.pending is not None or behind:
            # At once, and if that is in vain, too, no more often than before.
            self.wait.at = -math.inf
        return behind

    def hurry(self) -> None:
        """Report now, whatever is being waited for."""
        self.forced = True
        if self.pending is not None:
            self.wait.now()

    def linked(self) -> None:
        """The way is open again: try at once what is being tried.

        And join: at its other end may be an older self of the parent, or its copy.
        """
        for retry in (self.join, self.wait):
            if retry.at < math.inf:
                retry.now()
        self.rejoin()

    def delay(self, steady: float, rng: np.random.Generator) -> None:
        """Let an interval pass before the next report."""
        self._report_at = steady + self._every * float(rng.uniform(0.8, 1.2))

    def soon(self, steady: float) -> None:
        """Do not wait for the interval to pass."""
        self._report_at = min(self._report_at, steady)

    def queue_report(self, report: Report, steady: float, rng: np.random.Generator) -> None:
        """Take a new report, in place of one that may be waiting."""
        self.pending, self.forced = report, False
        self._built_at = steady
        self.delay(steady, rng)

    def knocks_instead(self) -> bool:
        """Whether so many reports went unanswered that it asks to join again first."""
        if self._knocked or not self.wait.tries or self.wait.tries % KNOCKS:
            return False
        self._knocked = True
        self.join.now()
        return True

    def tried(self, steady: float, rng: np.random.Generator) -> None:
        """The pending report goes out."""
        self.wait.tried(steady, rng)
        self._knocked = False

    def confirmed(self, newest: int) -> Report | None:
        """The parent holds `newest`; return the pending report if that is what it waited for."""
        self.acked = max(self.acked, newest)
        pending = self.pending
        if pending is None or newest < pending.stamp.seq:
            return None
        self.pending = None
        self.wait.stop()
        return pending

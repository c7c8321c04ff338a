"""ParentSession: when to join a parent, and when to report to it; an aggregator has one a group."""

from __future__ import annotations

import math
from dataclasses import replace

from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Report, learnt_in
from submerge.protocol.names import RandomSource
from submerge.protocol.retry import Retry
from submerge.protocol.settings import AggregatorSettings, ClientSettings
from submerge.protocol.summaries import Summaries, Summary


def is_whole(report: Report | None) -> bool:
    return report is not None and any(
        isinstance(summary, WholeScatter) for _, summary in learnt_in(report)
    )


def formed(report: Report, summaries: Summaries, *, whole: bool) -> Report:
    """Return a report as its parent takes it; `whole`: whole scatters."""
    summary, sums = report.summary, report.earlier
    if sums is not None:
        sums = sums._replace(summary=_as_sent(sums.summary, summaries, whole=whole))
    as_sent = None if summary is None else _as_sent(summary, summaries, whole=whole)
    unchanged = as_sent is summary and sums is None
    return report if unchanged else replace(report, summary=as_sent, earlier=sums)


def _as_sent(summary: Summary, summaries: Summaries, *, whole: bool) -> Summary:
    if not isinstance(summary, WholeScatter):
        return summary
    # Rounded once: when it is repeated, it has to be the same bytes.
    return summary.rounded() if whole else summaries.directions(summary)


REPORTS_BEFORE_JOIN = 3
"""Reports without an answer before a join is sent again: a join is small, and the store that is
there now answers it. On a shared broker, a report for a dead store gets no answer."""

AGAIN = 10
"""Intervals without news after which the last report is sent again, in case the parent was restored
from a backup."""

TWIN_S = 3600.0  # a node that is contradicted twice within this time is silent for as long


class Contradictions:
    """When another process reported under this name: once may be chance, twice is a copy."""

    def __init__(self) -> None:
        self._at = -math.inf

    def add(self, steady: float) -> bool:
        """Count one more; return whether it is the second in short time."""
        last, self._at = self._at, steady
        return steady - last < TWIN_S


class ParentSession:
    """The way to a parent: tries of the join, and of the report that is `pending`, without answer.

    acked : The parent is known to hold it.
    whole_scatter : None before it answers a join.
    forced, silent_until : A report is due now, without news; nothing is sent until then (steady).
    """

    def __init__(self, report_every_s: float, patience_s: float, cap_s: float) -> None:
        self.join, self.wait = Retry(patience_s, cap_s), Retry(patience_s, cap_s)
        self.pending: Report | None = None
        self.acked = 0
        self.forced = False
        self.silent_until = -math.inf
        self.whole_scatter: bool | None = None
        self._asked_again = self._joins_at_once = False
        self._every = report_every_s
        self._built_at, self._report_at = math.inf, -math.inf

    @classmethod
    def of(cls, settings: ClientSettings | AggregatorSettings) -> ParentSession:
        """Return the session of a node with these settings, which has not joined."""
        return cls(settings.report_every_s, settings.patience_s, settings.cap_s)

    @property
    def joining(self) -> bool:
        """Whether a join is unanswered: nothing is reported meanwhile."""
        return self.join.at < math.inf

    @property
    def awaits_joined(self) -> bool:
        """Whether a join was sent: only then an answer to it counts, any other is an old one."""
        return self.joining and self.join.tries > 0

    def due_at(self, *, news: bool) -> float:
        """Return when something is to be sent, if nothing else happens."""
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
        """Join, unless a join is pending already."""
        if self.joining:
            return
        self.join.again()
        if self._joins_at_once:
            self._joins_at_once = False
            self.join.now()

    def take_hello(self, steady: float, rng: RandomSource, *, first: bool) -> None:
        """Join soon, because the parent has announced itself."""
        # A link that opens brings the first hello and the first join.
        if not (first and self.joining and self.join.unanswered and self.join.tries == 1):
            self.join.soon(steady, rng)

    @property
    def knows_form(self) -> bool:
        """Whether it is known in which form the parent takes a summary."""
        return self.whole_scatter is not None and not self.joining

    def formed(self, report: Report, summaries: Summaries) -> Report:
        return formed(report, summaries, whole=bool(self.whole_scatter))

    def take_joined(self, newest: int, *, whole_scatter: bool = False) -> bool:
        """Note that the parent holds `newest`; return whether it lost what it once held."""
        self.join.stop()
        self.whole_scatter = whole_scatter
        # A waiting report that it cannot take is made anew: one number has one content.
        self.forced |= is_whole(self.pending) and not whole_scatter
        behind = newest < self.acked
        self.acked = min(self.acked, newest)
        if self.pending is not None or behind:
            # At once; later tries keep their pace.
            self.wait.at = -math.inf
        return behind

    def hurry(self) -> None:
        """Make a report due now, and a join that it waits for."""
        self.forced = True
        if self.pending is not None:
            self.wait.now()
        if self.joining and not self.join.tries:
            self.join.now()
        # One that comes soon after another waits for `patience_s`; one after a join that ends goes
        # at once, but once, so that two sides that cannot agree keep their pace.
        self._joins_at_once = not self.joining

    def reopen(self) -> None:
        """Repeat pending tries at once and join: the other end may be an older parent."""
        for retry in (self.join, self.wait):
            if retry.at < math.inf:
                retry.now()
        self.rejoin()

    def delay(self, steady: float, rng: RandomSource) -> None:
        """Let an interval pass before the next report."""
        self._report_at = steady + self._every * (0.8 + 0.4 * rng.random())

    def soon(self, steady: float) -> None:
        """Make the next report due now, without waiting for the interval."""
        self._report_at = min(self._report_at, steady)

    def queue_report(self, report: Report, steady: float, rng: RandomSource) -> None:
        """Take a new report, in place of one that waits."""
        self.pending, self.forced = report, False
        self._built_at = steady
        self.delay(steady, rng)

    def put_off(self, steady: float, rng: RandomSource) -> None:
        """Let an interval pass: there is no report that could be sent."""
        self.forced, self._built_at = False, steady
        self.delay(steady, rng)

    def joins_again_first(self) -> bool:
        """Return whether a join goes first, because reports got no answer."""
        if self._asked_again or not self.wait.tries or self.wait.tries % REPORTS_BEFORE_JOIN:
            return False
        self._asked_again = True
        self.join.now()
        return True

    def mark_sent(self, steady: float, rng: RandomSource) -> None:
        self.wait.tried(steady, rng)
        self._asked_again = False

    def confirm(self, newest: int) -> Report | None:
        """Note that the parent holds `newest`; return the pending report if it holds that too."""
        self.acked = max(self.acked, newest)
        pending = self.pending
        if pending is None or newest < pending.stamp.seq:
            return None
        self.pending = None
        self.wait.stop()
        return pending

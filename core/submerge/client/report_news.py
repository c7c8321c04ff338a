"""ReportNews: whether there is enough to report that the newest report does not say."""

from __future__ import annotations

from submerge.client.incarnation import ClientIncarnation
from submerge.protocol.machine import Now
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries


class ReportNews:
    """Of one life.

    Parameters
    ----------
    settings : ClientSettings
    summaries : Summaries
    alarms : bool
        Whether alarms are news from the start: a parent forgets them with the life before.

    Attributes
    ----------
    built : int
        Readings in the newest report.
    alarms : bool
        Whether there is news of alarms, or of an order, that the newest report does not say.
    """

    def __init__(self, settings: ClientSettings, summaries: Summaries, *, alarms: bool) -> None:
        self.built, self.alarms = 0, alarms
        self._settings, self._summaries = settings, summaries
        self._look_at = settings.min_turned_rows

    def has_news(self, current: ClientIncarnation) -> bool:
        """Whether a report is worth its bytes."""
        settings = self._settings
        enough = settings.min_new_rows if self.built else settings.min_rows
        return self.alarms or current.counts.generated - self.built >= enough

    def has_grown(self, current: ClientIncarnation) -> bool:
        """Whether a report would say anything new at all."""
        return self.alarms or current.counts.generated > self.built

    def has_turned(self, current: ClientIncarnation, now: Now) -> bool:
        """Whether what is shown has turned so far that a report should not wait for the clock."""
        if current.counts.learnt < self._look_at:
            return False
        self._look_at = current.counts.learnt + self._settings.min_turned_rows
        after = None if current.shown is None else current.summary(now)
        if current.shown is None or after is None:
            return False
        return self._summaries.moved(current.shown, after) > self._settings.turned_by

    def said(self, current: ClientIncarnation) -> None:
        """A report has said everything."""
        self.built, self.alarms = current.counts.generated, False

"""ReportNews: whether there is enough news since the newest report."""

from __future__ import annotations

from submerge.client.incarnation import ClientIncarnation
from submerge.protocol.alarm_status import Waiting
from submerge.protocol.machine import Note, Now
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries

DECOMPOSED = 300
"""Dimensions up to which a summary is decomposed whole when it is read: an eigenproblem of that
size. Of more, directions are learnt, and reading costs little."""


class ReportNews:
    """The news of one incarnation.

    alarms : Whether alarms are news from the start: a parent forgets those of an earlier
        incarnation.

    built : Readings in the newest report.
    alarms : Whether alarms or the desired state have changed since the newest report.
    look_at : Readings learnt at which it is looked whether the subspace has turned.
    """

    def __init__(self, settings: ClientSettings, summaries: Summaries, *, alarms: bool) -> None:
        self.built, self.alarms = 0, alarms
        self._settings, self._summaries = settings, summaries
        self.look_at = settings.min_turned_rows

    def has_news(self, current: ClientIncarnation) -> bool:
        """Return whether a report is worth its bytes."""
        settings = self._settings
        enough = settings.min_new_rows if self.built else settings.min_rows
        return self.alarms or current.counts.generated - self.built >= enough

    def waiting(self, current: ClientIncarnation) -> list[Note]:
        """Note what the first report waits for; nothing if only for a first row."""
        rows, least = current.counts.generated, self._settings.min_rows
        waits = not self.built and not self.alarms and max(rows, 1) < least
        return [Note(Waiting("report", rows, least).words, {})] if waits else []

    def has_grown(self, current: ClientIncarnation) -> bool:
        """Return whether a report would contain anything new."""
        return self.alarms or current.counts.generated > self.built

    def has_turned(self, current: ClientIncarnation, now: Now) -> bool:
        """Return whether the subspace has turned so far that a report should be sent early."""
        if current.counts.learnt < self.look_at:
            return False
        self.look_at = current.counts.learnt + self._rows_apart(current)
        after = None if current.shown is None else current.summary(now)
        if current.shown is None or after is None:
            return False
        return self._summaries.turn_degrees(current.shown, after) > self._settings.turned_by

    def _rows_apart(self, current: ClientIncarnation) -> int:
        """Return the rows between two looks: as many as dimensions, where each is decomposed."""
        pieces = () if current.shown is None else current.shown.pieces
        dims = [piece.dim for piece in pieces if piece.dim <= DECOMPOSED]
        return max([self._settings.min_turned_rows, *dims])

    def mark_reported(self, current: ClientIncarnation) -> None:
        """Note that a report with everything was made."""
        self.built, self.alarms = current.counts.generated, False

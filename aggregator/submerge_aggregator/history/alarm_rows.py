"""AlarmRows: alarms that have ended or are judged, in their newest state, for the next write."""

from __future__ import annotations

import msgspec

from submerge_aggregator.batch import AlarmsChanged
from submerge_aggregator.history.file import AlarmRow
from submerge_aggregator.questions.alarm_survey import view_of


class AlarmRows:
    """Alarms of all groups, as they come; for one thread."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, bytes]] = {}
        self._rows: dict[tuple[str, str], AlarmRow] = {}

    def add(self, changed: AlarmsChanged) -> None:
        """Take the alarms that a group reports now; those that are not news cost nothing more."""
        group = changed.group
        before, known = self._known.get(group, {}), dict[str, bytes]()
        for found in changed.believed:
            alarm = found.alarm
            if alarm.is_open and not alarm.verdict:
                continue
            known[alarm.name] = alarm.revision
            if before.get(alarm.name) != alarm.revision:
                view = msgspec.json.encode(view_of(group, found, None))
                at = alarm.ended or alarm.began
                self._rows[group, alarm.name] = AlarmRow(group, alarm.name, at, view)
        self._known[group] = known

    def taken(self) -> list[AlarmRow]:
        """Return what has come since this was called last."""
        rows, self._rows = self._rows, {}
        return list(rows.values())

    def forget(self) -> None:
        """Take every alarm that is reported again as news: a write has failed."""
        self._known.clear()

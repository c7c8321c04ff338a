"""Past alarms and versions of models, as the history has them: pages of newest ones."""

from __future__ import annotations

from typing import Any

import msgspec

from submerge_aggregator.history.file import HistoryFile

MOST_ALARMS = 200
"""Alarms of one page."""

MOST_VERSIONS = 500
"""The newest versions, which one page has."""


def past_alarms(file: HistoryFile, group: str, before: float, after: str = "") -> dict[str, Any]:
    """Return alarms that have ended or are judged: an `AlarmView` each, the newest first.

    before : alarms that ended before this time, or began, if they are open; Unix seconds
    after : and of alarms of this time itself those whose id follows; the next page begins with
        time and id of the last alarm
    """
    rows = file.alarms(group, before, MOST_ALARMS + 1, after=after)
    shown = [msgspec.Raw(row.view) for row in rows[:MOST_ALARMS]]
    return {"alarms": shown, "more": len(rows) > MOST_ALARMS}


def versions(file: HistoryFile, group: str) -> dict[str, Any]:
    """Return versions of a group's model: a `VersionView` each, the newest first."""
    rows = file.versions(group, MOST_VERSIONS)
    return {"versions": [msgspec.Raw(row.view) for row in rows]}

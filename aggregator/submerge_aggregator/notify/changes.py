"""AlarmNews: the groups whose alarms a batch of records changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import latest_row_per_node
from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Key, Now
from submerge_aggregator.batch import AlarmsChanged
from submerge_aggregator.questions.alarm_survey import survey_alarms


class AlarmNews:
    """The alarms of all rows, as last kept."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Alarm, ...]] = {}

    def groups(self, records: Mapping[Key, Any], *, reset: bool) -> set[str]:
        """Return the groups whose alarms change with these records; `reset`: all others go."""
        changed = {key[1] for key in self._known} if reset else set()
        if reset:
            self._known.clear()
        for key, record in records.items():
            if key[0] != "row":
                continue
            alarms = () if record is None else record.report.alarms
            if diff(self._known.pop(key, ()), alarms):
                changed.add(key[1])
            if alarms:
                self._known[key] = alarms
        return changed


def alarms_of(node: AggregatorNode, now: Now, group: str) -> AlarmsChanged:
    """Return the alarms that all below report now."""
    ledger = node.ledger(group)
    alarm_statuses = (
        []
        if ledger is None
        else [row.report.alarm_status for _, row in latest_row_per_node(ledger)]
    )
    whole = all(
        each.open <= sum(alarm.is_open for alarm in each.alarms)
        for each in alarm_statuses
        if each is not None
    )
    return AlarmsChanged(group, tuple(found.alarm for found in survey_alarms(ledger, now)), whole)

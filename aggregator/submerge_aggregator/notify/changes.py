"""AlarmNews: the groups whose alarms a batch of records changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submerge.aggregator.alarms.below import alarms_below
from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import latest_row_per_node
from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Key, Now
from submerge_aggregator.batch import AlarmsChanged


class AlarmNews:
    """The alarms of all rows, as last kept."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Alarm, ...]] = {}
        self._disputed: set[str] = set()

    def groups(self, records: Mapping[Key, Any], *, reset: bool) -> set[str]:
        """Return the groups whose alarms change with these records; `reset`: all others go.

        Where several children report of one node, each of their reports may change whom to
        believe.
        """
        changed = {key[1] for key in self._known} if reset else set()
        if reset:
            self._known.clear()
        for key, record in records.items():
            if key[0] != "row":
                continue
            alarms = () if record is None else record.report.alarms
            if diff(self._known.pop(key, ()), alarms) or key[1] in self._disputed:
                changed.add(key[1])
            if alarms:
                self._known[key] = alarms
        return changed

    def alarms_of(self, node: AggregatorNode, now: Now, group: str) -> AlarmsChanged:
        """Return the alarms that all below report now, as far as they are believed."""
        ledger = node.ledger(group)
        if ledger is None:
            return AlarmsChanged(group, (), True)
        below = alarms_below(ledger, now)
        (self._disputed.add if below.disputed else self._disputed.discard)(group)
        statuses = [row.report.alarm_status for _, row in latest_row_per_node(ledger)]
        whole = all(
            each.open <= sum(alarm.is_serious for alarm in each.alarms)
            for each in statuses
            if each is not None
        )
        alarms = tuple(found.alarm for found in below.believed)
        return AlarmsChanged(group, alarms, whole, below.believed)

"""AlarmNews: which groups tell of other alarms than they did, by the rows that a turn keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.pool import Row
from submerge.aggregator.rollup import spokesmen
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import Key, Now
from submerge_aggregator.batch import Alarms
from submerge_aggregator.questions.alarm_survey import told_of


class AlarmNews:
    """What rows told of alarms when they were looked at last."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Alarm, ...]] = {}

    def groups(self, records: Mapping[Key, Any], *, anew: bool) -> set[str]:
        """Return the groups whose alarms are others, or look worse, once these are kept.

        anew : all that was kept before is gone
        """
        changed = set()
        if anew:
            changed = {key[1] for key, told in self._known.items() if told}
            self._known.clear()
        for key, record in records.items():
            if key[0] != "row":
                continue
            told = record.report.vigil.alarms if _tells(record) else ()
            if told != self._known.get(key, ()):
                changed.add(key[1])
                self._known[key] = told
            if record is None:
                self._known.pop(key, None)
        return changed


def alarms_of(node: AggregatorNode, now: Now, group: str) -> Alarms:
    """Return what all below tell of alarms now."""
    ledger = node.ledger(group)
    vigils = [] if ledger is None else [row.report.vigil for _, row in spokesmen(ledger)]
    whole = all(
        each.open <= sum(alarm.is_open for alarm in each.alarms)
        for each in vigils
        if each is not None
    )
    return Alarms(group, tuple(told.alarm for told in told_of(ledger, now)), whole)


def _tells(record: Row | None) -> bool:
    return record is not None and record.report.vigil is not None

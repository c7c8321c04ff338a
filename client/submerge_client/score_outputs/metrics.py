"""ScoreMetrics: the scores of each row as a metric in line protocol (docs/telegraf.md has them).

Of an alarm that `[alarms]` sends nowhere, `provisional` is true in place of `alarm`. A number that
is not finite is left out, as line protocol has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from submerge import Schema
from submerge.protocol.alarm_status import Alarm
from submerge_client.score_outputs.lines import ScoredBlock, alarm_names, scored_fields
from submerge_client.sensors.influx.line_protocol import written
from submerge_client.sensors.influx.outlet import MetricOutlet

MEASUREMENT = "submerge"


class ScoreMetrics:
    """Makes metrics of scores for an outlet; alarms are those that the client `sends`."""

    def __init__(
        self,
        schema: Schema,
        *,
        node: str,
        group: str,
        outlet: MetricOutlet,
        sends: Callable[[Alarm], bool],
    ) -> None:
        self._names, self._tags = schema.names, {"node": node, "group": group}
        self._outlet, self._sends = outlet, sends

    @property
    def problem(self) -> str:
        return self._outlet.problem

    def write(self, block: ScoredBlock) -> None:
        scored, schema, first, _, alarms = block
        named = alarm_names(scored.decision.alarmed, alarms)
        apart = {each.name for each in alarms if not self._sends(each)}
        withheld, lines = scored.decision.withheld.tolist(), []
        fields = scored_fields(scored.block, scored.scores, schema, self._names, top=1)
        for i, (row, of_row) in enumerate(zip(scored.block.which.tolist(), fields, strict=True)):
            values = _numbers(of_row) | _alarm(named.get(i), apart)
            values |= {"withheld": withheld[i], "expired": scored.expired}
            time = self._outlet.times.of(first + row)
            lines.append(written(MEASUREMENT, self._tags, values, time))
        self._outlet.add(b"".join(lines))

    def close(self) -> None:
        """Let what waits go on, as far as its reader takes it in time."""
        self._outlet.finish()


def _alarm(name: str | None, apart: set[str]) -> dict[str, Any]:
    """Return the alarm of a row; those `apart` are not called alarms."""
    named = {} if name is None else {"alarm_id": name}
    loud = name is not None and name not in apart
    return {"alarm": loud, "provisional": name in apart, **named}


def _numbers(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of a row and the first channel to blame."""
    over = dict.fromkeys(("over", "over_spe", "over_t2"), 0.0)
    numbers = over | {name: value for name, value in fields.items() if isinstance(value, float)}
    for name, share in fields.get("top", {}).items():
        numbers |= {"top": name, "top_share": share}
    return numbers

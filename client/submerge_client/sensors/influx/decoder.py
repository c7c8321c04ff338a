"""MetricDecoder: lines of metrics as readings of channels, put into rows.

A line is taken whole or not at all. Numbers, booleans and texts with a number in `states` are
readings; other texts are none, and no mistake. Names without a channel are "unknown": counted once
for each series and field in its first line, and kept for the log, a few at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from submerge.pca.subspace import LARGEST
from submerge_client.config.sensors import InfluxSensor
from submerge_client.sensors.influx.line_protocol import MalformedLine, cut, fields_of, value_of
from submerge_client.sensors.influx.names import Series, SeriesNames
from submerge_client.sensors.influx.rows import TimedRows
from submerge_client.sensors.mqtt.fields import as_number
from submerge_client.sensors.tally import ProblemTally

KINDS = ("malformed", "too_long", "unusable", "unknown")

UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

MOST_NAMES = 1000
"""Unknown names that wait for the log."""


class MetricDecoder:
    """Reads lines.

    channels : The schema's names, in its order.
    rows : Takes the readings.
    tally : With `KINDS`.
    wall_ns : The time of arrival, in nanoseconds since 1970.
    """

    def __init__(
        self,
        channels: Sequence[str],
        config: InfluxSensor,
        rows: TimedRows,
        tally: ProblemTally,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._names = SeriesNames(channels, template=config.name, ignored=config.ignored_tags)
        self._states, self._unit_ns = config.states, UNITS_NS[config.precision]
        self._rows, self._tally, self._wall_ns = rows, tally, wall_ns
        self._unlisted: dict[str, None] = {}

    def take(self, number: int, line: bytes | None, now: float) -> None:
        """Read a line; None is one that is too long.

        number : of the line, for the log
        now : on a steady clock, in seconds
        """
        if line is None:
            self._tally.add("too_long", "line too long", line=number)
            return
        try:
            parts = cut(line)
        except MalformedLine as error:
            self._tally.add("malformed", "malformed line", line=number, error=str(error))
            return
        if parts is None:
            return
        series, is_new = self._names.find(parts.series)
        if is_new:
            self._count_unknown(series, parts.fields)
        if not series.places:
            return
        at = parts.time
        for field, text in fields_of(parts.fields):
            channel = series.places.get(field)
            value = None if channel is None else as_number(value_of(text), self._states)
            if channel is None or value is None:
                continue
            if abs(value) > LARGEST:
                self._tally.add("unusable", "number too large", line=number, field=field)
                continue
            if at is None:
                at = self._rows.arrival(self._wall_ns() // self._unit_ns)
            self._rows.put(at, channel, value, now)

    def take_unlisted(self) -> list[str]:
        """Return the names without a channel that were new since the last call."""
        names, self._unlisted = list(self._unlisted), {}
        return names

    def _count_unknown(self, series: Series, fields: str) -> None:
        for field, text in fields_of(fields):
            value = value_of(text)
            if field not in series.places and as_number(value, self._states) is not None:
                self._tally.add("unknown")
                name = series.name_of(field)
                if name is not None and len(self._unlisted) < MOST_NAMES:
                    self._unlisted[name] = None

"""SeriesNames: which channels the fields of a series are.

A template makes the name of a channel: `{device}/{field}`.

1. `{field}` is the field's key, `{measurement}` the measurement; any other word in braces is the
   value of the tag of that key.
2. `{device}` is the measurement and the values of all tags in the order of their keys, joined by
   dots: `modbus.pump.1`. Tags that are ignored, and those that the template names, are left out
   of it.
3. A series without a tag that the template names has no channels.

Series repeat, so each is resolved once. As many are remembered as `MOST_SERIES`; more cost time,
and no memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from submerge_client.config.series_names import DEVICE, FIELD, MEASUREMENT, PLACE
from submerge_client.sensors.influx.line_protocol import series_of

MOST_SERIES = 4096


class Series(NamedTuple):
    """What the fields of a series are.

    places : the channel of each field that has one
    before, behind : of the names of its fields; None if it has none
    """

    places: dict[str, int]
    before: str | None
    behind: str

    def name_of(self, field: str) -> str | None:
        """Return the name of a field; None if it has none."""
        return None if self.before is None else f"{self.before}{field}{self.behind}"


class SeriesNames:
    """Finds the channels of series.

    channels : The schema's names, in its order.
    template : As in the rules of this module; `series_names.wrong_with` accepts it.
    ignored : Keys of tags that are no part of a device.
    """

    def __init__(
        self, channels: Sequence[str], *, template: str, ignored: Collection[str] = ()
    ) -> None:
        self._channels = tuple(channels)
        # Text and places take turns, text first.
        self._parts = PLACE.split(template)
        named = self._parts[1::2]
        self._apart = set(ignored) | (set(named) - {FIELD, DEVICE, MEASUREMENT})
        self._known: dict[str, Series] = {}

    def find(self, series: str) -> tuple[Series, bool]:
        """Return a series by its text in a line, and whether it is new here."""
        known = self._known.get(series)
        if known is not None:
            return known, False
        if len(self._known) >= MOST_SERIES:
            self._known.clear()
        known = self._known[series] = self._resolved(*series_of(series))
        return known, True

    def _resolved(self, measurement: str, tags: dict[str, str]) -> Series:
        device = [measurement, *(tags[key] for key in sorted(tags) if key not in self._apart)]
        # The words come last: a tag may have the key of one.
        values = tags | {DEVICE: ".".join(device), MEASUREMENT: measurement, FIELD: ""}
        sides = [""]
        for i, part in enumerate(self._parts):
            if i % 2 and part not in values:
                return Series({}, None, "")
            if i % 2 and part == FIELD:
                sides.append("")
            else:
                sides[-1] += values[part] if i % 2 else part
        before, behind = sides
        end = len(before) + len(behind)
        return Series(
            {
                name[len(before) : len(name) - len(behind)]: place
                for place, name in enumerate(self._channels)
                if len(name) > end and name.startswith(before) and name.endswith(behind)
            },
            before,
            behind,
        )

"""LearnConfig, AlarmsConfig: which rows are learnt, when there is an alarm, and where it goes."""

from __future__ import annotations

import math
import re
from typing import Annotated

from msgspec import Meta

from submerge import UsageError
from submerge.condition import Condition, UnknownChannel
from submerge.protocol.settings import AlarmSettings
from submerge_client.config.alarm_sinks import (
    BrokerConfig,
    Prefix,
    SinkKind,
    SinkTable,
    WebhookConfig,
    sinks_of_others,
)
from submerge_client.config.hints import nearest
from submerge_client.config.links import UplinkConfig
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import (
    SHOWN,
    BadSetting,
    Seconds,
    Section,
    Text,
    refusal,
    shown,
)
from submerge_client.config.spans import NUMBER, SECONDS, seconds

PER = {
    "hour": SECONDS["h"],
    "day": SECONDS["d"],
    "week": 7 * SECONDS["d"],
    "month": SECONDS["y"] / 12,
    "year": SECONDS["y"],
}

OFTEN = re.compile(rf"{NUMBER}false per\s+(.*\S)\s*")

ROWS = re.compile(r"(\d+) rows")

LEAST_BETWEEN = 100
"""Least rows for one false alarm."""

OFF = "off"
"""In place of a rate: no alarms."""

MOST_NAMED = 10
"""Most channels that an error line lists."""

When = Annotated[
    str, Meta(min_length=1, description="a condition in quotes, such as 'rpm > 50'", extra=SHOWN)
]
Span = Annotated[
    str, Meta(min_length=1, description='a time in quotes, such as "12h" or "3d"', extra=SHOWN)
]


class LearnConfig(Section, frozen=True, kw_only=True):
    """Which rows are learnt and scored.

    when : An operating state, such as "rpm > 50"; other rows are ignored. Left out, every row
        counts.
    max_withheld : How long an alarm keeps its rows from being learnt, unless a person decides.
        Raising it keeps a lasting fault out of the model for longer, and a new normal as well.
    """

    when: When | None = None
    max_withheld: Span = "24h"

    def __post_init__(self) -> None:
        _ = self.max_withheld_s

    @property
    def max_withheld_s(self) -> float:
        """`max_withheld` in seconds."""
        return _span("max_withheld", self.max_withheld)

    def condition(self, schema: SchemaConfig) -> Condition | None:
        """Return `when` as a condition on vectors; None if every row counts."""
        if self.when is None:
            return None
        try:
            return Condition.parse(self.when, schema.names)
        except UnknownChannel as error:
            near = nearest(error.name, error.known)
            meant = f"did you mean {shown(near)}?" if near else _channel_list(schema)
            raise BadSetting(("when",), f"{error}; {meant}") from error
        except UsageError as error:
            raise BadSetting(("when",), str(error)) from error


class AlarmsConfig(Section, frozen=True, kw_only=True):
    """When a score is an alarm, and where alarms go.

    at_most : False alarms of this node, "1 false per week", "1 false per 8h" or "1 false per 10000
        rows"; "off" raises no alarms. Raising it raises alarms sooner, and for smaller deviations.
    settle : Time from the group's first scores until limits keep `at_most`; until then they are
        provisional. Raising it arms nodes later, with limits that hold better.
    provisional : Send alarms by provisional limits to the destinations as well: more often than
        `at_most`.
    period_s : Seconds between rows; left out, the sensor's period, or the clock where it has none.
    ndjson : A file that gets a line for each start and each end; "-" is standard output.
    mqtt : Publish this node's alarm state under submerge/v1/{fleet}/alarm/{node}, to the uplink's
        broker or to `broker`. Left out, true if there is `broker`.
    discovery : The topic prefix of Home Assistant's discovery; "" publishes no discovery.
    broker : Another broker in place of the uplink's.
    webhook : tuple of WebhookConfig
    sink : Sinks that other packages add, each with its `kind`.
    """

    at_most: Text = "1 false per week"
    settle: Span = "3d"
    provisional: bool = False
    period_s: Seconds | None = None
    ndjson: Text | None = None
    mqtt: bool | None = None
    discovery: Prefix = "homeassistant"
    broker: BrokerConfig | None = None
    webhook: tuple[WebhookConfig, ...] = ()
    sink: tuple[SinkTable, ...] = ()

    def __post_init__(self) -> None:
        _ = self.often, _span("settle", self.settle), self.sinks

    @property
    def sinks(self) -> tuple[SinkKind, ...]:
        """The settings of sinks that other packages add."""
        return sinks_of_others(self.sink)

    @property
    def often(self) -> tuple[float, bool]:
        """False alarms, 0 if there are to be none at all; whether they are a row, or a second."""
        text = self.at_most.strip()
        if text == OFF:
            return 0.0, False
        # "per 10000 rows" alone is one.
        found = OFTEN.fullmatch(f"1 false {text}" if text.startswith("per ") else text)
        rows = ROWS.fullmatch(found[2]) if found else None
        between = _between(found[2]) if found and not rows else math.nan
        if found is None or (not rows and math.isnan(between)):
            expected = f'"NUMBER false per {"|".join(PER)}, 8h or 10000 rows", or "{OFF}"'
            raise refusal("at_most", expected=expected, got=shown(self.at_most))
        often = float(found[1]) / (float(rows[1]) if rows else between)
        least = LEAST_BETWEEN if rows else PER["hour"]
        if not 0 < often <= 1 / least:
            # Limits are for the maxima of whole blocks of rows.
            most = f"1 false per {LEAST_BETWEEN} rows" if rows else "1 false per hour"
            raise refusal(
                "at_most",
                expected=f"more than 0, and at most {most}",
                got=shown(self.at_most),
                hint=f'"{OFF}" raises no alarms' if not often else "",
            )
        return often, bool(rows)

    def link(self, uplink: UplinkConfig) -> UplinkConfig | None:
        """Return the broker for alarms; None if there is none."""
        if self.broker is not None and self.mqtt is False:
            raise refusal(
                "mqtt",
                expected="true, since there is [alarms.broker]",
                got="false",
                hint="leave [alarms.broker] out, or mqtt",
            )
        if self.broker is not None:
            return self.broker.beside(uplink)
        if not self.mqtt:
            return None
        if uplink.scheme not in ("mqtt", "mqtts"):
            raise refusal(
                "mqtt",
                expected="[alarms.broker] with the url of a broker",
                got=f"nothing, and {uplink.scheme}:// in [uplink]",
            )
        return uplink

    def settings(self, learn: LearnConfig, sensor_period_s: float = 0.0) -> AlarmSettings | None:
        """Return the node's settings; None without alarms."""
        often, by_rows = self.often
        if not often:
            return None
        return AlarmSettings(
            at_most_per_s=0.0 if by_rows else often,
            at_most_per_row=often if by_rows else 0.0,
            settle_s=_span("settle", self.settle),
            max_withheld_s=learn.max_withheld_s,
            period_s=self.period_s or sensor_period_s,
        )


def _between(text: str) -> float:
    """Return the seconds of "week" or "8h"; NaN if it is neither."""
    if text in PER:
        return PER[text]
    try:
        return seconds(text) or math.nan
    except UsageError:
        return math.nan


def _span(key: str, text: str) -> float:
    try:
        span = seconds(text)
    except UsageError as error:
        raise BadSetting((key,), str(error)) from error
    if not span:
        raise refusal(key, expected="a time above 0", got=shown(text))
    return span


def _channel_list(schema: SchemaConfig) -> str:
    names = [channel.name for channel in schema.sensed]
    more = ", ..." if len(names) > MOST_NAMED else ""
    return f"channels are {', '.join(names[:MOST_NAMED])}{more}"

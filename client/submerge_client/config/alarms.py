"""LearnConfig, AlarmsConfig: which rows are learnt, when there is an alarm, and where it goes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import SplitResult, quote, urlsplit

from msgspec import Meta
from msgspec.structs import asdict

from submerge import UsageError
from submerge.condition import Condition, UnknownChannel
from submerge.protocol.settings import AlarmSettings
from submerge_client.config.links import Link, UplinkConfig, check_insecure, is_here
from submerge_client.config.plugins import plugins
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import (
    SHOWN,
    AnyText,
    BadSetting,
    Name,
    Seconds,
    Secret,
    Section,
    Text,
    nearest,
    placed,
    refusal,
    shown,
)
from submerge_client.config.spans import NUMBER, SECONDS, seconds
from submerge_client.config.tomlfile import decoded

if TYPE_CHECKING:
    from submerge.protocol.alarm_status import Alarm
    from submerge_client.alarms import Sink
    from submerge_client.alarms.journal import Journal

PREFIX = r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*"  # the topic prefixes that Home Assistant allows
TOPIC = re.compile(r"/([A-Za-z0-9_-]{1,64})/?")  # the path of a url that is a topic of ntfy

Prefix = Annotated[
    str,
    Meta(
        pattern=rf"^({PREFIX})?\Z",
        description='a topic such as "homeassistant", or ""',
        extra=SHOWN,
    ),
]
Shape = Literal["alertmanager", "ntfy", "json"]


class BrokerConfig(Link, frozen=True, kw_only=True):
    """A broker for alarms or scores only.

    fleet : Left out, the uplink's.
    """

    fleet: Name | None = None

    def beside(self, uplink: UplinkConfig) -> UplinkConfig:
        """Return the broker as a link, with the uplink's fleet by default."""
        return UplinkConfig(**{**asdict(self), "fleet": self.fleet or uplink.fleet})


class WebhookConfig(Section, frozen=True, kw_only=True):
    """A server that gets a POST for each start and each end.

    url : The server for "alertmanager", the topic for "ntfy", any url that takes a POST for "json".
    shape : Alertmanager, a topic of ntfy, or any other. One of "json", "alertmanager", "ntfy".
    token_file : A file that holds a token and nothing else; it is sent as `Authorization: Bearer`.
    ca : Certificates of trusted authorities; left out, the system's.
    insecure : Required for http:// to another machine. Others on the network can then read and
        forge messages.
    link : A page about the node; {node}, {group} and {id} are replaced.
    """

    url: Secret
    shape: Shape = "json"
    token_file: Path | None = None
    ca: Path | None = None
    insecure: bool = False
    link: Secret | None = None

    def __post_init__(self) -> None:
        parts = _parts("url", self.url)
        if self.shape == "ntfy" and not TOPIC.fullmatch(parts.path):
            # Not shown: a topic works as a password.
            raise refusal(
                "url",
                expected="a topic of ntfy, https://host/topic",
                got=f"{origin(self.url)}/...",
                hint="a topic has 1 to 64 of A-Z a-z 0-9 _ -",
            )
        if self.shape == "alertmanager" and parts.query:
            raise refusal(
                "url",
                expected="the server's, such as https://host:9093",
                got="one with a question mark",
            )
        if parts.scheme == "https":
            check_insecure(self.insecure, "https://")
        else:
            self._check_plain(parts)
        if self.link is not None:
            _parts("link", self.link_of("n", "g", "i"))

    def _check_plain(self, parts: SplitResult) -> None:
        if not (self.insecure or is_here(parts.hostname or "")):
            raise refusal(
                "url",
                expected="https://",
                got=origin(self.url),
                hint="say insecure = true if the network is trusted, or use https://",
            )
        if self.ca is not None:
            raise refusal(
                "ca",
                expected="none with http://, which has no TLS",
                got=shown(self.ca),
                hint="leave it out, or use https://",
            )

    @property
    def stays_here(self) -> bool:
        return is_here(urlsplit(self.url).hostname or "")

    @property
    def topic(self) -> str:
        found = TOPIC.fullmatch(urlsplit(self.url).path)
        return found[1] if found else ""

    def link_of(self, node: str, group: str, name: str) -> str:
        """Return the page about one alarm; "" if there is none."""
        link = self.link or ""
        for key, value in {"{node}": node, "{group}": group, "{id}": name}.items():
            link = link.replace(key, quote(value, safe=""))
        return link


SinkTable = dict[AnyText, Any]
"""A table [[alarms.sink]] as it stands in the file: its kind says what else is in it."""


class SinkKind(Section, frozen=True, kw_only=True):
    """The settings of a sink that another package adds, by an entry point (`submerge.sinks`).

    A subclass has `tag_field="kind"`, and the entry point's name as its tag.
    """

    def open(self, journal: Journal, *, name: str, group: str) -> Sink:
        """Return the sink for a group's alarms; `journal` has by `name` what it has delivered."""
        raise NotImplementedError


def sinks_of_others(tables: Sequence[Mapping[str, Any]]) -> tuple[SinkKind, ...]:
    """Return the settings of sinks that other packages add."""
    found = []
    kinds = {entry.name: entry for entry in plugins("submerge.sinks")} if tables else {}
    for i, table in enumerate(tables):
        with placed("sink", i):
            kind = table.get("kind")
            if not isinstance(kind, str) or kind not in kinds:
                words = " or ".join(map(shown, kinds)) or "a kind that an installed package offers"
                got = "nothing" if kind is None else shown(kind)
                raise refusal("kind", expected=words, got=got, hint="install its package")
            section: type[SinkKind] = kinds[kind].load()
            found.append(decoded(dict(table), section))
    return tuple(found)


def origin(url: str) -> str:
    """Return a url's scheme, host and port: paths and queries of webhooks are secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _parts(key: str, url: str) -> SplitResult:
    """Return the parts of a url. An error does not show it: it may be a secret."""
    expected = "https://host/path"
    if key == "link":
        expected += ", with {node}, {group} or {id} where these belong"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:  # a port of 70000, brackets that do not close
        raise refusal(key, expected=expected, got=f"something else ({error})") from None
    if parts.username is not None or parts.password is not None:
        raise refusal(
            key,
            expected=expected,
            got="a url with a user's name",
            hint="put a token into a file that token_file names",
        )
    fine = url.isascii() and url.isprintable() and not set(url) & set(' {}"<>\\^`|')
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment or not fine:
        raise refusal(key, expected=expected, got="something else")
    return parts


PER = {
    "hour": SECONDS["h"],
    "day": SECONDS["d"],
    "week": 7 * SECONDS["d"],
    "month": SECONDS["y"] / 12,
    "year": SECONDS["y"],
}

OFTEN = re.compile(rf"{NUMBER}false per\s+(.*\S)\s*")

ROWS = re.compile(r"(\d+) rows")

LEAST_BETWEEN = 100  # least rows for one false alarm
OFF = "off"  # in place of a rate: no alarms
MOST_NAMED = 10  # most channels that an error line lists

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


class Destinations(Section, frozen=True, kw_only=True):
    """Where alarms go, of a client or of all nodes below an aggregator.

    ndjson : A file that gets a line for each start and each end; "-" is standard output.
    webhook : tuple of WebhookConfig
    sink : Sinks that other packages add, each with its `kind`.
    provisional : Send alarms by provisional limits to the destinations as well: of new groups, more
        often than was promised.
    """

    ndjson: Text | None = None
    webhook: tuple[WebhookConfig, ...] = ()
    sink: tuple[SinkTable, ...] = ()
    provisional: bool = False

    def __post_init__(self) -> None:
        _ = self.sinks

    @property
    def sinks(self) -> tuple[SinkKind, ...]:
        """The settings of sinks that other packages add."""
        return sinks_of_others(self.sink)

    def sends(self, alarm: Alarm) -> bool:
        return not alarm.is_quiet or (self.provisional and not alarm.repeated)


class AlarmsConfig(Destinations, frozen=True, kw_only=True):
    """When a score is an alarm, and where alarms go.

    at_most : False alarms of this node, "1 false per week", "1 false per 8h" or "1 false per 10000
        rows"; "off" raises no alarms. Raising it raises alarms sooner, and for smaller deviations.
    settle : Time from the group's first scores until limits keep `at_most`; until then they are
        provisional. Raising it arms nodes later, with limits that hold better.
    period_s : Seconds between rows; left out, the sensor's period, or the clock where it has none.
    mqtt : Publish this node's alarm state under submerge/v1/{fleet}/alarm/{node}, to `broker`, the
        uplink's broker, or the sensor's. Left out, true if there is `broker`.
    discovery : The topic prefix of Home Assistant's discovery; "" publishes no discovery.
    broker : Another broker in place of the uplink's.
    """

    at_most: Text = "1 false per week"
    settle: Span = "3d"
    period_s: Seconds | None = None
    mqtt: bool | None = None
    discovery: Prefix = "homeassistant"
    broker: BrokerConfig | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.often, _span("settle", self.settle)

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
        if not uplink.is_broker:
            raise refusal(
                "mqtt",
                expected="[alarms.broker] with the url of a broker",
                got=f"nothing, and {uplink.scheme}:// in [uplink]",
            )
        return uplink

    def settings(self, learn: LearnConfig, sensor_period_s: float = 0.0) -> AlarmSettings | None:
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

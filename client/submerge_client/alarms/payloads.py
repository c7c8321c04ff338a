"""Shapes: what is posted to whom: to Alertmanager, to ntfy, or plain JSON to whoever takes it.

Alertmanager knows an alert by its labels, so they stay what they were when it was told the start:
a channel that becomes the guiltiest later does not make another alert of it. It forgets what is
not repeated, and all of it when it is started again: so an open alarm is told every three minutes,
as its documentation asks. It is also told, each time, to take the alarm for open for an hour from
then on: left to itself it would call it resolved after five minutes without a word, which a slow
line has often enough, and then raise it again. A node that died with an open alarm is resolved
an hour later.

ntfy shows a message once for each of its sequence ids (since 2.16): a start that is sent twice
changes nothing on a phone.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import event_facts, headline, rounded, sentence, stamp
from submerge_client.config.alarm_sinks import WebhookConfig, origin

REPEATED_S = 180.0
"""Alertmanager asks for 30 s to 3 min."""

LEASE_S = 3600.0
"""For so long Alertmanager takes an alarm for open without hearing of it."""

PATH = "/api/v2/alerts"

HIGH, NORMAL = 4, 3
"""Priorities of ntfy: a long vibration, and a short one."""


class Request(NamedTuple):
    """What is posted; it does not print: its url may be a secret."""

    url: str
    body: bytes

    def __repr__(self) -> str:
        return f"Request({origin(self.url)}/..., {len(self.body)} bytes)"


Out = TypeVar("Out", covariant=True)


class Payload(Protocol[Out]):
    """How a webhook wants to hear of alarms."""

    repeats_s: float | None
    """How often of one that is open; None: once."""

    timed: bool
    """Whether it compares times with its own clock."""

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Out:
        """Return what tells an event.

        first : the alarm as it was when its start was told
        now : wall time here
        skew : what has to be added to a time of ours to be one of theirs
        """


def shape_of(config: WebhookConfig, group: str) -> Payload[Request]:
    """Return the shape that a webhook asks for."""
    match config.shape:
        case "alertmanager":
            return Alertmanager(config, group)
        case "ntfy":
            return Ntfy(config, group)
        case "json":
            return PlainJson(config, group)


class Alertmanager:
    """Alerts of Prometheus, API v2."""

    repeats_s: float | None = REPEATED_S
    timed = True

    def __init__(self, config: WebhookConfig, group: str) -> None:
        path = urlsplit(config.url).path.rstrip("/")
        self._url = origin(config.url) + (path if path.endswith(PATH) else path + PATH)
        self._config, self._group = config, group

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Request:
        """Return the one alert, open or resolved."""
        alarm, theirs = event.alarm, now + skew
        starts = min(alarm.began + skew, theirs)
        ends = theirs + LEASE_S
        if event.kind == "end":
            # Not in the future, or it would be open until then.
            ends = max(starts, min(alarm.ended + skew, theirs))
        alert: dict[str, Any] = {
            "labels": {
                "alertname": "SubmergeAlarm",
                "node": alarm.node,
                "group": self._group,
                "channel": first.top[0][0] if first.top else "",
                "severity": "warning",
            },
            "annotations": {
                "summary": headline(AlarmEvent("start", alarm)),
                "description": sentence(AlarmEvent("start", alarm)),
                "id": alarm.name,
                "cause": alarm.cause,
                "worst": f"{rounded(alarm.worst):g}",
                "top": ", ".join(f"{channel} {share:.0%}" for channel, share in alarm.top),
                "model": str(alarm.version),
            },
            "startsAt": stamp(starts),
            "endsAt": stamp(ends),
        }
        alert |= _link("generatorURL", self._config, alarm, self._group)
        return Request(self._url, msgspec.json.encode([alert]))


class Ntfy:
    """Messages of ntfy, as its JSON: a header would not bear every channel's name."""

    repeats_s: float | None = None
    timed = False

    def __init__(self, config: WebhookConfig, group: str) -> None:
        self._url = f"{origin(config.url)}/"
        self._config, self._group = config, group

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Request:
        """Return the message; an end makes less noise."""
        begins = event.kind == "start"
        name = f"{event.alarm.name}/{event.kind}".encode()
        message: dict[str, Any] = {
            "topic": self._config.topic,
            "title": headline(event),
            "message": sentence(event),
            "priority": HIGH if begins else NORMAL,
            "tags": ["warning" if begins else "white_check_mark"],
            # A name of ours may have a dot, and be longer than 64.
            "sequence_id": blake2b(name, digest_size=16).hexdigest(),
        }
        message |= _link("click", self._config, event.alarm, self._group)
        return Request(self._url, msgspec.json.encode(message))


class PlainJson:
    """The same object as in a line of NDJSON."""

    repeats_s: float | None = None
    timed = False

    def __init__(self, config: WebhookConfig, group: str) -> None:
        self._config, self._group = config, group

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Request:
        """Return the event; whoever takes it tells two of them apart by `id` and `event`."""
        reported = event_facts(event, self._group)
        reported |= _link("link", self._config, event.alarm, self._group)
        return Request(self._config.url, msgspec.json.encode(reported))


def _link(key: str, config: WebhookConfig, alarm: Alarm, group: str) -> dict[str, str]:
    """The page about an alarm, under a key of its own, if there is one."""
    link = config.link_of(alarm.node, group, alarm.name)
    return {key: link} if link else {}

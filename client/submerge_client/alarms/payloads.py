"""Payloads: the POST for Alertmanager, for ntfy, or plain JSON for any other server.

Alertmanager knows an alert by its labels, so they keep their values from the start: a channel
that gets the largest share later does not make another alert. It forgets alerts that are not
repeated, and all of them at a restart. So an open alarm is posted every three minutes, as its
documentation asks, and each time with an end in an hour. Without that end it would resolve the
alert after five minutes of silence, which a slow line often has, and then raise it again. The
alarm of a node that died is resolved an hour later.

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
"""How long Alertmanager keeps an alarm open without a repetition."""

PATH = "/api/v2/alerts"

HIGH, NORMAL = 4, 3
"""Priorities of ntfy: a long vibration, and a short one."""


class Request(NamedTuple):
    """A POST. Its `repr` leaves out the url, which may be a secret."""

    url: str
    body: bytes

    def __repr__(self) -> str:
        return f"Request({origin(self.url)}/..., {len(self.body)} bytes)"


Out = TypeVar("Out", covariant=True)


class Payload(Protocol[Out]):
    """How one kind of server expects alarms."""

    repeats_s: float | None
    """How often an open alarm is posted again; None: never."""

    timed: bool
    """Whether the server compares times with its own clock."""

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Out:
        """Return the request for an event.

        first : the alarm as it was when its start was delivered
        now : wall time here
        skew : the server's clock minus ours, seconds
        """


def payload_of(config: WebhookConfig, group: str) -> Payload[Request]:
    """Return the payload that a webhook's `shape` names."""
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
        """Return the alert, open or resolved."""
        alarm, theirs = event.alarm, now + skew
        starts = min(alarm.began + skew, theirs)
        ends = theirs + LEASE_S
        if event.kind == "end":
            # Not in the future: the alert would be open until then.
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
    """Messages of ntfy, as JSON: a header cannot hold every channel's name."""

    repeats_s: float | None = None
    timed = False

    def __init__(self, config: WebhookConfig, group: str) -> None:
        self._url = f"{origin(config.url)}/"
        self._config, self._group = config, group

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Request:
        """Return the message; an end has a lower priority."""
        begins = event.kind == "start"
        name = f"{event.alarm.name}/{event.kind}".encode()
        message: dict[str, Any] = {
            "topic": self._config.topic,
            "title": headline(event),
            "message": sentence(event),
            "priority": HIGH if begins else NORMAL,
            "tags": ["warning" if begins else "white_check_mark"],
            # An alarm's name may have a dot and more than 64 characters.
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
        """Return the event; `id` and `event` together are unique."""
        facts = event_facts(event, self._group)
        facts |= _link("link", self._config, event.alarm, self._group)
        return Request(self._config.url, msgspec.json.encode(facts))


def _link(key: str, config: WebhookConfig, alarm: Alarm, group: str) -> dict[str, str]:
    """Return the page about an alarm under `key`, if there is one."""
    link = config.link_of(alarm.node, group, alarm.name)
    return {key: link} if link else {}

"""Webhook: posts each start and each end to one server, and retries until it succeeds.

1. One event at a time: an end never overtakes its start. What is due follows from the newest state.
2. The journal notes an event after the server's success: a kill between the two posts it again.
3. Any other answer, and silence, is retried with full jitter below a ceiling that doubles to
   five minutes: the server or its token may be repaired meanwhile.
4. Times are sent on the server's clock, if its answers have a date: a device's clock may be wrong.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from email.message import Message
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from http.client import HTTPException
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib import request as http
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import msgspec

from submerge import UsageError, __version__
from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Alarm, excess
from submerge.protocol.names import RandomSource
from submerge.protocol.retry import Retry
from submerge_client.alarms.event import event_facts, headline, sentence, stamp
from submerge_client.alarms.journal import Delivered, Journal, undelivered
from submerge_client.config.alarms import WebhookConfig, origin
from submerge_client.logs import say
from submerge_client.memory import SystemEntropy
from submerge_client.uplink.broker import Broker, reason
from submerge_client.uplink.tls import Tls

# Alertmanager knows an alert by its labels, so they keep their values from the start: a channel
# that gets the largest share later does not make another alert. Without that end it would resolve
# the alert after five minutes of silence, which a slow line often has, and then raise it again.


REPEATED_S = 180.0  # Alertmanager asks for 30 s to 3 min
LEASE_S = 3600.0  # how long Alertmanager keeps an alarm open without a repetition

PATH = "/api/v2/alerts"

HIGH, NORMAL = 4, 3  # priorities of ntfy: a long vibration, and a short one


class Request(NamedTuple):
    """A POST. Its `repr` leaves out the url, which may be a secret."""

    url: str
    body: bytes

    def __repr__(self) -> str:
        return f"Request({origin(self.url)}/..., {len(self.body)} bytes)"


Out = TypeVar("Out", covariant=True)


class Payload(Protocol[Out]):
    """How one kind of server expects alarms."""

    repeats_s: float | None  # How often an open alarm is posted again; None: never.
    timed: bool  # whether the server compares times with its own clock

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Out:
        """Return the request for an event; `first`: the alarm as its start was delivered."""


def payload_of(config: WebhookConfig, group: str) -> Payload[Request]:
    kinds = {"alertmanager": Alertmanager, "ntfy": Ntfy, "json": PlainJson}
    return kinds[config.shape](config, group)


class PlainJson:
    """The same object as in a line of NDJSON; the other payloads differ from it."""

    repeats_s: float | None = None
    timed = False

    def __init__(self, config: WebhookConfig, group: str) -> None:
        self._config, self._group = config, group

    def request(self, event: AlarmEvent, first: Alarm, *, now: float, skew: float) -> Request:
        """Return the event; `id` and `event` together are unique."""
        facts = event_facts(event, self._group) | self._link("link", event.alarm)
        return Request(self._config.url, msgspec.json.encode(facts))

    def _link(self, key: str, alarm: Alarm) -> dict[str, str]:
        """Return the page about an alarm under `key`, if there is one."""
        link = self._config.link_of(alarm.node, self._group, alarm.name)
        return {key: link} if link else {}


class Alertmanager(PlainJson):
    """Alerts of Prometheus, API v2."""

    repeats_s = REPEATED_S
    timed = True

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
                "alertname": "SubmergeIncident" if alarm.parts else "SubmergeAlarm",
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
                "worst": excess(alarm.worst),
                "top": ", ".join(f"{channel} {share:.0%}" for channel, share in alarm.top),
                "model": str(alarm.version),
            },
            "startsAt": stamp(starts),
            "endsAt": stamp(ends),
        }
        alert |= self._link("generatorURL", alarm)
        path = urlsplit(self._config.url).path.rstrip("/").removesuffix(PATH) + PATH
        return Request(origin(self._config.url) + path, msgspec.json.encode([alert]))


class Ntfy(PlainJson):
    """Messages of ntfy, as JSON: a header cannot hold every channel's name."""

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
        message |= self._link("click", event.alarm)
        return Request(f"{origin(self._config.url)}/", msgspec.json.encode(message))


TIMEOUT_S = 10.0
LONGEST_PAUSE_S = 3600.0  # the longest pause that a server may ask for


class HttpAnswer(NamedTuple):
    """The outcome of a POST: what is wrong, "" if nothing; the server's wall time and pause."""

    why: str = ""
    at: float | None = None
    pause_s: float = 0.0


class HttpPost:
    """Posts to one webhook; raises UsageError if a file in `config` cannot be used."""

    def __init__(self, config: WebhookConfig) -> None:
        parts = urlsplit(config.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._server = Broker(parts.hostname or "", port)
        self._tls = Tls(config.ca) if parts.scheme == "https" else None
        self._token_file = config.token_file
        self._stamp: tuple[object, ...] | None = None
        self._opener: http.OpenerDirector
        self._renew()
        self._headers()

    def __call__(self, request: Request) -> HttpAnswer:
        """Post, and wait for the answer."""
        try:
            self._renew()
            # The configuration has checked that the url is http:// or https://.
            post = http.Request(  # noqa: S310
                request.url, request.body, self._headers(), method="POST"
            )
            with self._opener.open(post, timeout=TIMEOUT_S) as answer:
                return HttpAnswer("", _time(answer.headers))
        except HTTPError as error:
            with error:
                return HttpAnswer(_refusal(error), _time(error.headers), _pause(error.headers))
        except URLError as error:
            inner = error.reason
            return HttpAnswer(self._why(inner if isinstance(inner, Exception) else OSError(inner)))
        except (OSError, HTTPException, UsageError, ValueError) as error:
            return HttpAnswer(self._why(error))

    def _why(self, error: Exception) -> str:
        if isinstance(error, HTTPException):
            return f"the answer of {self._server} is not HTTP"
        if isinstance(error, ValueError) and not isinstance(error, OSError | UsageError):
            # The error's text may contain the url.
            return f"no request to {self._server} is possible: {type(error).__name__}"
        return reason(error, self._server)

    def _renew(self) -> None:
        """Read the certificates again if their files have changed."""
        stamp = () if self._tls is None else self._tls.stamp()
        if stamp != self._stamp:
            context = None if self._tls is None else self._tls.context()
            self._opener = http.OpenerDirector()
            for handler in (
                http.ProxyHandler(),  # as the environment says
                http.HTTPHandler(),
                http.HTTPSHandler(context=context),
                http.HTTPErrorProcessor(),
                http.HTTPDefaultErrorHandler(),  # rule 1: there is none for redirects
            ):
                self._opener.add_handler(handler)
            self._stamp = stamp

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "User-Agent": f"submerge/{__version__}"}
        if self._token_file is not None:
            headers["Authorization"] = f"Bearer {_token(self._token_file)}"
        return headers


def _token(path: Path) -> str:
    """Return the token in a file. It is read each time, because it may have changed."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        # A decoding error quotes a piece of the token.
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise UsageError(f"token_file must be a file to read, got {path}: {why}") from None
    if not token or not token.isprintable() or " " in token:
        raise UsageError(f"token_file must hold a token and nothing else, got {path}")
    return token


def _refusal(error: HTTPError) -> str:
    if 300 <= error.code < 400:
        where = error.headers.get("Location", "")
        try:
            where = f" to {origin(where)}" if urlsplit(where).netloc else ""
        except ValueError:
            where = ""
        return f"it answers {error.code}: it has moved{where}; put its new url into the settings"
    hints = {
        401: ": is the token right?",
        403: ": may this token post?",
        404: ": is the url right?",
    }
    return f"it answers {error.code}{hints.get(error.code, '')}"


def _time(headers: Message) -> float | None:
    try:
        return parsedate_to_datetime(headers["Date"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _pause(headers: Message) -> float:
    """Return the pause that the server asks for, as seconds or as a date."""
    after = headers.get("Retry-After") or ""
    if after.isdecimal():
        return min(float(after), LONGEST_PAUSE_S)
    try:
        pause = parsedate_to_datetime(after).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(pause, 0.0), LONGEST_PAUSE_S)


PATIENCE_S = 2.0
CAP_S = 300.0
SLACK_S = 60.0  # clocks that differ by less count as equal

LONGEST_WAIT_S = 3600.0

Requested = TypeVar("Requested")


class WebhookDelivery(Generic[Requested]):
    """Decides what is posted next, and when."""

    def __init__(
        self,
        payload: Payload[Requested],
        post: Callable[[Requested], HttpAnswer],
        journal: Journal,
        *,
        name: str,
        where: str,
        kind: str = "webhook",
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        rng: RandomSource | None = None,
    ) -> None:
        self._payload, self._post, self._journal = payload, post, journal
        self._name, self._clock, self._wall = name, clock, wall
        self._kind = kind
        self._where: dict[str, Any] = {kind: where}
        self._rng = SystemEntropy() if rng is None else rng
        self._retry = Retry(PATIENCE_S, CAP_S)
        self._posted_at: dict[str, float] = {}
        self._skew = 0.0
        self._is_second = False
        self._why: str | None = None

    def begin(self, alarms: tuple[Alarm, ...]) -> None:
        """Begin with a state, if this sink is new: only what comes after it is delivered."""
        if self._journal.delivered(self._name) is None:
            self._journal.note(self._name, Delivered.since(alarms))

    def post_due(self, alarms: tuple[Alarm, ...]) -> float:
        """Post the next event that is due; return the seconds until there may be more."""
        if self._retry.tries and self._clock() < self._retry.at:
            return self._retry.at - self._clock()
        delivered = self._journal.delivered(self._name) or Delivered.since(alarms)
        new = undelivered(delivered, alarms)
        if new:
            return self._send(new[0], delivered)
        repeated = self._oldest_open(alarms, delivered)
        if repeated is None or self._payload.repeats_s is None:
            return LONGEST_WAIT_S
        wait = self._last_post(repeated) + self._payload.repeats_s - self._clock()
        if wait > 0:
            return wait
        return self._send(AlarmEvent("start", repeated), delivered, again=True)

    def _oldest_open(self, alarms: tuple[Alarm, ...], delivered: Delivered) -> Alarm | None:
        """Return the open alarm whose last post is the oldest: some servers want repetitions."""
        begun = {each.name for each in delivered.open}
        self._posted_at = {name: at for name, at in self._posted_at.items() if name in begun}
        subjects = delivered.subjects(alarms)
        open_ = (each for each in subjects if each.is_open and each.name in begun)
        return min(open_, key=self._last_post, default=None)

    def _last_post(self, alarm: Alarm) -> float:
        # A new process does not know when the last one posted: it posts at once.
        return self._posted_at.get(alarm.name, -math.inf)

    def _send(self, each: AlarmEvent, delivered: Delivered, *, again: bool = False) -> float:
        """Post an event; return the seconds until there may be more to post."""
        first = delivered.started(each.alarm) or each.alarm
        request = self._payload.request(each, first, now=self._wall(), skew=self._skew)
        answer = self._post(request)
        moved = self._set_clock(answer)
        if answer.why:
            return self._retry_later(answer)
        self._retry.stop()
        if self._why is not None:
            self._why = None
            say(f"alarms reach the {self._kind} again", **self._where)
        if moved and not self._is_second:
            # The server took times that were not on its clock: post once more.
            self._is_second = True
            return 0.0
        self._is_second = False
        self._posted_at[each.alarm.name] = self._clock()
        if not again:
            self._journal.note(self._name, delivered.after(each))
        return 0.0

    def _set_clock(self, answer: HttpAnswer) -> bool:
        """Take over the server's clock; return whether it differs from what was known."""
        if answer.at is None or not self._payload.timed:
            return False
        skew = answer.at - self._wall()
        skew = skew if abs(skew) > SLACK_S else 0.0
        moved = abs(skew - self._skew) > SLACK_S
        self._skew = skew
        return moved

    def _retry_later(self, answer: HttpAnswer) -> float:
        if answer.why != self._why:
            self._why = answer.why
            what = f"alarms do not reach the {self._kind}, trying on"
            say(what, level="warning", **self._where, why=answer.why)
        now = self._clock()
        self._retry.tried(now, self._rng)
        self._retry.at = max(self._retry.at, now + answer.pause_s)
        return self._retry.at - now


class Webhook:
    """A sink that runs a `WebhookDelivery` in a thread of its own."""

    def __init__(self, delivery: WebhookDelivery[Any], name: str) -> None:
        self._delivery = delivery
        self._alarms: tuple[Alarm, ...] | None = None
        self._changed = threading.Condition()
        self._closing = self._idle = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def update(self, alarms: tuple[Alarm, ...]) -> None:
        """Have the newest state delivered; returns at once."""
        # Here, and not in the thread: the state may have changed by the time that it runs.
        self._delivery.begin(alarms)
        with self._changed:
            self._alarms, self._idle = alarms, False
            self._changed.notify_all()

    def close(self, patience_s: float) -> None:
        """Wait at most `patience_s` for what is on its way; the next start sends the rest."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._alarms is None, patience_s)
            self._closing = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    return
                alarms, self._idle = self._alarms, False
            wait = LONGEST_WAIT_S
            if alarms is not None:
                try:
                    wait = self._delivery.post_due(alarms)
                except Exception as error:  # no thread dies in silence
                    wait = CAP_S
                    why = f"{type(error).__name__}: {error}"
                    say("a bug in the webhook, please report it", level="error", why=why)
            if wait <= 0:
                continue
            with self._changed:
                if alarms is self._alarms and not self._closing:
                    self._idle = True
                    self._changed.notify_all()
                    self._changed.wait(min(wait, LONGEST_WAIT_S))

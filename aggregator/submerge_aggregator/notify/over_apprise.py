"""Apprise: one service that it knows (Slack, e-mail, ...) as a sink of alarms.

1. Only services on the network: nothing here runs a program, writes a file, or is third-party
   code that Apprise found. Services that Apprise adds later are refused until they are known.
2. Certificates are verified, redirects are not followed, and a service without TLS has to be on
   this machine.
3. The logs of Apprise and of the HTTP library are closed: they show URLs. Of an answer only the
   status code is used, of an exception only its type.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import threading
from typing import Any, NamedTuple

from submerge import UsageError
from submerge.protocol.alarm_changes import AlarmEvent
from submerge.protocol.alarm_status import Alarm
from submerge_aggregator.notify.urls import SETTING, SecretUrl
from submerge_client.alarms.event import headline, sentence
from submerge_client.alarms.webhook import HttpAnswer
from submerge_client.config.links import is_here

LIMIT_S = 60.0  # longest wait for a service; the delivery then tries again later

SOCKETS = {"amqp", "aprs", "deltachat", "email", "growl", "irc", "mqtt", "rsyslog", "smpp", "xmpp"}
"""Apprise's plugins that use the network, but not HTTP."""

NATIVE = "apprise.plugins."

LOUD = ("apprise", "urllib3", "requests", "slixmpp", "smpplib", "gntp", "paho")
"""Loggers of libraries that may show a URL."""

STATUS = re.compile(r"\berror=(\d{3})\b")


class AppriseMessage(NamedTuple):
    """A message; `key` is the same for a second try of it."""

    key: str
    title: str
    body: str
    kind: str


class AppriseMessages:
    """The `Payload` of messages through Apprise: each event once, with the time at the node."""

    repeats_s: float | None = None
    timed = False

    def request(
        self, event: AlarmEvent, first: Alarm, *, now: float, skew: float
    ) -> AppriseMessage:
        """Return the message; a start is a warning, an end is a success."""
        kind = "warning" if event.kind == "start" else "success"
        key = f"{event.alarm.name}/{event.kind}"
        return AppriseMessage(key, headline(event), sentence(event), kind)


class AppriseService:
    """Sends messages to one service, and waits at most `limit_s`."""

    # A message that takes longer goes on in its thread, and is not sent a second time meanwhile.
    def __init__(self, service: Any, *, limit_s: float = LIMIT_S) -> None:
        self._service, self._limit_s = service, limit_s
        self._running: _Call | None = None

    def __call__(self, message: AppriseMessage) -> HttpAnswer:
        while True:
            call = self._running = self._running or _Call(self._service, message)
            if not call.ended.wait(self._limit_s):
                return HttpAnswer(f"it has not answered in {self._limit_s:g} s")
            self._running = None
            if call.key == message.key:
                return call.answer


def open_service(url: SecretUrl) -> Any:
    """Return the service of a URL; nothing is sent."""
    try:
        apprise: Any = importlib.import_module("apprise")
    except ImportError:
        raise UsageError(
            "alarms.apprise: expected Apprise, got no such package; pip install 'submerge[notify]'"
        ) from None
    _close_logs()
    asset = apprise.AppriseAsset(
        app_id="submerge",
        app_desc="submerge alarms",
        storage_mode="memory",
        http_redirects=False,
        image_url_mask="",
        pgp_autogen=False,
        pem_autogen=False,
    )
    plugin = service = None
    try:
        parsed = apprise.plugins.url_to_dict(url.reveal())
        if parsed is not None:
            plugin = apprise.NotificationManager()[parsed["schema"]]
            if is_on_network(plugin):
                service = apprise.Apprise.instantiate(url.reveal(), asset=asset)
    except Exception as error:  # rule 3: its words may have the URL in them
        hint = f"Apprise fails with {type(error).__name__}"
        raise _refusal(url, "a URL that Apprise takes", hint) from None
    if plugin is None:
        raise _refusal(url, "a URL that Apprise knows", "its documentation has all of them")
    if not is_on_network(plugin):
        raise _refusal(url, "a service on the network", "Apprise runs this one on this machine")
    if service is None:
        hint = "is it complete, and is the package installed that Apprise needs for it?"
        raise _refusal(url, "a URL that Apprise takes", hint)
    if not service.verify_certificate:
        raise _refusal(url, "a service whose certificate is verified", "take verify=no out")
    if not (_has_tls(service) or is_here(service.host or "")):
        raise _refusal(url, "a service with TLS", _tls_hint(service))
    service.redirects, service.retry = False, 0
    return service


def is_on_network(plugin: type) -> bool:
    """Return whether a plugin of Apprise uses the network, and nothing else of this machine."""
    if not plugin.__module__.startswith(NATIVE):
        return False
    for kind in plugin.__mro__:
        name = kind.__module__.removeprefix(NATIVE).partition(".")[0]
        if kind.__module__.startswith(NATIVE) and name != "base":
            package = NATIVE + name
            modules = [
                module
                for known, module in list(sys.modules.items())
                if known == package or known.startswith(f"{package}.")
            ]
            if name in SOCKETS or any(hasattr(module, "requests") for module in modules):
                return True
    return False


class _Call:
    """One message under way, in a thread of its own that ends with the process."""

    def __init__(self, service: Any, message: AppriseMessage) -> None:
        self.key, self.ended = message.key, threading.Event()
        self.answer = HttpAnswer("it does not take the message")
        self._service, self._message = service, message
        threading.Thread(target=self._run, name="apprise", daemon=True).start()

    def _run(self) -> None:
        message, seen = self._message, _codes.seen
        try:
            taken = self._service.notify(
                title=message.title, body=message.body, notify_type=message.kind, body_format="text"
            )
            if taken:
                self.answer = HttpAnswer()
            elif hasattr(seen, "code"):
                self.answer = HttpAnswer(f"it answers {seen.code}")
        except Exception as error:  # rule 3
            self.answer = HttpAnswer(f"Apprise fails with {type(error).__name__}")
        finally:
            self.ended.set()


class _Codes(logging.Handler):
    """Keeps the status code that Apprise's log gives in a thread; the rest is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        found = STATUS.search(record.getMessage())
        if found is not None:
            self.seen.code = found[1]


_codes = _Codes()


def _close_logs() -> None:
    for name in LOUD:
        logger = logging.getLogger(name)
        logger.handlers[:] = [_codes if name == "apprise" else logging.NullHandler()]
        logger.propagate = False
        logger.setLevel(logging.WARNING)


def _has_tls(service: Any) -> bool:
    if hasattr(service, "secure_mode"):  # e-mail: STARTTLS may follow from the host
        return bool(service.secure_mode != "insecure")
    return service.schema not in _names(service.protocol)


def _tls_hint(service: Any) -> str:
    names = [f"{name}://" for name in _names(service.secure_protocol)]
    return f"use {' or '.join(names)}" if names else "it has none: take [[alarms.webhook]]"


def _names(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _refusal(url: SecretUrl, expected: str, hint: str) -> UsageError:
    return UsageError(f"{SETTING}: expected {expected}, got {url!r}; {hint}")

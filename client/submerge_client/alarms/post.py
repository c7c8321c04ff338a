"""HttpPost: one POST over HTTP or HTTPS, and its outcome in words for people.

A client without webhooks does not load this module: HTTP and TLS take 2 to 3 MiB of memory.

1. No redirect is followed: a token is meant for one host, and a POST would become a GET.
2. Reasons contain no url, no token and no answer of a server.
3. A slow server costs `TIMEOUT_S` for each read, and a thread.
"""

from __future__ import annotations

import time
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib import request as http
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from submerge import UsageError, __version__
from submerge_client.alarms.payloads import Request
from submerge_client.config.alarm_sinks import WebhookConfig, origin
from submerge_client.uplink.broker import Broker, reason
from submerge_client.uplink.tls import Tls

TIMEOUT_S = 10.0
LONGEST_PAUSE_S = 3600.0
"""The longest pause that a server may ask for."""


class HttpAnswer(NamedTuple):
    """The outcome of a POST.

    why : what is wrong, for people; "" after a success
    at : wall time at the server, if it has sent it
    pause_s : how long it asks us to wait
    """

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
    """Say what an error status means."""
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

"""Posting: one POST over HTTP or HTTPS, and what came of it in words for people.

Whoever configures no webhook does not load this: HTTP and TLS are 2 to 3 MiB of memory.

1. No redirect is followed: a token is meant for one host, and a POST would become a GET.
2. Urls, tokens and what a server answers stay out of the reasons that are given.
3. A server that takes its time costs `TIMEOUT_S` for each word that it says, and a thread.
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
"""That a server may ask for."""


class HttpAnswer(NamedTuple):
    """What came of a POST.

    why : what is wrong, for people; "" where nothing is
    at : wall time at the server, if it said so
    pause_s : how long it wants to be left alone
    """

    why: str = ""
    at: float | None = None
    pause_s: float = 0.0


class HttpPost:
    """Posts to one webhook.

    Parameters
    ----------
    config : WebhookConfig

    Raises
    ------
    UsageError
        If a file that it names cannot be used.
    """

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
            # Of http:// or https://, as its section has checked.
            asked = http.Request(  # noqa: S310
                request.url, request.body, self._headers(), method="POST"
            )
            with self._opener.open(asked, timeout=TIMEOUT_S) as answer:
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
            return f"what {self._server} says is not HTTP"
        if isinstance(error, ValueError) and not isinstance(error, OSError | UsageError):
            # Its words may have the url in them.
            return f"{self._server} cannot be asked: {type(error).__name__}"
        return reason(error, self._server)

    def _renew(self) -> None:
        """Read certificates again if they are others."""
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
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"submerge/{__version__}",
        }
        if self._token_file is not None:
            headers["Authorization"] = f"Bearer {_token(self._token_file)}"
        return headers


def _token(path: Path) -> str:
    """The token that a file holds; it is read each time, for it may be another by then."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        # A decoding error shows a piece of what it could not decode.
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise UsageError(f"token_file must be a file to read, got {path}: {why}") from None
    if not token or not token.isprintable() or " " in token:
        raise UsageError(f"token_file must hold a token and nothing else, got {path}")
    return token


def _refusal(error: HTTPError) -> str:
    """What an answer other than yes means."""
    if 300 <= error.code < 400:
        where = error.headers.get("Location", "")
        try:
            where = f" to {origin(where)}" if urlsplit(where).netloc else ""
        except ValueError:
            where = ""
        return f"it answers {error.code}: it has moved{where}; put its new url into the settings"
    said = {401: ": is the token right?", 403: ": may this token?", 404: ": is the url right?"}
    return f"it answers {error.code}{said.get(error.code, '')}"


def _time(headers: Message) -> float | None:
    try:
        return parsedate_to_datetime(headers["Date"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _pause(headers: Message) -> float:
    """How long the server wants to be left alone, in seconds or until a time."""
    asked = headers.get("Retry-After") or ""
    if asked.isdecimal():
        return min(float(asked), LONGEST_PAUSE_S)
    try:
        pause = parsedate_to_datetime(asked).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(pause, 0.0), LONGEST_PAUSE_S)

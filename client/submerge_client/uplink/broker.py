"""Broker: where it is, what goes to it, and in words for people why the way there is closed."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from typing import NamedTuple

from submerge import UsageError
from submerge_client.uplink.tls import Tls


@dataclass(frozen=True, slots=True)
class Broker:
    """Where an MQTT broker is, and as whom to come; it prints as `host:port`."""

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Publication(NamedTuple):
    """What goes out; a broker keeps the newest `retain`ed one for those that come later."""

    topic: str
    data: bytes
    retain: bool


class Parting(Exception):
    """A reason to end a connection, in words for people."""


def overhead(topic: str) -> int:
    """Return the bytes of a publication beside its payload, at most."""
    return len(topic.encode()) + 2 + 2 + 5  # the topic's length, a number, and the header


def reason(error: Exception, broker: Broker) -> str:
    """Return in words for people why a connection ended, or came to none."""
    match error:
        case Parting() | UsageError():
            return str(error)
        case socket.gaierror():
            return f"no host {broker.host!r} is known: {error.strerror}"
        case ConnectionRefusedError():
            return f"nobody listens on {broker}"
        case TimeoutError():
            return f"{broker} does not answer"
        case ssl.SSLCertVerificationError():
            return f"the certificate of {broker} is not to be trusted: {error.verify_message}"
        case OSError():
            return f"{broker}: {error.strerror or error}"
        case _:
            return f"{type(error).__name__}: {error}"

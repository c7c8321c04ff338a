"""Broker: an MQTT broker's address, what is published there, why it parted; without paho."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.uplink.tls import Tls, password_of, tls_of


@dataclass(frozen=True, slots=True)
class Broker:
    """The address of an MQTT broker, and credentials; it prints as `host:port`."""

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def broker_of(link: Link, kit: Path | None = None) -> Broker:
    """Return the broker of a link, with its credentials; `kit` as in `tls_of`."""
    return Broker(link.host, link.port, link.username, password_of(link), tls_of(link, kit))


class Publication(NamedTuple):
    """A message to publish. A broker keeps the newest `retain`ed one for later subscribers."""

    topic: str
    data: bytes
    retain: bool


class Parting(Exception):
    """A reason to end a connection, in words for people."""


def overhead(topic: str) -> int:
    """Return the bytes of a publication beside its payload, at most."""
    return len(topic.encode()) + 2 + 2 + 5  # the topic's length, a number, and the header


def reason(error: Exception, broker: Broker) -> str:
    """Return why a connection ended or failed, in words for people."""
    match error:
        case Parting() | UsageError():
            return str(error)
        case socket.gaierror():
            return f"no host {broker.host!r} is known: {error.strerror}"
        case ConnectionRefusedError():
            return f"nothing listens on {broker}"
        case TimeoutError():
            return f"{broker} does not answer"
        case ssl.SSLCertVerificationError():
            return f"the certificate of {broker} is not trusted: {error.verify_message}"
        case OSError():
            return f"{broker}: {error.strerror or error}"
        case _:
            return f"{type(error).__name__}: {error}"

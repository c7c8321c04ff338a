"""Broker: an MQTT broker's address, what is published there, why it parted; without paho."""

from __future__ import annotations

import base64
import json
import math
import os
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.uplink.tls import Tls, password_of, tls_of

COMMAND_S = 10.0  # how long a program may take to print a password


class Login(NamedTuple):
    """A name and a password, and when that ends, Unix seconds."""

    username: str | None
    password: str | None
    until: float = math.inf


@dataclass(frozen=True, slots=True)
class Broker:
    """The address of an MQTT broker, and credentials; it prints as `host:port`."""

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls | None = None
    command: tuple[str, ...] = field(default=(), repr=False)  # prints the password
    path: str = ""  # of a WebSocket

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def login(self) -> Login:
        """Return what a connection says of who we are; runs the command, if there is one."""
        if not self.command:
            return Login(self.username, self.password)
        password = printed(self.command)
        return Login(self.username, password, expiry(password))


def broker_of(link: Link, kit: Path | None = None) -> Broker:
    """Return the broker of a link, with its credentials; `kit` as in `tls_of`."""
    known = link.username, password_of(link), tls_of(link, kit)
    return Broker(link.host, link.port, *known, link.password_command, link.path)


def printed(command: tuple[str, ...]) -> str:
    """Return the line that a program prints. What it writes to standard error is not caught."""
    name = f"password_command ({command[0]})"
    try:
        # The command is the operator's own, and no shell reads it.
        program = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        out, _ = program.communicate(timeout=COMMAND_S)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)  # and what it has started
        program.communicate()
        raise Parting(f"{name} printed no password within {COMMAND_S:g} s") from None
    except OSError as error:
        raise Parting(f"{name} cannot be run: {error.strerror}") from error
    text, status = out.decode("utf-8", "replace").rstrip("\r\n"), program.returncode
    if status or not text or "\n" in text:
        got = f"status {status}" if status else f"{len(text.splitlines())} lines"
        raise Parting(f"{name}: expected one line, the password, got {got}")
    return text


def expiry(password: str) -> float:
    """Return when a token ends, Unix seconds: a JWT's `exp`, the `se` of a SAS; else infinity."""
    if found := re.search(r"^SharedAccessSignature .*\bse=(\d{1,15})\b", unquote(password)):
        return float(found[1])
    parts = password.split(".")
    if len(parts) != 3:
        return math.inf
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return math.inf  # it only looks like a token


class Publication(NamedTuple):
    """A message to publish. A broker keeps the newest `retain`ed one for later subscribers."""

    topic: str
    data: bytes
    retain: bool


class Parting(Exception):
    """A reason to end a connection, in words for people."""


class BrokerLimits(NamedTuple):
    """What a broker that speaks MQTT 5 says of itself as it lets a client in."""

    window: int = 20  # unacknowledged messages
    largest: float = math.inf
    qos: int = 2
    retains: int = 1

    @classmethod
    def of(cls, properties: Any, window: int) -> BrokerLimits:
        """Return the limits in a CONNACK, which says none that is the protocol's own."""
        return cls(
            min(window, getattr(properties, "ReceiveMaximum", window)),
            getattr(properties, "MaximumPacketSize", math.inf),
            getattr(properties, "MaximumQoS", 2),
            getattr(properties, "RetainAvailable", 1),
        )

    def refusal(self, publication: Publication) -> str | None:
        """Return why a broker would hang up at a message, or None."""
        size = len(publication.data) + overhead(publication.topic)
        if size > self.largest:
            most = f"max_message_bytes = {self.largest:.0f} at both ends"
            return f"takes messages of {self.largest:.0f} bytes at most, got {size}: set {most}"
        if publication.retain and not self.retains:
            return "keeps no retained messages, which nodes need"
        return None if self.qos else "acknowledges no messages (QoS 1), which nodes need"


def words(code: Any, properties: Any) -> str:
    """Return a reason code of MQTT, and the reason that a broker adds in its own words."""
    own = getattr(properties, "ReasonString", "")
    return f"{str(code).lower()} ({own})" if own else str(code).lower()


AT_ONCE = 8  # topics of one subscription: AWS IoT Core takes no more


def parts_of(topics: Sequence[str]) -> list[Sequence[str]]:
    """Return topics as they are subscribed to."""
    return [topics[i : i + AT_ONCE] for i in range(0, len(topics), AT_ONCE)]


def overhead(topic: str) -> int:
    """Return the bytes of a publication beside its payload, at most."""
    # The topic's length, a number, no properties, and the header.
    return len(topic.encode()) + 2 + 2 + 1 + 5


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

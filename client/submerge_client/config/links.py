"""Links: the address of another program, and what protects the connection.

A url without TLS needs `insecure = true`: on an open link others can read summaries, and whatever
they write there can reach the model.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

from submerge_client.config.sections import (
    AnyText,
    BadSetting,
    Name,
    Seconds,
    Secret,
    Section,
    Text,
    Whole,
    refusal,
    shown,
)
from submerge_client.config.sizes import GRPC_LIMIT, MQTT_LIMIT

PORTS = {"grpc": 8470, "grpcs": 8470, "mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}

BROKERS = ("mqtt", "mqtts", "ws", "wss")
"""To a broker, as it is or inside a WebSocket."""


class Address(NamedTuple):
    """The parts of a url; the host of `memory://name` is the name. A WebSocket has a path."""

    scheme: str
    host: str
    port: int
    path: str = ""


class Endpoint(NamedTuple):
    """Where a server listens; port 0 is any free one."""

    host: str
    port: int


class Link(Section, frozen=True, kw_only=True):
    """A url, and how both ends identify each other.

    url : `mqtt://host:port`, or `mqtts://` with TLS. Where only the ports of the Web are open,
        `ws://host:port/path`, or `wss://`; without a path it is /mqtt.
    insecure : Required for a url without TLS. Others on the network can then read and forge
        messages.
    ca : With TLS, for which a kit is enough. Certificates of trusted authorities; left out, the
        system's.
    cert, key : This node's own certificate and its key.
    username : For a broker that asks for a password.
    password_file : A file that holds the password and nothing else.
    password_command : A program that prints the password, and its arguments; no shell reads them.
        It is run for each connection, and again before a token (JWT, SAS) that it has printed ends.
    alpn : The protocol to ask for, where a broker shares its port with others: "mqtt",
        "x-amzn-mqtt-ca".
    """

    schemes: ClassVar[tuple[str, ...]] = BROKERS

    url: Text
    insecure: bool = False
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    username: Text | None = None
    password_file: Path | None = None
    password_command: tuple[Secret, ...] = ()
    alpn: Text | None = None

    def __post_init__(self) -> None:
        address_of(self.url, self.schemes)
        self._check_tls()
        check_pair(self.cert, self.key)
        for name in ("username", "alpn"):
            given = getattr(self, name)
            if given is not None and not (self.is_broker and (self.tls or name == "username")):
                raise refusal(
                    name,
                    expected=f"none with {self.scheme}://",
                    got=shown(given),
                    hint="leave it out: there a node is known by its certificate"
                    if name == "username"
                    else "leave it out: it is a part of TLS",
                )
        ways = ("password_file", self.password_file), ("password_command", self.password_command)
        given = [name for name, way in ways if way]
        if given and self.username is None:
            raise refusal("username", expected=f"one beside {given[0]}", got="nothing")
        if len(given) == 2:
            raise refusal(given[1], expected=f"none beside {given[0]}", got="both")

    def _check_tls(self) -> None:
        if self.tls:
            check_insecure(self.insecure, "a url with TLS")
            return
        secure = f"{self.scheme}s://"
        if self.scheme != "memory" and not self.insecure:
            raise refusal(
                "url",
                expected=f"a url with TLS, {secure}",
                got=shown(self.url),
                hint="say insecure = true if the network is trusted,"
                f" or use {secure} and a kit, or ca, cert and key",
            )
        for name in ("ca", "cert", "key"):
            if getattr(self, name) is not None:
                raise refusal(
                    name,
                    expected=f"none with {self.scheme}://, which has no TLS",
                    got=shown(getattr(self, name)),
                    hint="leave it out" + (f", or use {secure}" if secure in _TLS else ""),
                )

    @property
    def scheme(self) -> str:
        """`grpc`, `grpcs`, one of `BROKERS`, or `memory`."""
        return address_of(self.url, self.schemes).scheme

    @property
    def host(self) -> str:
        """A name or an address, without brackets."""
        return address_of(self.url, self.schemes).host

    @property
    def port(self) -> int:
        """The url's port, or the scheme's default; 0 in memory."""
        return address_of(self.url, self.schemes).port

    @property
    def path(self) -> str:
        """Of a WebSocket; empty without one."""
        return address_of(self.url, self.schemes).path

    @property
    def is_broker(self) -> bool:
        return self.scheme in BROKERS

    @property
    def stays_here(self) -> bool:
        """Whether nothing of it leaves this machine."""
        return is_here(self.host)

    @property
    def takes_kit(self) -> bool:
        """Whether the node's kit protects it: it has TLS, and names no files."""
        return self.tls and (self.ca, self.cert) == (None, None)

    @property
    def tls(self) -> bool:
        """Whether it is encrypted, and the other end proves its name."""
        return f"{self.scheme}://" in _TLS


class UplinkConfig(Link, frozen=True, kw_only=True):
    """The link to a parent.

    url : `grpc://host:port`, or `mqtt://host:port` of a broker that the parent listens on; with TLS
        `grpcs://` or `mqtts://`. Default ports: 8470, 1883, with TLS 8470, 8883. `ws://` and
        `wss://` (80, 443) reach a broker where only the ports of the Web are open.
    fleet : MQTT topics begin with `submerge/v1/{fleet}/`: fleets on one broker need different ones.
    max_message_bytes : Most bytes of a message; left out, 122880 on MQTT and 4194304 on gRPC. Raise
        it only as far as broker and parent do: a larger message never arrives.
    columns : "i8" sends the weaker directions in a quarter of the bytes, and coarser. A narrow
        group sends its whole scatter, and no directions.
    """

    schemes: ClassVar[tuple[str, ...]] = ("grpc", "grpcs", *BROKERS, "memory")

    fleet: Name = "default"
    max_message_bytes: Whole | None = None
    columns: Literal["f32", "i8"] = "f32"

    @property
    def limit(self) -> int:
        """Most bytes of a message; by default 120 KiB on MQTT, 4 MiB elsewhere."""
        if self.max_message_bytes is not None:
            return self.max_message_bytes
        return MQTT_LIMIT if self.is_broker else GRPC_LIMIT


class Served(Section, frozen=True, kw_only=True):
    """A server of this aggregator, and what protects it.

    address : host:port; 0.0.0.0 is every network of this machine.
    insecure : Serve without TLS.
    cert, key : The server's certificate and key; left out, those of the node's kit.
    ca : Certificates of these authorities are accepted.
    """

    address: AnyText
    insecure: bool = False
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None

    def __post_init__(self) -> None:
        _ = self.endpoint
        check_pair(self.cert, self.key)
        if self.cert is not None:
            check_insecure(self.insecure, "a certificate")
        elif self.ca is not None:
            raise refusal(
                "ca",
                expected="none without cert and key: there is no TLS",
                got=shown(self.ca),
                hint="leave it out, or name both",
            )

    @property
    def endpoint(self) -> Endpoint:
        return endpoint_of(self.address)

    @property
    def stays_here(self) -> bool:
        """Whether only programs of this machine reach it."""
        return is_here(self.endpoint.host)


class RetryConfig(Section, frozen=True, kw_only=True):
    """[advanced]: how a node waits for its parent; for tests, the demo and benchmarks.

    patience_s : How long an answer may take.
    cap_s : The longest wait between two tries.
    """

    patience_s: Seconds = 10.0
    cap_s: Seconds = 300.0


_TLS = ("grpcs://", "mqtts://", "wss://")


def address_of(url: str, schemes: tuple[str, ...]) -> Address:
    """Return the parts of a url; raises BadSetting if it is no url, or has another scheme."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:  # a port of 70000, brackets that do not close
        raise _no_url(url, schemes, str(error)) from None
    if parts.scheme not in schemes:
        raise _no_url(url, schemes)
    if parts.username is not None or parts.password is not None:
        # The url is not shown: it would end up in a log.
        raise refusal(
            "url",
            expected="a host and a port",
            got="a user's name as well",
            hint="put it into username, and the password into a file that password_file names",
        )
    webs = parts.scheme in ("ws", "wss")
    path = parts.path.rstrip("/")
    if not parts.hostname or parts.query or parts.fragment or (path and not webs):
        raise _no_url(url, schemes)
    if parts.scheme == "memory":
        return Address("memory", parts.netloc, 0)
    if port == 0:
        raise _no_url(url, schemes, "there is no port 0")
    path = path or ("/mqtt" if webs else "")
    return Address(parts.scheme, parts.hostname, port or PORTS[parts.scheme], path)


def endpoint_of(address: str) -> Endpoint:
    """Return the parts of `host:port`, or of `[::1]:port`; BadSetting if it is something else."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.netloc != address or "@" in address:
        raise refusal(
            "address", expected="host:port, as in 0.0.0.0:8470 or [::]:8470", got=shown(address)
        )
    return Endpoint(host, port)


def check_pair(cert: Path | None, key: Path | None) -> None:
    """Refuse a certificate without its key, and a key without its certificate."""
    if (cert is None) != (key is None):
        missing, there = ("cert", "key") if cert is None else ("key", "cert")
        raise refusal(missing, expected=f"the file that belongs to {there}", got="nothing")


def check_insecure(insecure: bool, what: str) -> None:
    """Refuse `insecure` where it has no effect."""
    if insecure:
        raise refusal(
            "insecure",
            expected=f"false with {what}",
            got="true",
            hint="leave it out: certificates are checked all the same",
        )


def _no_url(url: str, schemes: tuple[str, ...], why: str = "") -> BadSetting:
    forms = [
        f"{scheme}://host:port{'/path' if scheme.startswith('ws') else ''}"
        for scheme in schemes
        if scheme != "memory"
    ]
    got = "a url with a user's name" if "@" in url else shown(url)
    return refusal("url", expected=" or ".join(forms), got=got + (f" ({why})" if why else ""))


def is_here(host: str) -> bool:
    """Return whether messages to a host stay on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

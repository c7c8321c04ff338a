"""Connections, step by step, with an explanation of the step that fails."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from submerge.protocol.names import SERVER_DOMAIN
from submerge.protocol.permission import Permission
from submerge_client.config.links import Link
from submerge_client.uplink.tls import ParentName, Tls, alternatives, shown_by
from submerge_files.console.units import in_words, moment
from submerge_operate.doctor.findings import Finding, warning

PATIENCE_S = 5.0
"""Seconds for each step."""


class Unreached(Exception):
    """A connection failed, with a message and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


class TurnedAway(Unreached):
    """The other end answers, but refuses this node."""


class Connected(NamedTuple):
    """Time to connect, and the other end's certificate."""

    took_s: float
    peer: dict[str, Any]


def connect(link: Link, tls: Tls | None, end: str) -> Connected:
    """Connect, up to TLS; `end`: the other end's node name, for hints."""
    at, host = f"{link.host}:{link.port}", link.host
    began = time.monotonic()
    try:
        with socket.create_connection((host, link.port), timeout=PATIENCE_S) as bare:
            if tls is None:
                return Connected(time.monotonic() - began, {})
            context = tls.context()
            if not is_broker(link):
                context.set_alpn_protocols(["h2"])
            name = host if is_broker(link) else _name_of(link, tls, end)
            with context.wrap_socket(bare, server_hostname=name) as safe:
                if not is_broker(link) and safe.selected_alpn_protocol() != "h2":
                    raise _no_grpc(at)
                return Connected(time.monotonic() - began, safe.getpeercert() or {})
    except socket.gaierror as error:
        raise Unreached(
            f"unknown host {host!r}: {error.strerror}",
            "is the name right? is there a network? getent hosts " + host,
        ) from error
    except ssl.SSLCertVerificationError as error:
        message = f"the certificate of {at}: {error.verify_message}"
        raise Unreached(message, _hint(error, host, end)) from error
    except ssl.SSLError as error:
        if "NO_APPLICATION_PROTOCOL" in (error.reason or ""):
            raise _no_grpc(at) from error
        raise Unreached(
            f"TLS with {at} failed: {error.reason or error}",
            "is the port right, and does it use TLS?",
        ) from error
    except ConnectionRefusedError as error:
        raise Unreached(f"nothing listens on {at}", "is it running? is the port right?") from error
    except TimeoutError as error:
        raise Unreached(
            f"{at} does not answer in {PATIENCE_S:g} s", "a firewall? ping it from here"
        ) from error
    except OSError as error:
        raise Unreached(
            f"{at}: {error.strerror or error}", "is there a network? ip route"
        ) from error


def _name_of(link: Link, tls: Tls, parent: str) -> str:
    """Return the name that a parent proves: its own, or its host's (`uplink/parent_name.py`)."""
    expected = ParentName(parent, link.host, link.port, tls).expected
    shown = shown_by(link.host, link.port, tls) if expected else {}
    return expected if Permission.of(alternatives(shown, "URI")) else link.host


def without_role(link: Link, tls: Tls | None, way: Connected, parent: str) -> Iterator[Finding]:
    """Warn if a parent's certificate is from before there were roles, and ours is not."""
    if tls is None or is_broker(link) or Permission.of(alternatives(way.peer, "URI")):
        return
    if ParentName(parent, link.host, link.port, tls).expected:
        yield warning(
            "certificate",
            f"that of {parent} has no role, so only its host name can be checked",
            f"submerge pki renew {parent} --role aggregator",
        )


def ending_soon(link: Link, way: Connected, now: float) -> Iterator[Finding]:
    """Warn if the other end's certificate ends soon."""
    if not way.peer:
        return
    begins, until = (
        float(ssl.cert_time_to_seconds(str(way.peer[each]))) for each in ("notBefore", "notAfter")
    )
    if until - now < (until - begins) / 8:
        yield warning(
            "certificate",
            f"{link.host}:{link.port} has one with {in_words(until - now)} left: {moment(until)}",
            "submerge pki renew, for the other end",
        )


def is_broker(link: Link) -> bool:
    """Return whether the other end is a broker, not a parent."""
    return link.scheme in ("mqtt", "mqtts")


def _no_grpc(at: str) -> Unreached:
    return Unreached(
        f"{at} uses TLS, but not gRPC",
        "is that an MQTT broker? then use mqtts://; or the parent's port",
    )


def _hint(error: ssl.SSLCertVerificationError, host: str, end: str) -> str:
    reason = error.verify_message.lower()
    if SERVER_DOMAIN in reason:
        return f"is {end} the parent there? submerge pki show, at both ends"
    if "mismatch" in reason or "not valid for" in reason:
        return (
            f"is the url right? submerge pki renew {end} --host {host}, and a --host for every"
            " other name that it serves under: they replace the old ones"
        )
    if "not yet valid" in reason:
        return "is this machine's clock right? timedatectl status"
    if "expired" in reason:
        return "submerge pki renew, for the other end; or is this machine's clock right?"
    return "is it of the same authority? submerge pki show KIT, at both ends"

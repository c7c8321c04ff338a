"""Ways: how far a connection comes, step by step, and in words why it comes no further."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from submerge_client.config.links import Link
from submerge_client.uplink.tls import Tls
from submerge_fleet.console.units import in_words, moment
from submerge_fleet.doctor.findings import Finding, warning

PATIENCE_S = 5.0
"""For each step."""


class Unreached(Exception):
    """The way ends here.

    Attributes
    ----------
    says, mend : str
    """

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(message)


class TurnedAway(Unreached):
    """The other end is there, and does not take this node."""


class Way(NamedTuple):
    """A way that was gone, as far as the other end's greeting."""

    took_s: float
    peer: dict[str, Any]


def reached(link: Link, tls: Tls | None, end: str) -> Way:
    """Go the way as far as TLS goes; `end`: who is there, for what `pki` would have to do.

    Raises
    ------
    Unreached
        Where it ends before.
    """
    at, host = f"{link.host}:{link.port}", link.host
    began = time.monotonic()
    try:
        with socket.create_connection((host, link.port), timeout=PATIENCE_S) as bare:
            if tls is None:
                return Way(time.monotonic() - began, {})
            context = tls.context()
            if not is_broker(link):
                context.set_alpn_protocols(["h2"])
            with context.wrap_socket(bare, server_hostname=host) as safe:
                if not is_broker(link) and safe.selected_alpn_protocol() != "h2":
                    raise _no_grpc(at)
                return Way(time.monotonic() - began, safe.getpeercert() or {})
    except socket.gaierror as error:
        raise Unreached(
            f"no host {host!r} is known: {error.strerror}",
            "is the name right? is there a network? getent hosts " + host,
        ) from error
    except ssl.SSLCertVerificationError as error:
        message = f"the certificate of {at}: {error.verify_message}"
        raise Unreached(message, _hint(error, host, end)) from error
    except ssl.SSLError as error:
        if "NO_APPLICATION_PROTOCOL" in (error.reason or ""):
            raise _no_grpc(at) from error
        raise Unreached(
            f"{at} does not speak TLS as it should: {error.reason or error}",
            "is it that port, and does it have TLS?",
        ) from error
    except ConnectionRefusedError as error:
        raise Unreached(f"nobody listens on {at}", "is it running? is the port right?") from error
    except TimeoutError as error:
        raise Unreached(
            f"{at} does not answer in {PATIENCE_S:g} s", "a firewall? ping it from here"
        ) from error
    except OSError as error:
        raise Unreached(
            f"{at}: {error.strerror or error}", "is there a network? ip route"
        ) from error


def ending_soon(link: Link, way: Way, now: float) -> Iterator[Finding]:
    """Whether that of the other end ends soon; nothing where all is well."""
    if not way.peer:
        return
    begins, until = (
        float(ssl.cert_time_to_seconds(str(way.peer[each]))) for each in ("notBefore", "notAfter")
    )
    if until - now < (until - begins) / 8:
        yield warning(
            "certificate",
            f"that of {link.host}:{link.port} has {in_words(until - now)} left: {moment(until)}",
            "submerge pki renew, for the other end",
        )


def is_broker(link: Link) -> bool:
    """Return whether the other end is a broker, and not a parent itself."""
    return link.scheme in ("mqtt", "mqtts")


def _no_grpc(at: str) -> Unreached:
    return Unreached(
        f"{at} has TLS, and does not speak gRPC there",
        "is that an MQTT broker? then say mqtts://; or give the parent's own port",
    )


def _hint(error: ssl.SSLCertVerificationError, host: str, end: str) -> str:
    said = error.verify_message.lower()
    if "mismatch" in said or "not valid for" in said:
        return (
            f"is the url right? submerge pki renew {end} --host {host}, and a --host for every"
            " other name it serves under: they replace all that it had"
        )
    if "not yet valid" in said:
        return "is this machine's clock right? timedatectl status"
    if "expired" in said:
        return "submerge pki renew, for the other end; or is this machine's clock right?"
    return "is it of the same authority? submerge pki show KIT, here and there"

"""Identity: the name in a node's own certificate, and when it expires.

A certificate is checked by a TLS handshake in memory, with this side as both client and server.
It uses the authority, the key and the certificate. What passes here passes at the parent, and
the device needs no library but Python's own.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from submerge import UsageError
from submerge.protocol.messages import Message, Report
from submerge.protocol.names import SERVER_DOMAIN
from submerge.protocol.permission import Permission
from submerge_client.kit import read_kit
from submerge_client.uplink.tls import Tls

if TYPE_CHECKING:
    import ssl

Stamped = TypeVar("Stamped", bound=Message)

NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: an expired certificate is reported, not refused."""


class NodeIdentity(NamedTuple):
    """The facts of a certificate.

    node : The common name, which is the node's name.
    begins, until : Unix seconds.
    hosts : Names and addresses of a server; empty for a client.
    permission : Its role and groups; None: its authority issues none, or did not yet.
    """

    node: str
    begins: float
    until: float
    hosts: tuple[str, ...] = ()
    permission: Permission | None = None


def identity(tls: Tls) -> NodeIdentity:
    """Return the facts of the certificate in `tls`, whether or not it is valid now.

    Raises UsageError if a file is unusable, the key does not match, or the authority has not signed
    it.
    """
    import ssl

    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    shown.check_hostname, shown.verify_mode = False, ssl.CERT_NONE
    tls.prove(shown)
    checks = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.prove(checks)  # a server needs a certificate, too
    checks.verify_mode = ssl.CERT_REQUIRED
    checks.verify_flags |= NO_CHECK_TIME
    if tls.kit is not None:
        checks.load_verify_locations(cadata=read_kit(tls.kit).authority.decode())
    elif tls.ca is not None:
        checks.load_verify_locations(cafile=tls.ca)
    else:
        checks.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    try:
        found = _handshake(checks, shown)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        raise UsageError(
            f"expected a certificate that its own authority has signed for a client, got"
            f" {tls.kit or tls.cert}: {why}"
        ) from error
    return _read(found, tls)


def check_name(tls: Tls, node: str) -> NodeIdentity:
    """Return the facts of a node's certificate.

    Raises UsageError if it is unusable, or names another node.
    """
    found = identity(tls)
    if found.node != node:
        raise UsageError(
            f"expected the certificate of {node}, got that of {found.node} in"
            f" {tls.kit or tls.cert}: a node's name and its certificate's are the same"
        )
    return found


class Credentials:
    """When a node's certificates expire; read again when their files have changed.

    *links : The TLS files of its links; None for a link without TLS.
    node : The name that every certificate must have.

    Raises UsageError if a certificate is unusable, or names another node.
    """

    def __init__(self, *links: Tls | None, node: str) -> None:
        proofs = {tls: tls.stamp() for tls in links if tls is not None and tls.proves}
        self._known = {tls: (stamp, check_name(tls, node)) for tls, stamp in proofs.items()}
        self._node = node

    @property
    def until(self) -> float:
        """When the first of them expires, Unix seconds; 0 without any."""
        for tls, (stamp, _) in self._known.items():
            now = tls.stamp()
            if now != stamp:
                try:
                    self._known[tls] = now, check_name(tls, self._node)
                except UsageError:
                    continue  # replaced by half, or wrongly: open connections stay open
        return min((each.until for _, each in self._known.values()), default=0.0)

    def explain(self, why: str, wall: float) -> str:
        """Return why a connection failed, with a hint if our certificate has expired.

        The server that refuses an expired certificate never says so.

        why : The reason that the transport gives.
        wall : Now, Unix seconds.
        """
        until = self.until
        if not 0.0 < until <= wall:
            return why
        ended = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(until))
        return f"the certificate of {self._node} ended on {ended}: renew its kit; {why}"

    def stamped(self, message: Stamped) -> Stamped:
        """Return a message as it is sent: a report says when the certificate expires."""
        if isinstance(message, Report) and self._known:
            return replace(message, certified_until=self.until)
        return message


def _handshake(checks: ssl.SSLContext, shown: ssl.SSLContext) -> dict[str, Any]:
    """Return the certificate of `shown` as the server `checks` sees it."""
    import ssl

    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = checks.wrap_bio(up, down, server_side=True)
    client = shown.wrap_bio(down, up)
    waiting = [client, server]
    for _ in range(10):  # a handshake takes three or four
        for side in list(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    return dict(server.getpeercert() or {})


def _read(found: dict[str, Any], tls: Tls) -> NodeIdentity:
    import ssl

    node = common_name(found)
    if not node:
        raise UsageError(
            f"expected a certificate with a common name, got none in {tls.kit or tls.cert}"
        )
    named = (*alternatives(found, "DNS"), *alternatives(found, "IP Address"))
    hosts = tuple(host for host in named if not host.endswith(SERVER_DOMAIN))
    begins, until = (
        float(ssl.cert_time_to_seconds(found[each])) for each in ("notBefore", "notAfter")
    )
    return NodeIdentity(node, begins, until, hosts, Permission.of(alternatives(found, "URI")))


def common_name(certificate: dict[str, Any]) -> str:
    """Return the common name in a certificate of Python's `ssl`; empty if there is none."""
    parts = (pair for part in certificate.get("subject", ()) for pair in part)
    return next((value for name, value in parts if name == "commonName"), "")


def alternatives(certificate: dict[str, Any], kind: str) -> tuple[str, ...]:
    """Return the alternative names of one kind, `DNS` or `URI`, in a certificate of `ssl`."""
    return tuple(value for each, value in certificate.get("subjectAltName", ()) if each == kind)

"""identify(): who sends a request, by what its connection and its headers show.

A token decides if there is one, else the certificate. What is refused is answered with the same
words whether or not there is such a token: nothing but the token itself was looked at.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from submerge import UsageError
from submerge.protocol.permission import Permission, Role
from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.downlink import PeerIdentity
from submerge_aggregator.operators.scopes import Scope
from submerge_aggregator.operators.tokens import FORM, Token, find
from submerge_client.uplink.tls import alternatives, common_name

DENIALS = {
    "no_credential": "neither a token nor a certificate",
    "wrong_token": "a token that is wrong, revoked or over, or is no token",
    "certificate": "a certificate that gives no orders, is revoked, banned or over",
    "scope": "an order that the token's scope, or the certificate's role or groups, do not allow",
    "shape": "a request that no client of ours sends: from a browser's page, or with two lengths",
    "too_many": "too many failed attempts from one address",
    "handshake": "a TLS handshake that failed: no TLS, or a certificate that is not trusted",
}
"""Why requests to the operators' address are refused; each in a line, for people."""

SCOPE_OF: dict[Role, Scope] = {"operator": "operate", "reader": "read"}
"""What the roles of certificates allow; the others give no orders."""

FOR, MOST_FOR = "x-submerge-for", 200
"""At the socket, the header with whom a program asks for; and the most bytes of it."""

NO_CREDENTIAL = "expected an operator's token or certificate, got none"
NOT_ACCEPTED = "the token is not accepted: it is wrong, revoked, or over"


class Peer(NamedTuple):
    # of the user at the socket's other end; None over the network, or if it is unknown
    uid: int | None = None
    address: str = ""  # of the machine; empty at the socket
    # what TLS has checked, as Python's `ssl` returns it; None without one
    certificate: Mapping[str, Any] | None = None


class Operator(NamedTuple):
    """Who asks, and what they may do; groups empty: in all."""

    who: str
    whence: str
    scope: Scope
    groups: tuple[str, ...] = ()


class Denial(NamedTuple):
    status: Literal[400, 401, 403, 429]
    reason: str
    why: str
    who: str = ""


def at_socket(peer: Peer, headers: Sequence[tuple[bytes, bytes]]) -> Operator | Denial:
    """Return the operator at the socket beside the store, whose mode is the authentication."""
    if peer.address:
        return Denial(401, "no_credential", NO_CREDENTIAL)
    who = "unknown" if peer.uid is None else f"uid {peer.uid}"
    # A program may say for whom it asks: it is recorded, and changes nothing of what it may do.
    given = b" ".join(value for name, value in headers if name == FOR.encode())
    for_whom = given[:MOST_FOR].decode("latin-1")
    said = f" for {for_whom}" if for_whom.isprintable() and for_whom else ""
    return Operator(who + said, "socket", "operate")


@dataclass(frozen=True, slots=True)
class NetworkIdentities:
    tokens: Callable[[], Iterable[Token]]
    admission: AdmissionControl
    wall: Callable[[], float]

    def __call__(self, peer: Peer, headers: Sequence[tuple[bytes, bytes]]) -> Operator | Denial:
        """Return who sends a request, or why it is refused."""
        given = [value for name, value in headers if name == b"authorization"]
        if given:
            return self._by_token(peer, given)
        if peer.certificate is None:
            return Denial(401, "no_credential", NO_CREDENTIAL)
        return self._by_certificate(peer, peer.certificate)

    def _by_token(self, peer: Peer, given: list[bytes]) -> Operator | Denial:
        kind, _, text = given[0].decode("latin-1").partition(" ")
        secret = text.strip() if len(given) == 1 and kind.lower() == "bearer" else ""
        token = find(self.tokens(), secret, self.wall())
        if token is None or not FORM.fullmatch(secret):
            return Denial(401, "wrong_token", NOT_ACCEPTED)
        return Operator(f"token {token.name}", peer.address, token.scope, token.groups)

    def _by_certificate(self, peer: Peer, shown: Mapping[str, Any]) -> Operator | Denial:
        name, uris = common_name(dict(shown)), alternatives(dict(shown), "URI")
        serial = shown.get("serialNumber")
        proof = PeerIdentity("certificate", uris, None if serial is None else int(serial, 16))
        permission, why = None, self.admission.objection_to_orders(proof, name)
        if why is None:
            try:
                permission = Permission.of(uris)
            except UsageError as error:
                why = f"it cannot be used: {error}"
        if why is None and not self._holds(shown):
            why = "it is over, or not valid yet"
        role = None if permission is None else permission.role
        scope = None if role is None else SCOPE_OF.get(role)
        if why is None and scope is None:
            why = f"it has {f'role {role}' if role else 'no role'}, which gives no orders"
        if why is not None or permission is None or scope is None:
            said = f"the certificate is not accepted: {why}"
            return Denial(403, "certificate", said, who=f"{role or 'node'} {name}")
        return Operator(f"{role} {name}", peer.address, scope, permission.groups)

    def _holds(self, shown: Mapping[str, Any]) -> bool:
        """Return whether it is valid now: a connection may outlive it."""
        try:
            begins, until = (
                ssl.cert_time_to_seconds(str(shown[each])) for each in ("notBefore", "notAfter")
            )
        except (KeyError, ValueError):
            return False
        return begins <= self.wall() < until


def place_of(address: str) -> str:
    """Return what attempts are counted by: an address, or the /64 of one of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))

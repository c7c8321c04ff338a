"""Identity: what a node's own certificate says, and until when it holds.

A certificate is looked at by being shown to oneself: a handshake in memory, in which this
side's trust in its own authority, the key and the certificate are all put to use. What passes
here passes at the other end, and no other library than Python's own is needed on the device.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from submerge import UsageError
from submerge.protocol.messages import Message, Report
from submerge_client.kit import read_kit
from submerge_client.uplink.tls import Tls

if TYPE_CHECKING:
    import ssl

Stamped = TypeVar("Stamped", bound=Message)

WHENEVER = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: what has ended is to be told, not to be refused."""


class NodeIdentity(NamedTuple):
    """A certificate in words.

    Attributes
    ----------
    node : str
        The common name: the node's.
    begins, until : float
        Unix seconds.
    hosts : tuple of str
        Names and addresses that it may serve under; none for a client's.
    """

    node: str
    begins: float
    until: float
    hosts: tuple[str, ...] = ()


def identity(tls: Tls) -> NodeIdentity:
    """Return what the certificate of links that have one says, whether or not it holds now.

    Raises
    ------
    UsageError
        If a file is of no use, the key is another's, or the authority has not signed it.
    """
    import ssl

    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    shown.check_hostname, shown.verify_mode = False, ssl.CERT_NONE
    tls.prove(shown)
    judge = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.prove(judge)  # whoever answers needs one, too
    judge.verify_mode = ssl.CERT_REQUIRED
    judge.verify_flags |= WHENEVER
    if tls.kit is not None:
        judge.load_verify_locations(cadata=read_kit(tls.kit).authority.decode())
    elif tls.ca is not None:
        judge.load_verify_locations(cafile=tls.ca)
    else:
        judge.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    try:
        found = _seen(judge, shown)
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", "") or error.reason or str(error)
        raise UsageError(
            f"expected a certificate that its own authority has signed for a client, got"
            f" {tls.kit or tls.cert}: {why}"
        ) from error
    return _read(found, tls)


def check_name(tls: Tls, node: str) -> NodeIdentity:
    """Return what a node's certificate says; refuse another's.

    Raises
    ------
    UsageError
        If it is of no use, or names another node.
    """
    found = identity(tls)
    if found.node != node:
        raise UsageError(
            f"expected the certificate of {node}, got that of {found.node} in"
            f" {tls.kit or tls.cert}: a node's name and its certificate's are the same"
        )
    return found


class Credentials:
    """How long a node's certificates hold, looked up again when their files have changed.

    Parameters
    ----------
    *links : Tls or None
        What protects its links; None for one that nothing does.
    node : str
        Whose they have to be.

    Raises
    ------
    UsageError
        If one is of no use, or names another node.
    """

    def __init__(self, *links: Tls | None, node: str) -> None:
        proofs = {tls: tls.stamp() for tls in links if tls is not None and tls.proves}
        self._known = {tls: (stamp, check_name(tls, node)) for tls, stamp in proofs.items()}
        self._node = node

    @property
    def until(self) -> float:
        """When the first of them ends, Unix seconds; 0 without any."""
        for tls, (stamp, _) in self._known.items():
            now = tls.stamp()
            if now != stamp:
                try:
                    self._known[tls] = now, check_name(tls, self._node)
                except UsageError:
                    continue  # half replaced, or wrongly: what is connected stays connected
        return min((each.until for _, each in self._known.values()), default=0.0)

    def blamed(self, why: str, wall: float) -> str:
        """Return why a way is closed: whoever refuses a certificate that has ended never says so.

        Parameters
        ----------
        why : str
            What the way itself says.
        wall : float
            Now, Unix seconds.
        """
        until = self.until
        if not 0.0 < until <= wall:
            return why
        ended = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(until))
        return f"the certificate of {self._node} ended on {ended}: renew its kit; {why}"

    def stamped(self, message: Stamped) -> Stamped:
        """Return a message as it goes out: a report tells when the certificate ends."""
        if isinstance(message, Report) and self._known:
            return replace(message, certified_until=self.until)
        return message


def _seen(judge: ssl.SSLContext, shown: ssl.SSLContext) -> dict[str, Any]:
    """Show a certificate to a judge; return what that one sees."""
    import ssl

    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = judge.wrap_bio(up, down, server_side=True)
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

    names = [value for part in found["subject"] for name, value in part if name == "commonName"]
    if not names:
        raise UsageError(
            f"expected a certificate with a common name, got none in {tls.kit or tls.cert}"
        )
    hosts = tuple(value for _, value in found.get("subjectAltName", ()))
    begins, until = (
        float(ssl.cert_time_to_seconds(found[each])) for each in ("notBefore", "notAfter")
    )
    return NodeIdentity(names[0], begins, until, hosts)

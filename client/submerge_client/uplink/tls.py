"""Tls: the certificate files of a connection, the name in a certificate, and the name of a parent.

They are read again for each new connection: certificates are renewed while programs run.
"""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from submerge import UsageError
from submerge.protocol.machine import Note
from submerge.protocol.messages import Message, Report
from submerge.protocol.names import SERVER_DOMAIN, server_name
from submerge.protocol.permission import Permission
from submerge_client.config.links import Link, Served
from submerge_client.files import PRIVATE, atomic_write, stat_of
from submerge_client.files import stamp as file_stamp
from submerge_client.kit import in_use, read_kit, renewed_place
from submerge_client.logs import say

if TYPE_CHECKING:
    import ssl


class Tls(NamedTuple):
    """Files in PEM form: authorities (None: the system's), key and certificate; or a kit."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    kit: Path | None = None
    alpn: str | None = None

    @property
    def kit_in_use(self) -> Path | None:
        return None if self.kit is None else in_use(self.kit)

    @property
    def proves(self) -> bool:
        """Whether it includes a certificate of our own."""
        return self.cert is not None or self.kit is not None

    def context(self) -> ssl.SSLContext:
        """Return the files as a client's context: the other end must prove its name."""
        import ssl  # 2 MiB, which a link without TLS does not need

        kit = self.kit_in_use
        trusted = None if kit is None else read_kit(kit).authority.decode()
        try:
            context = ssl.create_default_context(cafile=self.ca, cadata=trusted)
        except OSError as error:
            raise _unusable("ca", self.kit or self.ca, error) from error
        self.prove(context)
        if self.alpn is not None:
            context.set_alpn_protocols([self.alpn])
        return context

    def prove(self, context: ssl.SSLContext) -> None:
        """Load this side's certificate into a context, if there is one."""
        kit = self.kit_in_use
        cert, key = (kit, kit) if kit is not None else (self.cert, self.key)
        if cert is None:
            return
        try:
            # An empty password: a key that wants one must not ask the terminal for it.
            context.load_cert_chain(cert, key, password="")
        except OSError as error:
            what = "cert and key" if self.kit is None else "a certificate and its key"
            got = f"{cert} and {key}" if self.kit is None else str(cert)
            raise _unusable(what, got, error) from error

    def trust(self, context: ssl.SSLContext) -> bool:
        """Have a server's context accept certificates of the authorities, if any are named."""
        if self.kit is None and self.ca is None:
            return False
        kit = self.kit_in_use
        authority = None if kit is None else read_kit(kit).authority.decode()
        try:
            context.load_verify_locations(None if authority else self.ca, cadata=authority)
        except OSError as error:
            raise _unusable("certificates", self.kit or self.ca, error) from error
        return True

    def contents(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """Return ca, key and cert as bytes, in gRPC's order."""
        self.context()  # gRPC itself reports no error for a file that it cannot use
        if self.kit is not None:
            kit = read_kit(in_use(self.kit))
            return kit.authority, kit.key, kit.cert
        paths = (self.ca, self.key, self.cert)
        try:
            ca, key, cert = (None if path is None else path.read_bytes() for path in paths)
        except OSError as error:  # removed since: a renewal is under way
            raise _unusable("ca, cert and key", error.filename, error) from error
        return ca, key, cert

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes when a file is replaced, removed or restored."""
        paths = (*self[:3], self.kit_in_use)
        return tuple(None if path is None else _stamp(path) for path in paths)


def tls_of(link: Link, kit: Path | None = None) -> Tls | None:
    """Return the files that protect a link, None without TLS; its own go before the node's kit."""
    if not link.tls:
        return None
    if kit is not None and link.takes_kit:
        return Tls(kit=kit, alpn=link.alpn)
    return Tls(link.ca, link.cert, link.key, alpn=link.alpn)


def served_tls(section: Served, kit: Path | None) -> Tls | None:
    """Return the files of a server: its own, or the node's kit; None without TLS."""
    if section.insecure:
        return None
    return Tls(kit=kit) if section.cert is None else Tls(section.ca, section.cert, section.key)


def password_of(link: Link) -> str | None:
    """Return the password in a file, without the line break at its end."""
    if link.password_file is None:
        return None
    try:
        return link.password_file.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its bytes are no UTF-8"
        raise UsageError(
            f"password_file: expected a file that can be read, got {link.password_file}: {why};"
            " correct its path, or its owner"
        ) from error


def _stamp(path: Path) -> tuple[int, ...] | None:
    found = stat_of(path)  # None: between two files
    return None if found is None else file_stamp(found)


def _unusable(what: str, path: object, error: OSError) -> UsageError:
    return UsageError(f"expected {what} in PEM form, got {path}: {error.strerror or error}")


Stamped = TypeVar("Stamped", bound=Message)

NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: an expired certificate is reported, not refused."""


class NodeIdentity(NamedTuple):
    """The facts of a certificate, in Unix seconds; a server has hosts. None: without a role."""

    node: str
    begins: float
    until: float
    hosts: tuple[str, ...] = ()
    permission: Permission | None = None


def identity(tls: Tls) -> NodeIdentity:
    """Return the facts of the certificate in `tls`, whether or not it is valid now."""
    import ssl

    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    shown.check_hostname, shown.verify_mode = False, ssl.CERT_NONE
    tls.prove(shown)
    checks = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.prove(checks)  # a server needs a certificate, too
    checks.verify_mode = ssl.CERT_REQUIRED
    checks.verify_flags |= NO_CHECK_TIME
    if not tls.trust(checks):
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
    found = identity(tls)
    if found.node != node:
        raise UsageError(
            f"expected the certificate of {node}, got that of {found.node} in"
            f" {tls.kit or tls.cert}: a node's name and its certificate's are the same"
        )
    return found


class Credentials:
    """When the certificates of a node's links expire; read again when their files have changed."""

    def __init__(self, *links: Tls | None, node: str) -> None:
        for tls in links:
            if tls is not None and tls.kit is not None:
                _drop_unfit(tls.kit)
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

    def renewed(self, certificate: bytes) -> Note:
        """Put a new certificate into the node's kit, if it fits and lasts longer; say so."""
        kit = next((tls.kit for tls in self._known if tls.kit is not None), None)
        try:
            if kit is None:
                raise UsageError("expected a kit to put it into, got cert and key in files apart")
            now = check_name(Tls(kit=kit), self._node).until
            until = replace_certificate(kit, certificate, self._node, now)
        except (UsageError, OSError) as error:
            return Note("certificate not taken", {"why": str(error)}, "warning")
        said = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(until))
        return Note("certificate renewed", {"kit": str(kit), "until": said})

    def explain(self, why: str, wall: float) -> str:
        """Return why a connection failed; no server says that our certificate has expired."""
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


def replace_certificate(path: Path, certificate: bytes, node: str, until: float) -> float:
    """Put a certificate that fits, and ends after `until`, into a kit; return its end."""
    now, place = in_use(path), renewed_place(path)
    kit, beside = read_kit(now), place.with_name(f".{place.name}.new")
    try:
        atomic_write(beside, kit.with_certificate(now.read_bytes(), certificate), mode=PRIVATE)
        found = check_name(Tls(kit=beside), node)
        if read_kit(beside)._replace(cert=kit.cert) != kit:
            raise UsageError("expected a certificate alone, got more")
        if found.until < until:
            raise UsageError("expected a certificate that ends later than the one in use")
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)
    return found.until


def _drop_unfit(path: Path) -> None:
    """Remove what has come in a kit's place if the kit has another key since, or ends later."""
    now = in_use(path)
    if now == path:
        return
    ends = [identity(Tls(ca=each, cert=each, key=each)).until for each in (now, path)]
    if read_kit(now).key != read_kit(path).key or ends[0] <= ends[1]:
        now.unlink()


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


LOOK_S = 5.0  # seconds for one look at a server's certificate


class ParentName:
    """The name that a parent's certificate must have; empty: only the host name is checked."""

    def __init__(self, parent: str, host: str, port: int, tls: Tls) -> None:
        # The next connection checks the host name, if the parent has an old certificate.
        self.by_host = False
        self._said = False
        self._parent, self._host, self._port, self._tls = parent, host, port, tls

    @property
    def expected(self) -> str:
        """The name to check in place of the host's; empty: the host's."""
        if self.by_host or not self._parent or not self._tls.proves:
            return ""
        return "" if identity(self._tls).permission is None else server_name(self._parent)

    def options(self) -> tuple[tuple[str, Any], ...]:
        name = self.expected
        return (("grpc.ssl_target_name_override", name),) if name else ()

    def parted(self, why: str, *, proven: bool) -> str:
        """Note that a connection has ended; return why, with the server's name if that is it."""
        # Without proof it looks at the server for up to LOOK_S, which counts a failed handshake.
        if proven or self.by_host:
            self.by_host = False
            return why
        try:
            if not self.expected:
                return why
            shown = shown_by(self._host, self._port, self._tls)
            found = Permission.of(alternatives(shown, "URI"))
        except (UsageError, OSError):  # ssl.SSLError is one: nothing there, or no server of ours
            return why
        if found is None:
            self.by_host = True
            self._say_old()
            return why
        if server_name(self._parent) in alternatives(shown, "DNS"):
            return why  # it is another reason
        return f"expected aggregator {self._parent}, got {found.role} {common_name(shown)}; {why}"

    def _say_old(self) -> None:
        """Log once that the parent's certificate is from before there were roles."""
        if not self._said:
            say(
                "the parent's certificate has no role: its host name is checked",
                level="warning",
                parent=self._parent,
                hint=f"submerge pki renew {self._parent} --role aggregator",
            )
        self._said = True


def shown_by(host: str, port: int, tls: Tls) -> dict[str, Any]:
    """Return a server's certificate, signed by a trusted authority, its host not checked."""
    context = tls.context()
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((host, port), timeout=LOOK_S) as bare,
        context.wrap_socket(bare, server_hostname=host) as safe,
    ):
        return dict(safe.getpeercert() or {})

"""Tls: the certificate files of a connection, the same for gRPC and MQTT, at both ends.

They are read again for each new connection: certificates are renewed while programs run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from submerge import UsageError
from submerge_client.config.links import Link
from submerge_client.kit import read_kit

if TYPE_CHECKING:
    import ssl


class Tls(NamedTuple):
    """Files in PEM form.

    ca : Certificates of the trusted authorities; None: the system's.
    cert, key : Our own certificate and its key; both, or neither.
    kit : All three in one file (`submerge_client.kit`); then the others are None.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    kit: Path | None = None

    @property
    def proves(self) -> bool:
        """Whether it includes a certificate of our own."""
        return self.cert is not None or self.kit is not None

    def context(self) -> ssl.SSLContext:
        """Return the files as a client's context: the other end must prove its name.

        Raises UsageError if a file cannot be read, or has the wrong content.
        """
        import ssl  # 2 MiB, which a link without TLS does not need

        trusted = None if self.kit is None else read_kit(self.kit).authority.decode()
        try:
            context = ssl.create_default_context(cafile=self.ca, cadata=trusted)
        except OSError as error:
            raise _unusable("ca", self.kit or self.ca, error) from error
        self.prove(context)
        return context

    def prove(self, context: ssl.SSLContext) -> None:
        """Load this side's certificate into a context, if there is one."""
        cert, key = (self.kit, self.kit) if self.kit is not None else (self.cert, self.key)
        if cert is None:
            return
        try:
            # An empty password: a key that wants one must not ask the terminal for it.
            context.load_cert_chain(cert, key, password="")
        except OSError as error:
            what = "cert and key" if self.kit is None else "a certificate and its key"
            got = f"{cert} and {key}" if self.kit is None else str(cert)
            raise _unusable(what, got, error) from error

    def contents(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """Return ca, key and cert as bytes, in gRPC's order.

        Raises UsageError if a file cannot be read, or has the wrong content.
        """
        self.context()  # gRPC itself reports no error for a file that it cannot use
        if self.kit is not None:
            kit = read_kit(self.kit)
            return kit.authority, kit.key, kit.cert
        paths = (self.ca, self.key, self.cert)
        try:
            ca, key, cert = (None if path is None else path.read_bytes() for path in paths)
        except OSError as error:  # removed since: a renewal is under way
            raise _unusable("ca, cert and key", error.filename, error) from error
        return ca, key, cert

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes when a file is replaced, removed or restored."""
        return tuple(None if path is None else _stamp(path) for path in self)


def tls_of(link: Link, kit: Path | None = None) -> Tls | None:
    """Return the files that protect a link; None for a link without TLS.

    `kit` is the node's own. A link that names its own files has another authority.
    """
    if not link.tls:
        return None
    if kit is not None and link.takes_kit:
        return Tls(kit=kit)
    return Tls(link.ca, link.cert, link.key)


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


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None  # between two files
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _unusable(what: str, path: object, error: OSError) -> UsageError:
    return UsageError(f"expected {what} in PEM form, got {path}: {error.strerror or error}")

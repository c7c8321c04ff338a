"""Tls: which files make a connection safe, the same for gRPC and MQTT, at both ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from submerge import UsageError

if TYPE_CHECKING:
    import ssl


class Tls(NamedTuple):
    """Files in PEM form.

    Attributes
    ----------
    ca : Path or None
        Certificates of whom to trust; None: the system's.
    cert, key : Path or None
        One's own certificate, and the key to it; both, or none.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return the files as a client's context: the other end must prove its name.

        Raises
        ------
        UsageError
            If a file cannot be read, or is not what it should be.
        """
        import ssl  # 2 MiB that a link without TLS need not hold

        try:
            context = ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise _unusable("ca", self.ca, error) from error
        if self.cert is not None:
            try:
                # An empty password: a key that wants one must not ask the terminal for it.
                context.load_cert_chain(self.cert, self.key, password="")
            except OSError as error:
                raise _unusable("cert and key", f"{self.cert} and {self.key}", error) from error
        return context

    def contents(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """Return ca, key and cert as bytes, in the order that gRPC takes them.

        Raises
        ------
        UsageError
            If a file cannot be read, or is not what it should be.
        """
        self.context()  # gRPC itself says nothing of a file that it cannot use
        paths = (self.ca, self.key, self.cert)
        ca, key, cert = (None if path is None else path.read_bytes() for path in paths)
        return ca, key, cert


def _unusable(what: str, path: object, error: OSError) -> UsageError:
    return UsageError(f"expected {what} in PEM form, got {path}: {error.strerror or error}")

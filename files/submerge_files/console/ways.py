"""The two ways to an aggregator's admin API: the socket beside its store, and HTTPS."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

from submerge.errors import SubmergeError, UsageError

if TYPE_CHECKING:
    from submerge_client.uplink.tls import Tls

PATIENCE_S = 30.0  # longer than the aggregator itself waits for its disk
MOST_TOKEN = 1000  # bytes of a token's file; a token has 52

FORMS = "https://host or https://host:port"


class NoAnswer(SubmergeError):
    """The aggregator is not there, or cannot answer now."""


class Way(Protocol):
    @property
    def name(self) -> str:
        """Where that is, for people."""

    def connect(self) -> tuple[http.client.HTTPConnection, dict[str, str]]:
        """Return a connection that is not open yet, and the headers of a request."""

    def failure(self, error: Exception) -> SubmergeError:
        """Return what a connection's error means, and what to do."""


class UnixSocket(NamedTuple):
    """The socket beside an aggregator's store: the file's mode decides who may ask."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def connect(self) -> tuple[http.client.HTTPConnection, dict[str, str]]:
        return _OverUnix(self.path), {}

    def failure(self, error: Exception) -> SubmergeError:
        if isinstance(error, PermissionError):
            return UsageError(
                f"{self.path} is its owner's alone: run this as the aggregator's user"
            )
        return NoAnswer(f"no aggregator answers on {self.path}: is it running?")


class Https(NamedTuple):
    """An aggregator's address; a token or a kit's certificate says who asks, `ca` whom to trust."""

    url: str
    token_file: Path | None = None
    kit: Path | None = None
    ca: Path | None = None

    @property
    def name(self) -> str:
        return self.url

    def connect(self) -> tuple[http.client.HTTPConnection, dict[str, str]]:
        """Return a connection that is not open yet, and the header with the token."""
        secure, host, port = endpoint_of(self.url)
        headers = {}
        if self.token_file is not None:
            headers["Authorization"] = f"Bearer {read_token(self.token_file)}"
        if not secure:
            return http.client.HTTPConnection(host, port, timeout=PATIENCE_S), headers
        context = self._context()
        safe = http.client.HTTPSConnection(host, port, timeout=PATIENCE_S, context=context)
        return safe, headers

    def failure(self, error: Exception) -> SubmergeError:
        if isinstance(error, ssl.SSLCertVerificationError):
            return UsageError(
                f"the certificate that {self.url} shows is not accepted: {error.verify_message};"
                " use the host's name in it, and --ca or --kit of its fleet"
            )
        closed = isinstance(error, ConnectionError | ssl.SSLError)
        if closed and self._shows_certificate and self._answers_without():
            return UsageError(
                f"{self.url} does not accept the certificate of {self.kit}: it takes one of its"
                " own fleet, with role operator or reader, that is valid now"
            )
        hung_up = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        if isinstance(error, ssl.SSLError) and not hung_up:
            why = error.reason or str(error)
            return UsageError(f"expected TLS at {self.url}, got: {why}; is it the right port?")
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return NoAnswer(f"no aggregator answers at {self.url}: {why}")

    @property
    def _shows_certificate(self) -> bool:
        """Whether the kit's certificate says who asks; a token does, where there is one."""
        return self.kit is not None and self.token_file is None

    def _answers_without(self) -> bool:
        """Return whether the aggregator answers one who shows nothing."""
        # A server that refuses a certificate closes the connection, as one that ends does.
        _, host, port = endpoint_of(self.url)
        context = self._trusting()
        connection = http.client.HTTPSConnection(host, port, timeout=PATIENCE_S, context=context)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True

    def _context(self) -> ssl.SSLContext:
        """Return what to trust, and what to show."""
        from submerge_client.uplink.tls import Tls

        context = self._trusting()
        if self._shows_certificate:
            tls = Tls(kit=self.kit)
            _check_time(tls)
            tls.prove(context)
        return context

    def _trusting(self) -> ssl.SSLContext:
        """Return what to trust: `ca`, or the kit's authority, or the system's."""
        from submerge_client.kit import read_kit
        from submerge_client.uplink.tls import Tls

        if self.kit is None or self.ca is not None:
            return Tls(ca=self.ca).context()
        return ssl.create_default_context(cadata=read_kit(self.kit).authority.decode())


def https_of(url: str, token_file: Path | None, kit: Path | None, ca: Path | None) -> Https:
    """Return the way that options ask for, checked as far as that needs no network."""
    secure, *_ = endpoint_of(url)
    if token_file is None and kit is None:
        raise UsageError("--at needs --token-file FILE, or --kit FILE of an operator; got neither")
    if not secure:
        for option, given in (("--kit", kit), ("--ca", ca)):
            if given is not None:
                raise UsageError(f"{option} is for https://, got {url}")
    if token_file is not None:
        read_token(token_file)
    return Https(url, token_file, kit, ca)


def endpoint_of(url: str) -> tuple[bool, str, int]:
    """Return whether a url has TLS, its host and its port; http:// leads to this machine only."""
    from submerge_aggregator.operators.config import PORT
    from submerge_client.config.links import is_here

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if "@" in url:
        # It is not shown: it may hold a password.
        raise UsageError(f"--at is {FORMS}, got a url with a user's name: use --token-file")
    if not host or parts.scheme not in ("http", "https") or parts.path.strip("/"):
        raise UsageError(f"--at is {FORMS}, got {url[:200]!r}")
    if parts.query or parts.fragment:
        raise UsageError(f"--at is {FORMS}, got a url with more: a token goes into --token-file")
    if parts.scheme == "http" and not is_here(host):
        raise UsageError(f"expected https:// to another machine, got {url[:200]!r}")
    return parts.scheme == "https", host, port or PORT


def read_token(path: Path) -> str:
    """Return the token in a file that its owner alone may read; errors do not show its content."""
    from submerge_aggregator.operators.tokens import FORM

    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(MOST_TOKEN)
    except OSError as error:
        raise UsageError(f"expected a token in {path}, got: {error.strerror}") from error
    if stat.S_ISREG(mode) and mode & 0o077:
        raise UsageError(
            f"{path} has mode {mode & 0o777:04o}: others on this machine can read the token;"
            f" chmod 600 {path}, and replace the token if they may have"
        )
    token = data.decode("ascii", "replace").strip()
    if not FORM.fullmatch(token):
        raise UsageError(
            f"expected a token of `submerge aggregator token new` in {path}, got something else"
        )
    return token


def _check_time(tls: Tls) -> None:
    """Refuse a kit that has ended: a server's own words on it are hard to read."""
    from submerge_client.uplink.tls import identity

    found = identity(tls)
    if time.time() >= found.until:
        ended = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(found.until))
        raise UsageError(
            f"the certificate of {found.node} in {tls.kit} ended on {ended}: renew the kit"
        )


class _OverUnix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(str(self._path))

"""The pki directory: an authority's key and certificate, a record, and a kit for each node.

1. Secrets are private from the start (0600, in directories of 0700).
2. Only one command at a time issues: two would overwrite each other's record.
3. Kits are written first, then the record. After a crash in between, the next command makes the
   unrecorded kits again.
4. The list of what is revoked is written before the CRL that is made from it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from submerge import UsageError
from submerge.protocol.permission import Permission
from submerge_aggregator.admission.roster import parse_revoked as read_revoked
from submerge_client.files import atomic_file, sync_folder, writing_to
from submerge_client.kit import HEAD, read_kit, unfit
from submerge_operate.pki import issued
from submerge_operate.pki.authority import (
    Authority,
    Certified,
    crl_of,
    fleet_of,
    hosts_in,
    number_of,
    serial_of,
    uris_in,
)
from submerge_operate.pki.issued import Entry, timestamp


class KitContents(NamedTuple):
    """A kit's certificate, and the fleet and the end of its authority."""

    entry: Entry
    fleet: str
    ends: datetime


def text_of(certified: Certified, authority: Authority) -> bytes:
    head = (
        HEAD,
        f"node: {certified.node}",
        f"fleet: {authority.fleet}",
        f"until: {timestamp(certified.until)}",
        *(() if certified.permission is None else _allowed(certified.permission)),
    )
    text = "".join(f"{line}\n" for line in head).encode()
    return text + certified.key + certified.certificate + authority.pem


def read_contents(path: Path) -> KitContents:
    """Return the contents of a kit whose parts belong together."""
    kit = read_kit(path)
    try:
        key = serialization.load_pem_private_key(kit.key, None)
        own = x509.load_pem_x509_certificate(kit.cert)
        authority = x509.load_pem_x509_certificate(kit.authority)
        (named,) = own.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except (ValueError, TypeError) as error:
        raise unfit(path, str(error)) from error
    if key.public_key() != own.public_key():
        raise unfit(path, "a key that is not its certificate's")
    try:
        own.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise unfit(path, "an authority that has not signed its certificate") from error
    node = str(named.value)
    if node != kit.node:
        raise unfit(path, f"a certificate of {node}, but a head of {kit.node}")
    until = own.not_valid_after_utc
    lasts = until - own.not_valid_before_utc
    try:
        permission = Permission.of(uris_in(own))
    except UsageError as error:
        raise unfit(path, str(error)) from error
    entry = Entry(node, hosts_in(own), lasts, permission, serial_of(own), until)
    return KitContents(entry, fleet_of(authority), authority.not_valid_after_utc)


def _allowed(permission: Permission) -> tuple[str, str]:
    return f"role: {permission.role}", f"groups: {' '.join(permission.groups) or 'all'}"


PRIVATE, PUBLIC = 0o600, 0o644


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """Write a file, whole or not at all. It keeps the owner of the file that it replaces."""
    with writing_to(str(path)), atomic_file(path, mode=mode) as file:
        with suppress(FileNotFoundError, PermissionError):
            # A node's user keeps owning its kit when root renews it.
            before = path.stat()
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        file.write(data)


class PkiDirectory:
    """The directory of an authority; `passphrase`: of its key, None if that is not encrypted."""

    def __init__(self, path: Path, passphrase: bytes | None = None) -> None:
        self.path, self.is_encrypted = path, passphrase is not None
        self.kits = path / "kits"
        self.key = path / "ca.key"
        self._passphrase = passphrase
        self._certificate = path / "ca.pem"
        self._record = path / "issued.json"
        self.revoked = path / "revoked"
        self.crl = path / "crl.pem"

    def create(self, authority: Authority, at: datetime) -> None:
        """Create the directory, with a new authority in it, which has revoked nothing."""
        # It has to be empty: after an overwritten authority every node would need a new kit.
        if self._certificate.exists():
            raise UsageError(
                f"{self.path} has an authority already: choose another directory with --dir"
            )
        if self.key.exists():
            raise UsageError(
                f"{self.key} exists without ca.pem: take that from a backup, or, if"
                f" `submerge pki init` was interrupted, remove {self.path} and start again"
            )
        with writing_to(str(self.path)):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise UsageError(f"expected a new or an empty directory, got {self.path}")
            self.path.chmod(0o700)
            self.kits.mkdir(mode=0o700)
        replace_file(self.key, authority.key_pem(self._passphrase), PRIVATE)
        replace_file(self._record, issued.record_text({}), PUBLIC)
        self.revoke(RevocationList(), authority, {}, at=at)
        replace_file(self._certificate, authority.pem, PUBLIC)

    def authority(self) -> Authority:
        return Authority.read(self._read(self._certificate), self._read(self.key), self._passphrase)

    def certificate(self) -> bytes:
        return self._read(self._certificate)

    def record(self) -> dict[str, Entry]:
        return issued.parse_record(self._read(self._record), str(self._record))

    @contextmanager
    def issuing(self) -> Iterator[dict[str, Entry]]:
        """Lock the directory while kits are made, and save what the body adds to the record."""
        # It is saved even if the body fails on its way, as those kits exist.
        try:
            place = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise self._none(error) from error
        try:
            _lock(place, self.path)
            entries = self.record()
            before = dict(entries)
            try:
                yield entries
            finally:
                if entries != before:
                    # New kits are on disk before the record lists them.
                    sync_folder(self.kits)
                    replace_file(self._record, issued.record_text(entries), PUBLIC)
        finally:
            os.close(place)  # releases the lock

    def put(self, certified: Certified, authority: Authority) -> Path:
        """Write a node's kit, replacing an older one; return its path."""
        path = self.kit(certified.node)
        with writing_to(str(self.kits)):
            self.kits.mkdir(mode=0o700, exist_ok=True)
        replace_file(path, text_of(certified, authority), PRIVATE)
        return path

    def discard(self, node: str) -> None:
        path = self.kit(node)
        with writing_to(str(path)):
            path.unlink(missing_ok=True)

    def revocations(self) -> RevocationList:
        """Return what is revoked; nothing in a directory from before there was a list."""
        try:
            text = self.revoked.read_text(encoding="utf-8")
        except FileNotFoundError:
            return RevocationList()
        except OSError as error:
            raise UsageError(f"cannot read {self.revoked}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"expected text in UTF-8 in {self.revoked}") from error
        return parse_revoked(text, str(self.revoked))

    def revoke(
        self,
        revoked: RevocationList,
        authority: Authority,
        entries: Mapping[str, Entry],
        *,
        at: datetime,
    ) -> None:
        """Write what is revoked: the list, and then the CRL."""
        # The CRL names the certificates on the list, and all that a revoked node has been given as
        # far as the record has them: its kits hold for a broker until they end otherwise.
        number = number_of(self.crl.read_bytes()) + 1 if self.crl.exists() else 1
        given = (entries[node].serials for node in revoked.nodes if node in entries)
        serials = revoked.serials | {int(each, 16) for serials in given for each in serials}
        replace_file(self.revoked, revoked.text, PUBLIC)
        replace_file(self.crl, crl_of(authority, serials, now=at, number=number), PUBLIC)

    def key_of(self, node: str) -> ec.EllipticCurvePrivateKey:
        """Return the key in a node's kit."""
        key = serialization.load_pem_private_key(read_kit(self.kit(node)).key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise unfit(self.kit(node), "another key than ECDSA's")
        return key

    def kit(self, node: str) -> Path:
        return self.kits / f"{node}.kit"

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError as error:
            if path != self._certificate and self._certificate.exists():
                raise UsageError(f"expected {path}, got none: take it from a backup") from error
            raise self._none(error) from error
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from error

    def _none(self, error: OSError) -> UsageError:
        return UsageError(
            f"expected an authority in {self.path}, got: {error.strerror}:"
            " `submerge pki init` makes one, --dir chooses another directory"
        )


def _lock(place: int, path: Path) -> None:
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
    except OSError as error:
        raise UsageError(
            f"expected a disk with file locks, got {path}: {error.strerror}"
        ) from error


# The list of what is revoked: a text file that aggregators read (`[security] revoked`).
#
#     serial 3F0A... # 2026-05-01T10:00:00Z stolen from the north gate
#     node pump-3    # 2026-05-01T10:00:00Z stolen from the north gate
#
# `serial` is one certificate, and `node` every certificate of that name. Blank lines and lines that
# begin with # are for people. A person may edit the file: other lines stay as they are.

REVOKED_HEAD = (
    "# Revoked certificates (serial HEX) and nodes (node NAME); submerge pki revoke adds lines."
)

SERIAL = re.compile(r"[0-9A-Fa-f]{1,40}")  # Hexadecimal digits; RFC 5280 allows 20 bytes.


class RevocationList(NamedTuple):
    """The list; `lines` are as in the file, without line ends."""

    lines: tuple[str, ...] = (REVOKED_HEAD,)
    serials: frozenset[int] = frozenset()
    nodes: frozenset[str] = frozenset()

    @property
    def text(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode()

    def adding(
        self, *, serials: Iterable[str] = (), nodes: Iterable[str] = (), comment: str
    ) -> RevocationList:
        """Return the list with more on it; what is on it already is not added again."""
        lines = list(self.lines)
        for serial in dict.fromkeys(serials):
            if int(serial, 16) not in self.serials:
                lines.append(f"serial {serial} # {comment}")
        lines += [f"node {node} # {comment}" for node in nodes if node not in self.nodes]
        return parse_revoked("\n".join(lines), "what is revoked")

    def reinstating(self, node: str) -> RevocationList:
        """Return the list without a node; its certificates' serial numbers stay on it."""
        kept = [line for line in self.lines if node not in read_revoked(line).nodes]
        return parse_revoked("\n".join(kept), "what is revoked")


def parse_revoked(text: str, whence: str) -> RevocationList:
    # Any other line is refused: half a list would let in the other half.
    try:
        serials, nodes = read_revoked(text)
    except UsageError as error:
        raise UsageError(f"{whence}, {error}") from error
    return RevocationList(tuple(map(str.rstrip, text.splitlines())), serials, nodes)


def serial_text(text: str) -> str:
    """Return a serial number in the form of the list, from OpenSSL's forms as well."""
    digits = text.strip().removeprefix("0x").replace(":", "")
    if not SERIAL.fullmatch(digits):
        raise UsageError(f"expected a serial number in hexadecimal digits, got {text[:80]!r}")
    return f"{int(digits, 16):040X}"

"""The pki directory: an authority's key and certificate, a record, and a kit for each node.

1. Secrets are private from the start (0600, in directories of 0700).
2. A file is replaced as a whole: a reader sees the old one or the new one.
3. Only one command at a time issues: two would overwrite each other's record.
4. Kits are written first, then the record. After a crash in between, the next command makes the
   unrecorded kits again.
5. The list of what is revoked is written before the CRL that is made from it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from submerge import UsageError
from submerge_client.atomic_file import sync_folder
from submerge_operate.pki import issued
from submerge_operate.pki.authority import Authority, Certified
from submerge_operate.pki.crl import crl_of, number_of
from submerge_operate.pki.files import PRIVATE, PUBLIC, replace_file, unwritable
from submerge_operate.pki.issued import Entry
from submerge_operate.pki.kit_file import text_of
from submerge_operate.pki.revoked import RevocationList, parse_revoked


class PkiDirectory:
    """The directory of an authority; `passphrase`: of its key, None if that is not encrypted."""

    def __init__(self, path: Path, passphrase: bytes | None = None) -> None:
        self.path = path
        self.kits = path / "kits"
        self.key = path / "ca.key"
        self._passphrase = passphrase
        self._certificate = path / "ca.pem"
        self._record = path / "issued.json"
        self.revoked = path / "revoked"
        self.crl = path / "crl.pem"

    def create(self, authority: Authority, at: datetime) -> None:
        """Create the directory, with a new authority in it, which has revoked nothing.

        Raises UsageError if it is not empty: after an overwritten authority every node would need a
        new kit.
        """
        if self._certificate.exists():
            raise UsageError(
                f"{self.path} has an authority already: choose another directory with --dir"
            )
        if self.key.exists():
            raise UsageError(
                f"{self.key} exists without ca.pem: take that from a backup, or, if"
                f" `submerge pki init` was interrupted, remove {self.path} and start again"
            )
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise UsageError(f"expected a new or an empty directory, got {self.path}")
            self.path.chmod(0o700)
            self.kits.mkdir(mode=0o700)
        except OSError as error:
            raise unwritable(self.path, error) from error
        replace_file(self.key, authority.key_pem(self._passphrase), PRIVATE)
        replace_file(self._record, issued.record_text({}), PUBLIC)
        self.revoke(RevocationList(), authority, {}, at=at)
        replace_file(self._certificate, authority.pem, PUBLIC)

    def authority(self) -> Authority:
        """Return the authority, with its key."""
        return Authority.read(self._read(self._certificate), self._read(self.key), self._passphrase)

    def certificate(self) -> bytes:
        """Return the authority's certificate: PEM."""
        return self._read(self._certificate)

    def record(self) -> dict[str, Entry]:
        """Return the nodes that have a kit, by name."""
        return issued.parse_record(self._read(self._record), str(self._record))

    @contextmanager
    def issuing(self) -> Iterator[dict[str, Entry]]:
        """Lock the directory while kits are made, and save what the body adds to the record.

        It is saved even if the body fails on its way, as those kits exist.
        """
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
        try:
            self.kits.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise unwritable(self.kits, error) from error
        replace_file(path, text_of(certified, authority), PRIVATE)
        return path

    def discard(self, node: str) -> None:
        """Delete a node's kit, if it exists."""
        path = self.kit(node)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error

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
        """Write what is revoked: the list, and then the CRL.

        The CRL names the certificates on the list, and all that a revoked node has been given as
        far as the record has them: its kits hold for a broker until they end otherwise.
        """
        number = number_of(self.crl.read_bytes()) + 1 if self.crl.exists() else 1
        given = (entries[node].serials for node in revoked.nodes if node in entries)
        serials = revoked.serials | {int(each, 16) for serials in given for each in serials}
        replace_file(self.revoked, revoked.text, PUBLIC)
        replace_file(self.crl, crl_of(authority, serials, now=at, number=number), PUBLIC)

    def kit(self, node: str) -> Path:
        """Return the path of a node's kit."""
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

"""Store: an aggregator's records on disk, in one SQLite database.

A `write` that returned is on disk, whole. One that raised has changed nothing. `load` returns
what was written: a file that was torn, cut short or changed is refused, never read in part. It
repairs nothing: what follows from a damaged database is up to the protocol (docs/protocol.md).

1. Exactly one connection, exclusive for as long as the store is open. It may be opened in one
   thread and used in another, but by one at a time: beside a copy (`storage.OnlineCopy`), by
   the one that holds `copies.turn`.
2. A commit waits for the disk (`synchronous=FULL`): acknowledgements depend on it.
3. Each row carries a checksum over key and value, and `load` checks the whole file: SQLite
   itself would return a flipped bit as it is.
4. Nothing else in this process may open the file: closing any descriptor of it would drop
   SQLite's lock (POSIX).
5. A disk that is full costs the writes that meet it, and nothing else (`storage.StoreRoom`).
6. The files are their owner's alone (0600), and none is a symbolic link.
7. A log that lost its name is written into the database, and begun again; for a database that lost
   its name, or its end, nothing can be done.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any

from submerge.errors import SubmergeError, UsageError
from submerge.protocol.machine import Key
from submerge_aggregator.storage import (
    PAGE_BYTES,
    LogFrames,
    OnlineCopy,
    StoreRoom,
    frames_of,
    is_read_only,
)
from submerge_client.files import create_private, is_same, make_private, refuse_link, stat_of
from submerge_client.logs import say

FORM = 7
"""Raise it with a record that earlier versions do not know: they then report a later version, and
no damage. 7 has jobs under way; versions before commit f0bc8489 wrote 1 to 6."""

APPLICATION_ID = int.from_bytes(b"subm", "big")

# WITHOUT ROWID: rows stand in one tree. The index that SQLite would keep beside them is a copy of
# the keys that no checksum covers; with a damaged one a row could come twice.
CREATE = """
CREATE TABLE records (
    key TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL,
    sum BLOB NOT NULL
) WITHOUT ROWID
"""
PUT = """
INSERT INTO records (key, value, sum) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, sum = excluded.sum
"""

OUT_OF_REACH = frozenset(
    # Errors that say nothing about the file's contents, and may be over tomorrow.
    {
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY),
        *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
    }
)


class Database:
    """One connection to an SQLite file, for one thread at a time."""

    _sql: sqlite3.Connection

    def _number(self, pragma: str) -> int:
        (number,) = self._sql.execute(f"PRAGMA {pragma}").fetchone()
        return int(number)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._sql.execute("COMMIT")
        finally:
            # SQLite rolls some failed transactions back by itself, and leaves others open.
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")


class StoreDamaged(UsageError):
    """A store that is not as written; nothing of it is used."""

    says = (
        "expected a whole store in {}, got a damaged one ({}): move it away;"
        " the aggregator then begins a new store, and its children new incarnations"
    )

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, " ".join(reason.split())
        super().__init__(self.says.format(path, self.reason))


class StoreGone(StoreDamaged):
    """A store that was removed, renamed, replaced or cut short while it was open."""

    says = (
        "expected the store {} in its place while it is open, got {}: put it back."
        " Without it the aggregator begins a new store, and its children new incarnations"
    )


class StoreUnavailable(SubmergeError):
    """The disk is full, read-only or broken; the store is unchanged."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"the store {path} cannot be used now: {reason}")


class Store(Database):
    """Records by key, in one file that one process holds."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        refuse_link(path, what="the store")
        self.path = os.path.realpath(path)
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise UsageError(f"a store must be a file, got {self.path}: name another")
        self._create()
        found = frames_of(self._log)
        if not os.access(self.path, os.R_OK):
            why = (
                f"no permission; run as its owner, or make it yours: sudo chown $USER {self.path}*"
            )
            raise StoreUnavailable(self.path, why)
        with self._named_errors():
            self._sql = sqlite3.connect(
                self.path, timeout=0, isolation_level=None, check_same_thread=False
            )
        try:
            with self._named_errors():
                self._open()
                self._room = StoreRoom(self._sql, self.path)
                self.copies = OnlineCopy(self._sql, self.path)
                self._room.measure()
                self._take_over_log(found)
                self._there = os.stat(self.path)
                self._room.keep_log()
            for each in self._files:
                make_private(each, what="store")
        except BaseException:
            self._sql.close()
            raise

    def load(self) -> dict[Key, bytes]:
        """Return all records, as written; the file is read twice: structure, then rows."""
        with self._named_errors():
            return records_in(self._sql, self.path)

    def load_of(self, word: str) -> dict[Key, bytes]:
        """Return the records whose keys begin with a word; see `load`."""
        with self._named_errors():
            first = _name((word, ""))[:-2]
            found = self._sql.execute(
                "SELECT key, value, sum FROM records WHERE substr(key, 1, ?) = ?",
                (len(first), first),
            )
            return _records(found, self.path)

    def write(self, changes: Mapping[Key, bytes | None], *, reset: bool = False) -> None:
        """Put records, and delete those of None, in one transaction, on disk when this returns.

        `reset` deletes all first. After StoreUnavailable nothing has changed; the next may succeed.
        """
        names = {key: _name(key) for key in changes}
        removals = [(names[key],) for key, value in changes.items() if value is None]
        rows = [
            (names[key], value, _checksum(names[key], value))
            for key, value in changes.items()
            if value is not None
        ]

        def put() -> None:
            with self._transaction():
                if reset:
                    self._sql.execute("DELETE FROM records")
                self._sql.executemany("DELETE FROM records WHERE key = ?", removals)
                self._sql.executemany(PUT, rows)

        with self._named_errors():
            # Before the commit: an error after it would deny a write that is on disk.
            self._room.measure()
            self._room.provide(put)
        self.check()

    def check(self) -> None:
        """Make sure that what was committed is in the files of these names: else StoreGone."""
        there = stat_of(self.path)
        if there is None or not is_same(there, self._there):
            # The log goes into the database, wherever it is now.
            with suppress(sqlite3.Error):
                self._room.empty_log()
            raise StoreGone(self.path, "no file" if there is None else "another file")
        if there.st_size < self._there.st_size:
            raise StoreGone(self.path, f"{there.st_size} bytes of {self._there.st_size}")
        self._there = there
        with self._named_errors():
            self._room.keep_log()

    def close(self) -> None:
        """Write the log into the database, and release it for other processes."""
        self.copies.end()
        self._sql.close()

    # -- the files ---------------------------------------------------------------

    @property
    def _log(self) -> str:
        return f"{self.path}-wal"

    @property
    def _files(self) -> tuple[str, ...]:
        return self.path, self._log, f"{self.path}-journal"

    def _create(self) -> None:
        for each in self._files:
            refuse_link(each, what="the store")
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            # SQLite gives its log the mode of the database, and a new one what the umask says.
            create_private(self.path)
        except OSError as error:
            raise StoreUnavailable(self.path, str(error)) from error

    def _open(self) -> None:
        """Lock the file, check whose it is, set it up if it is empty."""
        self._sql.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._sql.execute("PRAGMA trusted_schema = OFF")
        self._sql.execute("PRAGMA cell_size_check = ON")
        self._sql.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        try:
            owner, form = self._number("application_id"), self._number("user_version")
            empty = not self._sql.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY:
                raise
            raise UsageError(
                f"another process uses the store {self.path}: stop it, or name another file"
            ) from error
        if empty and owner == form == 0:
            owner, form = APPLICATION_ID, FORM
            with self._transaction():
                self._sql.execute(CREATE)
                self._sql.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._sql.execute(f"PRAGMA user_version = {FORM}")
        if owner != APPLICATION_ID:
            raise UsageError(
                f"expected a store of submerge in {self.path}, got another program's database:"
                " name another file"
            )
        if form > FORM:
            raise UsageError(
                f"the store {self.path} was written by a later submerge (form {form}, this one"
                f" knows {FORM}): update submerge, or name another file"
            )
        if form < FORM:
            raise UsageError(
                f"the store {self.path} was written by submerge before 28 November 2026 (form"
                f" {form}, this one reads {FORM}): start it once with the submerge of that day"
                " (commit f0bc8489), or name another file"
            )
        self._sql.execute("PRAGMA journal_mode = WAL")
        self._sql.execute("PRAGMA synchronous = FULL")

    def _take_over_log(self, found: LogFrames) -> None:
        """Write the log of the process before into the database; say what it has lost."""
        try:
            read = self._room.empty_log()
        except sqlite3.OperationalError as error:
            if primary_code(error) not in OUT_OF_REACH:
                raise
            # What was acknowledged can be read; the next write tries again.
            say("store's log not written back", level="warning", why=str(error))
            return
        unread = found.unread(read)
        if unread or not found.whole:
            facts = {"path": self._log, "frames_read": read, "commits_unread": unread}
            say("store's log is damaged, its end is not used", level="warning", **facts)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Raise SQLite's errors as ours."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a bug of ours: the store is closed
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # Python cannot decode SQLite's message where that quotes damaged text.
            if primary_code(error) in OUT_OF_REACH:
                why = "its disk is read-only: see dmesg" if is_read_only(self.path) else str(error)
                raise StoreUnavailable(self.path, why) from error
            raise StoreDamaged(self.path, str(error)) from error


def records_in(sql: sqlite3.Connection, path: str) -> dict[Key, bytes]:
    """Return all records of an open database, each as it was written; see `Store.load`."""
    (verdict,) = sql.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StoreDamaged(path, verdict.splitlines()[-1])
    return _records(sql.execute("SELECT key, value, sum FROM records"), path)


def _records(found: Iterable[tuple[Any, Any, Any]], path: str) -> dict[Key, bytes]:
    records = {}
    for key, value, checksum in found:
        if not isinstance(key, str) or not isinstance(value, bytes):
            raise StoreDamaged(path, f"a row has types that no row has: {key!r}")
        if checksum != _checksum(key, value):
            raise StoreDamaged(path, f"{key} does not match its checksum")
        records[tuple(json.loads(key))] = value
    return records


def primary_code(error: Exception) -> int:
    """Return SQLite's primary error code; that of damage if Python itself complains."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


# Made once: `json.dumps` would make an encoder for each key.
_AS_TEXT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _name(key: Key) -> str:
    """Return a key as readable text, a different one for each key."""
    return _AS_TEXT(key)


def _checksum(name: str, value: bytes) -> bytes:
    # JSON holds no zero byte, so name and value cannot be divided elsewhere.
    return blake2b(name.encode() + b"\0" + value, digest_size=16).digest()

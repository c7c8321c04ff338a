"""StoreRoom: how long the store's log may become, and what happens when the disk is full.

1. The log goes into the database (a checkpoint) once it has as many pages as the database, and
   between LEAST_PAGES and MOST_PAGES. It would otherwise fill a disk that has room for the store.
2. A ballast of the log's size is held on the disk. A checkpoint that finds no room gets its room,
   and the ballast is taken again before anything else is written.
3. Without a ballast each commit goes into the database at once: little can be stuck in the log.
4. A log that lost its name is written into the database, and another one is begun.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable

from submerge_aggregator.storage.ballast import Ballast, ballast_of
from submerge_aggregator.storage.log_frames import FRAME, PAGE_BYTES
from submerge_client.logs import say
from submerge_client.private_file import is_same, stat_of

LEAST_PAGES, MOST_PAGES = 64, 1000
"""More pages mean fewer rows written twice, a longer pause when it happens, and larger files."""

LOGGED_BYTES = PAGE_BYTES + FRAME.size
"""Bytes of a page in the log."""

MEASURE_EVERY = 64
"""Commits between two looks at the size of the database."""

NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})
"""A full disk; a quota, or a limit of a file's size."""


def room_for(store_bytes: int) -> int:
    """Return the bytes that the log of a store may take, and its ballast, together."""
    return 2 * _pages_for(store_bytes // PAGE_BYTES) * LOGGED_BYTES


class StoreRoom:
    """The room for one store's log, by its one connection.

    sql : In autocommit mode, with a write-ahead log.
    path : The database.
    """

    def __init__(self, sql: sqlite3.Connection, path: str) -> None:
        self._sql, self._path = sql, path
        self._ballast = Ballast(ballast_of(path))
        self._commits = self._pages = self._limit = 0
        self._full = self._bare = False
        self._log: os.stat_result | None = None

    def measure(self) -> None:
        """Hold the ballast that the log needs, and bound the log by the ballast."""
        held = self._ballast.held
        if held and not self._full and self._commits % MEASURE_EVERY:
            return
        pages = _pages_for(self._page_count())
        self._limit = pages * LOGGED_BYTES
        if not self._ballast.hold(self._limit, spare=self._limit):
            pages = min(pages, max(1, self._ballast.held // LOGGED_BYTES))
        if pages != self._pages:
            self._pages = pages
            self._sql.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            # One large transaction would otherwise leave a large log behind for ever.
            most = max(pages, LEAST_PAGES) * PAGE_BYTES
            self._sql.execute(f"PRAGMA journal_size_limit = {most}")
        self._log_changes()

    def provide(self, action: Callable[[], object]) -> None:
        """Run a transaction; on a full disk empty the log, and run it once more.

        Raises sqlite3.Error if it fails. It has changed nothing then.
        """
        try:
            action()
        except sqlite3.OperationalError as error:
            if not _has_no_room(error):
                raise
            if not self._full:
                self._full = True
                say("disk full: store's log written back", level=logging.WARNING, path=self._path)
            self.empty_log()
            action()
        self._commits += 1

    def empty_log(self) -> int:
        """Write the log into the database, with the ballast's room if there is no other.

        Returns
        -------
        The number of frames that were in the log.

        Raises sqlite3.Error if the room is too small, or the disk fails. Nothing is lost then.
        """
        try:
            return self._checkpoint()
        except sqlite3.OperationalError as error:
            if not _has_no_room(error) or not self._ballast.held:
                raise
        self._ballast.release()
        try:
            return self._checkpoint()
        finally:
            # Before any row: without the ballast the log could fill the disk for good.
            self._ballast.hold(self._limit)

    def keep_log(self) -> None:
        """Begin another log where this one was removed, renamed or replaced.

        Raises sqlite3.Error if the disk does not allow it. What was committed may be lost with this
        process.
        """
        path = f"{self._path}-wal"
        self._log = self._log or stat_of(path)
        if self._log is None or is_same(self._log, stat_of(path)):
            return
        say("store's log was taken away, another begins", level=logging.WARNING, path=path)
        self.empty_log()
        # SQLite opens a log by its name only at this change.
        self._sql.execute("PRAGMA journal_mode = DELETE")
        self._sql.execute("PRAGMA journal_mode = WAL")
        self.empty_log()
        self._log = stat_of(path)

    def _checkpoint(self) -> int:
        # Only the first one says how long the log was; only the second one cuts it to nothing.
        _, frames, _ = self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return max(0, int(frames))

    def _page_count(self) -> int:
        (number,) = self._sql.execute("PRAGMA page_count").fetchone()
        return int(number)

    def _log_changes(self) -> None:
        """Log that the room for the ballast is missing, and that it is there again."""
        bare = not self._ballast.held
        if bare and not self._bare:
            facts = {"path": self._path, "bytes": 2 * self._limit}
            say("disk nearly full: no room for the ballast", level=logging.WARNING, **facts)
        if (self._full or self._bare) and not bare and self._ballast.beside(self._limit):
            self._full = self._bare = False
            say("store has its room again", path=self._path)
        self._bare |= bare


def _pages_for(pages: int) -> int:
    """Return the length of the log for a database of so many pages."""
    return min(max(pages, LEAST_PAGES), MOST_PAGES)


def _has_no_room(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", None) in NO_ROOM

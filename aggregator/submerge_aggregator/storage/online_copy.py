"""OnlineCopy: a copy of the store while its commits go on, by SQLite's online backup.

The store's lock is exclusive, so a second connection would not get in: the copy goes over the
store's own connection. SQLite sees to it that pages which a commit changes meanwhile are changed
in the copy, too.

1. One thread at a time uses the connection: it holds `turn`. A batch holds it from its first
   message to its commit, the copy for one step.
2. After each step the copy waits for as long as the step took, so that a batch always gets in.
3. The last step leaves `turn` held until `at_end` has returned: the copy is the store as of that
   commit, and so is the machine.
4. The copy is a file without a name: whatever ends the process, nothing of it is left.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from threading import Event, Lock
from typing import TypeVar

from submerge.errors import SubmergeError
from submerge_aggregator.storage.room import PAGE_BYTES, room_for
from submerge_client.files import create_private

Found = TypeVar("Found")

STEP_PAGES = 256
"""More pages copy faster, and delay a commit for longer: 1 MiB takes a few milliseconds."""

LEAST_PAUSE_S = 0.0005


class CopyFailed(SubmergeError):
    """No copy was made; the store is as it was."""


class OnlineCopy:
    """Copies one store's database.

    sql : The store's; it may be used from several threads.
    path : The database. The copy is made on the same disk, and needs its room there.

    turn : Held by the thread that uses the connection.
    """

    def __init__(self, sql: sqlite3.Connection, path: str) -> None:
        self.turn = Lock()
        self._sql, self._path = sql, path
        self._copying, self._ended = Lock(), Event()

    def make(
        self, at_end: Callable[[], Found], progress: Callable[[int, int], None]
    ) -> tuple[int, Found]:
        """Copy the database; return a file that the caller closes, and what `at_end` returned.

        `at_end` is called at the copy's commit, before any later one; `progress` after each step
        with bytes copied, and bytes in all: both may change with commits.
        """
        if not self._copying.acquire(blocking=False):
            raise CopyFailed("another copy of the store is being made: wait for its end")
        try:
            self._check_open()
            return self._made(at_end, progress)
        except (OSError, sqlite3.Error) as error:
            raise CopyFailed(f"no copy beside the store {self._path}: {error}") from error
        finally:
            self._copying.release()

    def end(self) -> None:
        """Make no more copies, and wait for the end of one that is being made."""
        self._ended.set()
        with self._copying:
            pass

    def _made(
        self, at_end: Callable[[], Found], progress: Callable[[int, int], None]
    ) -> tuple[int, Found]:
        with self.turn:
            (pages,) = self._sql.execute("PRAGMA page_count").fetchone()
        self._check_room(pages * PAGE_BYTES)
        target, fd = _nameless(f"{self._path}.copying")
        try:
            with self.turn:
                self._step_through(target, progress)
                found = at_end()
        except BaseException:
            os.close(fd)
            raise
        finally:
            target.close()
        return fd, found

    def _step_through(
        self, target: sqlite3.Connection, progress: Callable[[int, int], None]
    ) -> None:
        """Copy step by step; `turn` is held at the start, at each step, and at the end."""
        began = time.monotonic()

        def after_step(status: int, left: int, pages: int) -> None:
            nonlocal began
            if status == sqlite3.SQLITE_DONE:
                return  # no commit may come between the last step and `at_end`
            self.turn.release()
            try:
                progress((pages - left) * PAGE_BYTES, pages * PAGE_BYTES)
                time.sleep(max(LEAST_PAUSE_S, time.monotonic() - began))
            finally:
                self.turn.acquire()
            self._check_open()
            began = time.monotonic()

        self._sql.backup(target, pages=STEP_PAGES, progress=after_step)

    def _check_open(self) -> None:
        if self._ended.is_set():
            raise CopyFailed("the aggregator is stopping: ask again when it serves")

    def _check_room(self, size: int) -> None:
        """Check that the copy leaves the store's log and ballast their room."""
        disk = os.statvfs(os.path.dirname(self._path))
        free, spare = disk.f_bavail * disk.f_frsize, room_for(size)
        if disk.f_blocks and free < size + spare:
            raise CopyFailed(
                f"a copy needs {size + spare:,} bytes on the disk of {self._path} while it is"
                f" made, and {free:,} are free: free some space"
            )


def _nameless(path: str) -> tuple[sqlite3.Connection, int]:
    """Return an empty database without a name, and a descriptor of it."""
    if os.path.lexists(path):
        os.unlink(path)  # of a process that was killed between two lines below
    create_private(path)
    target = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        # It is worth nothing before it is whole: no journal, and no waiting for the disk.
        target.execute("PRAGMA journal_mode = OFF")
        target.execute("PRAGMA synchronous = OFF")
        fd = os.open(path, os.O_RDWR)
        os.unlink(path)
    except BaseException:
        target.close()
        raise
    return target, fd

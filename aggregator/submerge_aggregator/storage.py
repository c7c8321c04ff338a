"""What is beside the store: room for its log, copies of it, and when the last copy was made.

The log goes into the database (a checkpoint) once it has as many pages as that, and between
LEAST_PAGES and MOST_PAGES. A ballast of the log's size is held on the disk: a checkpoint that finds
no room gets its room, and the ballast is taken again before anything else is written.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import NamedTuple, TypeVar

import msgspec

from submerge.errors import SubmergeError
from submerge.protocol.names import LAST_SECOND
from submerge_client.files import PRIVATE, atomic_write, create_private, is_same, stat_of
from submerge_client.logs import say

PAGE_BYTES = 4096  # bytes of a page, in the database and in the log

HEADER = struct.Struct(">8I")
"""Magic, format, page size, number of the checkpoint, two salts, two checksums."""

FRAME = struct.Struct(">6I")
"""Page, pages of the database after a commit (else 0), two salts, two checksums."""

MAGIC = 0x377F0682  # the lowest bit is 1 where checksums are computed over big-endian words

MASK = 0xFFFFFFFF


class LogFrames(NamedTuple):
    """The frames of the log's present round; those of earlier rounds have other salts."""

    whole: bool  # the header is as it was written; otherwise SQLite reads nothing
    commits: tuple[int, ...]  # numbers of the frames that end a transaction, from 1

    def unread(self, read: int) -> int:
        """Return how many transactions are in the log beyond the frames that SQLite has read."""
        return sum(number > read for number in self.commits)


NOTHING = LogFrames(True, ())


def frames_of(path: str) -> LogFrames:
    """Return what the log of a store holds; nothing if there is none, or it cannot be read."""
    try:
        with open(path, "rb") as log:
            header = log.read(HEADER.size)
            if len(header) < HEADER.size:
                return NOTHING
            magic, _, stated, _, *salts, first, second = HEADER.unpack(header)
            whole = magic & ~1 == MAGIC and _checksum(header[:24], magic) == (first, second)
            step = FRAME.size + (stated if whole else PAGE_BYTES)
            size = os.fstat(log.fileno()).st_size
            commits = []
            for number in range(1, (size - HEADER.size) // step + 1):
                log.seek(HEADER.size + (number - 1) * step)
                page, pages, *others = FRAME.unpack(log.read(FRAME.size))
                # Without a header there are no salts to compare: every frame counts.
                if page and pages and (not whole or others[:2] == salts):
                    commits.append(number)
            return LogFrames(whole, tuple(commits))
    except (OSError, struct.error):
        return NOTHING


def _checksum(data: bytes, magic: int) -> tuple[int, int]:
    """Return SQLite's two checksums over an even number of 32-bit words."""
    words = struct.unpack(f"{'>' if magic & 1 else '<'}{len(data) // 4}I", data)
    first = second = 0
    for i in range(0, len(words), 2):
        first = (first + words[i] + second) & MASK
        second = (second + words[i + 1] + first) & MASK
    return first, second


PIECE = 1 << 16


def ballast_of(store: str | os.PathLike[str]) -> str:
    return f"{os.path.realpath(store)}.ballast"


class Ballast:
    """One file without content."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.held = 0
        with suppress(OSError):
            found = os.lstat(path)
            self.held = found.st_size if stat.S_ISREG(found.st_mode) else 0

    def hold(self, size: int, *, spare: int = 0) -> bool:
        """Make it at least `size` bytes long, with `spare` free beside it; return whether it is."""
        if self.held >= size:
            return True
        if not self.beside(size + spare - self.held):
            return False
        self.release()
        try:
            # Random bytes: a file system that compresses, or leaves out zeros, keeps no room.
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE)
            with open(fd, "wb", buffering=0) as file:
                while self.held < size:
                    self.held += file.write(os.urandom(min(PIECE, size - self.held)))
                os.fsync(fd)
        except OSError:
            self.release()
            return False
        return True

    def beside(self, size: int) -> bool:
        """Return whether as many bytes are free beside it, as far as that is known."""
        free = _free(os.path.dirname(self._path))
        return free is None or free >= size

    def release(self) -> None:
        with suppress(OSError):  # without one, each commit goes into the database at once
            os.unlink(self._path)
        self.held = 0


def _free(folder: str) -> int | None:
    """Return the bytes that this user may still write; None if that is unknown."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else None


LEAST_PAGES, MOST_PAGES = 64, 1000
"""More pages mean fewer rows written twice, a longer pause when it happens, and larger files."""

LOGGED_BYTES = PAGE_BYTES + FRAME.size  # bytes of a page in the log
MEASURE_EVERY = 64  # commits between two looks at the size of the database

NO_ROOM = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})
"""A full disk; a quota, or a limit of a file's size."""


def room_for(store_bytes: int) -> int:
    """Return the bytes that the log of a store may take, and its ballast, together."""
    return 2 * _pages_for(store_bytes // PAGE_BYTES) * LOGGED_BYTES


class StoreRoom:
    """The room for one store's log, by its one connection, in autocommit mode with a WAL."""

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
        (count,) = self._sql.execute("PRAGMA page_count").fetchone()
        pages = _pages_for(int(count))
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
        """Run a transaction, whole or not at all; on a full disk once more, the log emptied."""
        try:
            action()
        except sqlite3.OperationalError as error:
            if not self._has_no_room(error):
                raise
            if not self._full:
                self._full = True
                say("disk full: store's log written back", level="warning", path=self._path)
            self.empty_log()
            action()
        self._commits += 1

    def empty_log(self) -> int:
        """Write the log into the database, with the ballast's room at worst; return its frames."""
        try:
            return self._checkpoint()
        except sqlite3.OperationalError as error:
            if not self._has_no_room(error) or not self._ballast.held:
                raise
        self._ballast.release()
        try:
            return self._checkpoint()
        finally:
            # Before any row: without the ballast the log could fill the disk for good.
            self._ballast.hold(self._limit)

    def keep_log(self) -> None:
        """Begin another log where this one was removed, renamed or replaced."""
        path = f"{self._path}-wal"
        self._log = self._log or stat_of(path)
        if self._log is None or is_same(self._log, stat_of(path)):
            return
        say("store's log was taken away, another begins", level="warning", path=path)
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

    def _has_no_room(self, error: sqlite3.OperationalError) -> bool:
        code = getattr(error, "sqlite_errorcode", None)
        return code in NO_ROOM and not is_read_only(self._path)

    def _log_changes(self) -> None:
        """Log that the room for the ballast is missing, and that it is there again."""
        bare = not self._ballast.held
        if bare and not self._bare:
            facts = {"path": self._path, "bytes": 2 * self._limit}
            say("disk nearly full: no room for the ballast", level="warning", **facts)
        if (self._full or self._bare) and not bare and self._ballast.beside(self._limit):
            self._full = self._bare = False
            say("store has its room again", path=self._path)
        self._bare |= bare


def is_read_only(path: str) -> bool:
    """Return whether a file's disk became read-only, as Linux makes a failing one."""
    try:
        os.utime(path)
    except OSError as error:
        return error.errno == errno.EROFS
    return False


def _pages_for(pages: int) -> int:
    """Return the length of the log for a database of so many pages."""
    return min(max(pages, LEAST_PAGES), MOST_PAGES)


# OnlineCopy: a copy of the store while its commits go on (docs/decisions/0046).
#
# 1. One thread at a time uses the connection: it holds `turn`. A batch holds it from its first
#    message to its commit, the copy for one step.
# 2. After each step the copy waits for as long as the step took, so that a batch always gets in.
# 3. The last step leaves `turn` held until `at_end` has returned: the copy is the store as of that
#    commit, and so is the machine.
# 4. The copy is a file without a name: whatever ends the process, nothing of it is left.

Found = TypeVar("Found")

STEP_PAGES = 256
"""More pages copy faster, and delay a commit for longer: 1 MiB takes a few milliseconds."""

LEAST_PAUSE_S = 0.0005


class CopyFailed(SubmergeError):
    """No copy was made; the store is as it was."""


class OnlineCopy:
    """Copies one store's database, on the same disk.

    sql : The store's; it may be used from several threads.
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

        at_end : Called at the copy's commit, before any later one.
        progress : Called after each step with bytes copied, and bytes in all: both may change.
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


# LastBackup: when the newest copy of a store was made that a client has fetched whole.
#
# It is kept in a small file beside the store, `root.db.last-backup`, so that a root that starts
# again knows it. Not in the store: then each copy would differ from the store that it was made of,
# and a restored store would say that it was never copied. A copy that was made and not fetched, or
# not to its end, is none. Where the file is lost, or cannot be read, the next copy writes it again.

MOST_BYTES = 4096  # of the file that are read


@dataclass(frozen=True, slots=True)
class BackupRecord:
    made_s: float
    bytes: int


class LastBackup:
    """The newest copy of a store; without a store's file nothing is kept."""

    def __init__(self, store: str | os.PathLike[str] | None) -> None:
        self._path = None if store is None else Path(f"{os.fspath(store)}.last-backup")
        self.made_s = 0.0 if self._path is None else _read(self._path)

    def note(self, made_s: float, size: int) -> None:
        """Remember a copy; where it cannot be written, for as long as this process runs."""
        self.made_s = made_s
        if self._path is None:
            return
        try:
            atomic_write(self._path, msgspec.json.encode(BackupRecord(made_s, size)), mode=PRIVATE)
        except OSError as error:
            say("backup not noted", level="warning", why=f"{self._path}: {error.strerror}")


def _read(path: Path) -> float:
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(MOST_BYTES), type=BackupRecord)
    except FileNotFoundError:
        return 0.0
    except (OSError, msgspec.MsgspecError) as error:
        why = f"{path}: {error}; the next backup writes it again"
        say("time of the last backup unknown", level="warning", why=why)
        return 0.0
    return found.made_s if 0 < found.made_s <= LAST_SECOND else 0.0

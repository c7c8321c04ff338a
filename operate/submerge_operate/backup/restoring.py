"""put_in_place(): a copy becomes the store of a stopped root; the store before stays, aside.

1. The path of the store always names a whole store: the old one, and then the copy.
2. As long as the old one is there, its lock is held: no aggregator starts with it meanwhile.
3. Nothing is overwritten. The old store gets a second name first.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from submerge.errors import UsageError
from submerge_aggregator.backup.checking import StoreCopy
from submerge_aggregator.questions.views import socket_of
from submerge_client.atomic_file import atomic_file, sync_folder
from submerge_client.private_file import PRIVATE, refuse_link

BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
NO_PROCESS = frozenset({errno.ECONNREFUSED, errno.ENOENT})


def put_in_place(copy: StoreCopy, store: Path) -> Path | None:
    """Put a copy in the place of a store.

    Returns
    -------
    The path of the store that was there before; None if there was none.

    Raises UsageError if an aggregator runs with the store, or its folder cannot be written.
    """
    refuse_link(store, what="the store")
    store = store.absolute()
    aside = _free_name(store) if store.exists() else None
    try:
        with _kept_from_use(store):
            _replace(copy, store, aside)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise UsageError(
            f"expected a store that can be replaced, got {store}: {error.strerror}; run this as"
            " the aggregator's user, or as root"
        ) from error
    sync_folder(store.parent)
    return aside


def _replace(copy: StoreCopy, store: Path, aside: Path | None) -> None:
    log = store.with_name(f"{store.name}-wal")
    with (
        copy.path.open("rb") as source,
        atomic_file(store, mode=PRIVATE, beside=f"{store.name}.restoring") as file,
    ):
        left = copy.identity.bytes
        while left:
            left -= file.write(source.read(min(1 << 20, left)))
        if os.geteuid() == 0:
            # The aggregator does not run as root, and the file is for its owner alone.
            owner = os.stat(store if store.exists() else store.parent)
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        if aside is None:
            return
        if log.exists():  # of a store that could not be opened
            log.rename(aside.with_name(f"{aside.name}-wal"))
        try:
            os.link(store, aside)
        except OSError:
            shutil.copy2(store, aside)  # a file system without hard links


@contextmanager
def _kept_from_use(store: Path) -> Iterator[None]:
    """Hold the lock of a store, and have all of it in one file; a damaged one has no lock."""
    if _answers(socket_of(store)):
        raise UsageError(_running(store))
    if not store.exists():
        yield
        return
    with closing(sqlite3.connect(store, timeout=0, isolation_level=None)) as sql:
        try:
            sql.execute("PRAGMA locking_mode = EXCLUSIVE")
            # Its log goes into it, and none is removed under this name when it is closed.
            sql.execute("PRAGMA journal_mode = DELETE").fetchone()
            sql.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in BUSY:
                raise UsageError(_running(store)) from error
            if code not in DAMAGED:  # a damaged one is what copies are for
                raise UsageError(f"the store {store} cannot be opened: {error}") from error
        yield


def _running(store: Path) -> str:
    return (
        f"expected a stopped root, got one that runs with {store}: stop it first"
        " (systemctl stop submerge-aggregator)"
    )


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            # One that does not let us in has a process behind it, too.
            return probe.connect_ex(str(path)) not in NO_PROCESS
        except OSError:
            return False  # too long a path for a socket: none is there


def _free_name(store: Path) -> Path:
    """Return a name beside the store that no file has."""
    dated = f"{store.name}.before-{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}"
    path, number = store.with_name(dated), 1
    while path.exists():
        number += 1
        path = store.with_name(f"{dated}-{number}")
    return path

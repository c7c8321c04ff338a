"""`submerge backup restore`: a copy in the place of a stopped root's store."""

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
from typing import TYPE_CHECKING

import click

from submerge.errors import SubmergeError, UsageError
from submerge_aggregator.questions.views import socket_of
from submerge_client.files import PRIVATE, atomic_file, refuse_link, sync_folder
from submerge_files.console.admin_client import AdminCommand
from submerge_files.console.options import FILE, flag_option
from submerge_operate.backup import CONFIG

if TYPE_CHECKING:
    from submerge_aggregator.backup.checking import CopyIdentity, StoreCopy
    from submerge_aggregator.config import AggregatorConfig

BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
NO_PROCESS = frozenset({errno.ECONNREFUSED, errno.ENOENT})


def put_in_place(copy: StoreCopy, store: Path) -> Path | None:
    """Put a copy in the place of a store; return the path of the one before, if there was one."""
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


@click.command(
    cls=AdminCommand, epilog="Example: submerge backup restore root.backup --config root.toml"
)
@click.argument("file", type=FILE)
@CONFIG
@flag_option("--anyway", "Also where the models are not those that the root had.")
def command(file: Path, config: Path, anyway: bool) -> None:
    """Make FILE, a copy by `submerge backup`, the store of a stopped root.

    FILE is checked first. The store before is kept beside it under another name. Nodes that run
    report again all that they hold, and no reading counts twice. What nodes had reported since
    FILE was made and hold no more is missing; so are orders given since, bans among them.
    """
    from submerge_aggregator.backup.checking import check_models, read_copy, refuse_different
    from submerge_operate.root_config import root_config

    loaded = root_config(config)
    copy = read_copy(file)
    found = check_models(copy, loaded)
    if not anyway:
        try:
            refuse_different(found)
        except SubmergeError as error:
            raise UsageError(f"{error}; add --anyway to restore it all the same") from error
    before = put_in_place(copy, loaded.store)
    _record(loaded, copy.identity)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(copy.identity.wall))
    learnt = sum(each.learnt for each in found)
    click.echo(f"{loaded.store} is the store of {moment}, with {learnt:,} readings")
    if before is not None:
        click.echo(f"the store before is {before}")
    click.echo("start the root; then give again the orders since (submerge aggregator audit)")


def _record(config: AggregatorConfig, identity: CopyIdentity) -> None:
    """Add the order to the audit log, if there is one: it would be the aggregator's file."""
    from submerge_aggregator.audit.config import audit_path
    from submerge_aggregator.audit.entries import line_of
    from submerge_aggregator.audit.files import AuditFiles

    path = audit_path(config.audit, config.store)
    if path is None or not path.exists():
        return
    facts = {"by": f"uid {os.getuid()}", "verb": "restore", "as_of": identity.wall}
    files = AuditFiles(path)
    files.append(line_of("order", time.time(), facts))
    files.close()

"""`submerge backup`: copies of a root's store, made while it runs, and whether one is good."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from submerge.errors import SubmergeError, UsageError
from submerge_aggregator.questions.views import socket_of
from submerge_client.files import PRIVATE, atomic_file, refuse_link, sync_folder
from submerge_files.console.admin_client import AdminClient, AdminCommand, AdminGroup, value_in
from submerge_files.console.options import (
    FILE,
    AggregatorOptions,
    aggregator_options,
    config_here,
    config_option,
    flag_option,
    json_option,
)
from submerge_files.console.progress import advancing
from submerge_files.console.ways import NoAnswer

if TYPE_CHECKING:
    from submerge_aggregator.backup import CopyIdentity, StoreCopy
    from submerge_aggregator.config import AggregatorConfig

ENDING = ".backup"
DATED = r"\d{4}-\d\d-\d\dT\d{6}Z"

DEAD_S = 86_400.0
"""A file that a command has begun and not finished for so long is of one that was killed."""


def dated(folder: Path, node: str) -> Path:
    return folder / f"{node}-{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}{ENDING}"


def remove_older(newest: Path, node: str, keep: int) -> list[Path]:
    """Remove copies of a node beyond so many, the oldest first; return them."""
    # The newest stays, whatever the clock was.
    named = re.compile(rf"{re.escape(node)}-{DATED}{re.escape(ENDING)}")
    begun = re.compile(rf"\.{named.pattern}\.\d+\.part")
    folder = list(newest.parent.iterdir())
    others = sorted(each for each in folder if named.fullmatch(each.name) and each != newest)
    gone = others[: max(0, len(others) + 1 - keep)]
    for each in gone:
        each.unlink(missing_ok=True)
    for each in folder:
        if begun.fullmatch(each.name):
            with suppress(OSError):
                if time.time() - each.stat().st_mtime > DEAD_S:
                    each.unlink()
    return gone


FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def fetch(admin: AdminClient, path: Path, *, anyway: bool) -> CopyIdentity:
    """Have the aggregator copy its store to a file for its owner alone; `anyway`: over another."""
    from submerge_aggregator.backup import identity_of

    partial = f".{path.name}.{os.getpid()}.part"
    _refuse_existing(path, anyway=anyway)
    with _one_line(path), atomic_file(path, mode=PRIVATE, beside=partial) as file:
        _receive(admin, file)
        file.flush()
        try:
            identity = identity_of(path.with_name(partial))
        except SubmergeError as error:
            raise NoAnswer(f"the copy was changed on its way: {error}") from error
        # It may have come in between: a copy takes its time.
        _refuse_existing(path, anyway=anyway)
    sync_folder(path.parent)
    return identity


def _receive(admin: AdminClient, file: BinaryIO) -> None:
    from submerge_aggregator.backup import BackupView

    view = value_in(admin.post("backup"), BackupView)
    try:
        with advancing("bytes copied") as copied:
            size, at = view.bytes, 0
            while size is None:
                before, view = view.copied, admin.read(BackupView, "backup", view.name)
                copied(view.copied - before)
                size = view.bytes
        with advancing("fetching", size) as fetched:
            while at < size:
                piece = admin.get("backup", view.name, str(at))
                if not piece:
                    raise NoAnswer(f"the copy ends after {at:,} of {size:,} bytes: try again")
                file.write(piece)
                at += len(piece)
                fetched(len(piece))
    finally:
        # Else the next backup would have to wait until the aggregator notices that this one ended.
        with suppress(SubmergeError):
            admin.post("backup", view.name, "end")


def _refuse_existing(path: Path, *, anyway: bool) -> None:
    if path.exists() and not anyway:
        raise UsageError(
            f"expected a new file, got {path}, which exists: add --anyway to replace it"
        )


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise NoAnswer(f"the disk of {path.parent} is full: free some space") from error
        raise UsageError(
            f"expected a folder that can be written, got {path.parent}: {error.strerror}"
        ) from error


@click.group(
    cls=AdminGroup,
    invoke_without_command=True,
    epilog="""\b
Example: submerge backup --config root.toml --to root.backup
         submerge backup --config root.toml --to /backup --keep 14
         submerge backup check root.backup --config root.toml""",
)
@aggregator_options(None)
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="A new file; or a folder, in which the copy gets a dated name. A name without an ending is"
    " a folder: it is made.",
)
@click.option(
    "--keep",
    type=click.IntRange(1),
    help="Copies of this root that stay in the folder; older ones are removed.",
)
@flag_option("--anyway", "Replace a file that exists.")
@json_option("Print what was copied, as JSON.")
def command(
    at: AggregatorOptions, to: Path | None, keep: int | None, anyway: bool, as_json: bool
) -> None:
    """Copy the store of a running root, while it goes on.

    The copy is one file, there whole or not at all, and for you alone. `check` says whether one is
    good, and `submerge backup restore` puts one in place. Status 1 if the root does not answer,
    or has no room for a copy.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    if to is None:
        raise UsageError("expected --to FILE or --to FOLDER, got neither")

    admin, folder = at.admin(), to.is_dir() or not (to.exists() or to.suffix)
    if keep is not None and not folder:
        raise UsageError(
            f"--keep is for a folder of dated copies, got --to {to}: create the folder"
        )
    node = str(json.loads(admin.get())["node"])
    if folder and to.parent.is_dir():
        to.mkdir(mode=0o700, exist_ok=True)
    path = dated(to, node) if folder else to
    identity = fetch(admin, path, anyway=anyway)
    gone = [] if keep is None else remove_older(path, node, keep)
    if as_json:
        click.echo(json.dumps({**_facts(path, identity), "removed": [str(each) for each in gone]}))
    else:
        click.echo(f"{path}: {_text(identity)}")


@command.command(epilog="Example: submerge backup check root.backup --config root.toml")
@click.argument("file", type=FILE)
@click.option(
    "--config",
    type=FILE,
    default=config_here,
    help="The configuration of the root, to compute its models again.  [default: root.toml or"
    " box.toml here]",
)
@json_option("Print each group's finding, as JSON.")
def check(file: Path, config: Path | None, as_json: bool) -> None:
    """Say whether FILE is good: open it offline, and with a configuration compute its models again.

    Each has to be the one that the root had at that moment, byte for byte. FILE is only read, no
    node is spoken to, and the root may run. Status 1 if FILE is damaged, or gives another model;
    2 if it is no copy, or of another root.
    """
    from submerge_aggregator.backup import CopyDamaged, check_models, read_copy
    from submerge_operate.root_config import root_config

    loaded = None if config is None else root_config(config)
    try:
        with advancing("reading", file.stat().st_size if file.exists() else 0) as read:
            copy = read_copy(file, read)
        found = [] if loaded is None else check_models(copy, loaded)
    except CopyDamaged as error:
        click.echo(f"submerge: {error}", err=True)
        sys.exit(1)
    if as_json:
        groups = {each.group: {"learnt": each.learnt, "differs": each.differs} for each in found}
        click.echo(json.dumps({**_facts(file, copy.identity), "groups": groups}))
    else:
        click.echo(f"{file}: {_text(copy.identity)}")
        for each in found:
            says = each.differs or "the model is the one that the root had"
            click.echo(f"{each.group}: {each.learnt:,} readings; {says}")
    if any(each.differs for each in found):
        sys.exit(1)


def _facts(path: Path, identity: CopyIdentity) -> dict[str, object]:
    return {
        "file": str(path),
        "node": identity.node,
        "incarnation": identity.incarnation,
        "at": identity.wall,
        "bytes": identity.bytes,
        "learnt": sum(each.learnt for each in identity.groups.values()),
    }


def _text(identity: CopyIdentity) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(identity.wall))
    learnt = sum(each.learnt for each in identity.groups.values())
    return f"{identity.node} at {moment}, {learnt:,} readings, {identity.bytes:,} bytes"


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
    dated = f"{store.name}.before-{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}"
    path, number = store.with_name(dated), 1
    while path.exists():
        number += 1
        path = store.with_name(f"{dated}-{number}")
    return path


@command.command(
    cls=AdminCommand, epilog="Example: submerge backup restore root.backup --config root.toml"
)
@click.argument("file", type=FILE)
@config_option("The configuration of the root.  [default: root.toml or box.toml here]")
@flag_option("--anyway", "Also where the models are not those that the root had.")
def restore(file: Path, config: Path, anyway: bool) -> None:
    """Make FILE, a copy by `submerge backup`, the store of a stopped root.

    FILE is checked first. The store before is kept beside it under another name. Nodes that run
    report again all that they hold, and no reading counts twice. What nodes had reported since
    FILE was made and hold no more is missing; so are orders given since, bans among them.
    """
    from submerge_aggregator.backup import check_models, orders_in, read_copy, refuse_different
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
    for order, nodes in orders_in(copy, loaded).items():
        click.echo(f"it brings back, {order}: {', '.join(nodes)}")
    click.echo("start the root; then give again the orders since (submerge aggregator audit)")


def _record(config: AggregatorConfig, identity: CopyIdentity) -> None:
    """Add the order to the audit log, if there is one: it would be the aggregator's file."""
    from submerge_aggregator.audit import AuditFiles, audit_path, line_of

    path = audit_path(config.audit, config.store)
    if path is None or not path.exists():
        return
    facts = {"by": f"uid {os.getuid()}", "verb": "restore", "as_of": identity.wall}
    files = AuditFiles(path)
    files.append(line_of("order", time.time(), facts))
    files.close()

"""fetch(): a copy of a running root's store, as a file that is whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from submerge.errors import SubmergeError, UsageError
from submerge_aggregator.backup.copy_file import CopyIdentity, identity_of
from submerge_aggregator.backup.jobs import BackupView
from submerge_client.atomic_file import atomic_file, sync_folder
from submerge_client.private_file import PRIVATE
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.progress import advancing, counting
from submerge_files.console.ways import NoAnswer

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def fetch(admin: AdminClient, path: Path, *, anyway: bool) -> CopyIdentity:
    """Have the aggregator copy its store, and write the copy to a file, for its owner alone.

    anyway : also in the place of another file

    Raises UsageError if the file exists, its folder cannot be written, or the aggregator is no
    root; NoAnswer if the aggregator is not there, cannot make a copy now, or the disk is full.
    """
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
    view = _view(admin.post("backup"))
    try:
        with counting("bytes copied") as copied:
            size, at = view.bytes, 0
            while size is None:
                before, view = view.copied, _view(admin.get("backup", view.name))
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


def _view(answer: bytes) -> BackupView:
    return msgspec.json.decode(answer, type=BackupView)


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

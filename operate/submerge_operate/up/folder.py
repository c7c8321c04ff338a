"""The folder of a machine's files: made where it is missing, and refused where it is another's."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from submerge import PeerError, UsageError
from submerge.client.pending_finals import CHECKPOINT
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.listening import listen
from submerge_client.checkpoint import CheckpointFile
from submerge_proto.kept import records


def make_folder(folder: Path, *, owner: str | None = None) -> list[Path]:
    """Make a writable folder for what a machine knows; return the new ones, innermost first."""
    # `owner` gets a folder that is made here; by default this process's user has it.
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if owner is not None:
            for each in missing:
                shutil.chown(each, owner)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        cure = ", or change its owner (chown)" if isinstance(error, PermissionError) else ""
        raise UsageError(
            f"folder: expected a folder to write in, got {str(folder)!r}: {error.strerror};"
            f" name another{cure}"
        ) from error
    return missing


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make the folder; what was made goes again if the body refuses before it wrote anything."""
    made = make_folder(folder)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # it is not empty
            for each in made:
                each.rmdir()
        raise


def check_addresses(config: AggregatorConfig) -> None:
    """Refuse addresses that are taken, before there is a store."""
    # With a store, its lock says more: the same machine may run already.
    if config.store.exists():
        return
    for setting, endpoint in config.addresses.items():
        listen(endpoint, setting=setting).close()


def check_name(state: Path, node: str) -> None:
    """Refuse the folder of a machine of another name: its root would take neither's readings."""
    # A damaged checkpoint says nothing here.
    if not state.is_file():
        return
    file = CheckpointFile(state)
    try:
        kept = file.load().get(CHECKPOINT)
        name = node if kept is None else records.unpack(CHECKPOINT, kept).report.stamp.node
    except (OSError, PeerError):
        return
    finally:
        file.close()
    if name != node:
        raise UsageError(
            f"node: expected {name!r}, whose readings are in {str(state.parent)!r}, got {node!r}:"
            " set it back, or name a new folder for a new machine"
        )

"""LastBackup: when the newest copy of a store was made that a client has fetched whole.

It is kept in a small file beside the store, `root.db.last-backup`, so that a root that starts again
knows it. Not in the store: then each copy would differ from the store that it was made of, and a
restored store would say that it was never copied. A copy that was made and not fetched, or not to
its end, is none. Where the file is lost, or cannot be read, the next copy writes it again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from submerge.protocol.names import LAST_SECOND
from submerge_client.files import PRIVATE, atomic_write
from submerge_client.logs import say

MOST_BYTES = 4096
"""Of the file that are read."""


@dataclass(frozen=True, slots=True)
class BackupRecord:
    """What is kept of the newest copy."""

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

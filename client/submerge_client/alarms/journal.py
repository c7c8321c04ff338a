"""Journal: what each sink has told, in a small file beside the checkpoint.

It promises that `note` returns when the file is on disk, and that power lost at any moment
leaves the file before or the one after. A disk that does not take it is said once: what was
told is then remembered until the process ends, and may be told again by the next.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection
from pathlib import Path

import msgspec

from submerge_client.alarms.delivered import Delivered
from submerge_client.atomic_file import atomic_write, sync_folder
from submerge_client.logs import say

FORM = 1
MOST_BYTES = 1 << 24
"""What is larger is no journal."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """What stands in it."""

    form: int
    sinks: dict[str, Delivered]


class Journal:
    """What each sink has told; for sinks in threads of their own, too.

    Parameters
    ----------
    path : Path
        It is made when there is something to note.
    sinks : collection of str
        Names of those that there are; what others have told is forgotten.
    """

    def __init__(self, path: Path, sinks: Collection[str]) -> None:
        self._path = Path(os.path.realpath(path))
        self._lock = threading.Lock()
        self._failed = False
        self._delivered = {
            name: delivered for name, delivered in self._load().items() if name in sinks
        }

    def delivered(self, sink: str) -> Delivered | None:
        """Return what a sink has told; None if it is new."""
        return self._delivered.get(sink)

    def note(self, sink: str, delivered: Delivered) -> None:
        """Remember what a sink has told; on disk when this returns, if the disk lets it."""
        with self._lock:
            if self._delivered.get(sink) == delivered and not self._failed:
                return
            self._delivered[sink] = delivered
            try:
                self._write(msgspec.json.encode(_File(FORM, self._delivered)))
            except OSError as error:
                if not self._failed:
                    why = f"{error.strerror or error}"
                    say("what was told of alarms not kept", level=logging.ERROR, why=why)
                self._failed = True
            else:
                self._failed = False

    def _load(self) -> dict[str, Delivered]:
        try:
            with open(self._path, "rb") as file:
                read = msgspec.json.decode(file.read(MOST_BYTES), type=_File)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            say("what was told of alarms unreadable", level=logging.WARNING, why=str(error))
            return {}
        if read.form != FORM:
            why = f"it is of form {read.form}, and this submerge knows {FORM}"
            say("what was told of alarms unreadable", level=logging.WARNING, why=why)
            return {}
        return read.sinks

    def _write(self, data: bytes) -> None:
        # One name: after a power cut it is written over, and files do not pile up on a card.
        atomic_write(self._path, data, mode=0o600, beside=f"{self._path.name}.new")
        sync_folder(self._path.parent)

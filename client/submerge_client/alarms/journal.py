"""Journal: what each sink has delivered, in a small file beside the checkpoint.

It promises that `note` returns when the file is on disk, and that a power loss at any moment
leaves either the old file or the new one. A disk that fails is logged once. What was delivered
is then remembered until the process ends, and the next process may deliver it again.
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
from submerge_client.private_file import refuse_link

FORM = 1
UNREADABLE = "alarm journal unreadable, starting a new one"
NOT_WRITTEN = "alarm journal not written: a restart may send alarms again"
LATER = ("first", "deviations", "settled", "provisional")
"""Fields of an alarm that were added to the file."""

MOST_BYTES = 1 << 24
"""A larger file is no journal."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The names of the fields of `Delivered` and `Alarm` are bytes on disk."""

    form: int
    sinks: dict[str, Delivered]


class Journal:
    """What each sink has delivered; safe to use from the threads of several sinks.

    path : The file is created with the first note.
    sinks : Names of the configured sinks. Entries of other sinks are dropped.
    """

    def __init__(self, path: Path, sinks: Collection[str]) -> None:
        refuse_link(path, what="the alarm journal")
        self._path = Path(os.path.realpath(path))
        self._lock = threading.Lock()
        self._failed = False
        self._delivered = {
            name: delivered for name, delivered in self._load().items() if name in sinks
        }

    def delivered(self, sink: str) -> Delivered | None:
        """Return what a sink has delivered; None if it is new."""
        return self._delivered.get(sink)

    def note(self, sink: str, delivered: Delivered) -> None:
        """Remember what a sink has delivered; on disk when this returns, unless the disk fails."""
        with self._lock:
            if self._delivered.get(sink) == delivered and not self._failed:
                return
            self._delivered[sink] = delivered
            try:
                self._write()
            except OSError as error:
                if not self._failed:
                    why = f"{error.strerror or error}"
                    say(NOT_WRITTEN, level=logging.ERROR, why=why)
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
            say(UNREADABLE, level=logging.WARNING, why=str(error))
            return {}
        if read.form != FORM:
            why = f"it is of form {read.form}, and this submerge knows {FORM}"
            say(UNREADABLE, level=logging.WARNING, why=why)
            return {}
        return read.sinks

    def _write(self) -> None:
        sinks = {name: msgspec.to_builtins(each) for name, each in self._delivered.items()}
        for alarm in (alarm for sink in sinks.values() for alarm in sink["open"]):
            # Where they say nothing they are not written, as in files of earlier versions.
            for name in [name for name in LATER if not alarm[name]]:
                del alarm[name]
        data = msgspec.json.encode({"form": FORM, "sinks": sinks})
        # One name: after a power cut it is written over, and files do not pile up on a card.
        atomic_write(self._path, data, mode=0o600, beside=f"{self._path.name}.new")
        sync_folder(self._path.parent)

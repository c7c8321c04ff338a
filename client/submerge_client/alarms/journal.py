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
from msgspec import UNSET, UnsetType

from submerge.protocol.alarm_status import Alarm, Cause, Deviation, Verdict
from submerge_client.alarms.delivered import Delivered
from submerge_client.atomic_file import atomic_write, sync_folder
from submerge_client.logs import say
from submerge_client.private_file import refuse_link

FORM = 1
UNREADABLE = "alarm journal unreadable, starting a new one"
NOT_WRITTEN = "alarm journal not written: a restart may send alarms again"
MOST_BYTES = 1 << 24
"""A larger file is no journal."""


class _Alarm(msgspec.Struct):
    """An alarm in the file. These names are bytes on disk, whatever `Alarm` calls its fields."""

    node: str
    number: int
    began: float
    peaked: float
    ended: float
    worst: float
    cause: Cause
    top: tuple[tuple[str, float], ...]
    version: int
    withheld: int = 0
    verdict: Verdict = ""
    # Those that are not set are not written, as in files of earlier versions.
    first: tuple[tuple[str, float], ...] | UnsetType = UNSET
    deviations: tuple[tuple[str, float, float], ...] | UnsetType = UNSET
    settled: bool | UnsetType = UNSET
    provisional: bool | UnsetType = UNSET

    @classmethod
    def of(cls, a: Alarm) -> _Alarm:
        rest = a.worst, a.cause, a.top, a.version, a.withheld, a.verdict
        newer = a.first or UNSET, a.deviations or UNSET
        flags = a.settled or UNSET, a.provisional or UNSET
        return cls(a.node, a.number, a.began, a.peaked, a.ended, *rest, *newer, *flags)

    def alarm(self) -> Alarm:
        rest = self.worst, self.cause, self.top, self.version, self.withheld, self.verdict
        deviations = tuple(Deviation(*each) for each in self.deviations or ())
        newer = self.first or (), deviations, self.settled or False, self.provisional or False
        return Alarm(self.node, self.number, self.began, self.peaked, self.ended, *rest, *newer)


class _Sink(msgspec.Struct):
    """What one sink has delivered, in the file."""

    open: tuple[_Alarm, ...] = ()
    over: tuple[str, ...] = ()

    @classmethod
    def of(cls, delivered: Delivered) -> _Sink:
        return cls(tuple(map(_Alarm.of, delivered.open)), delivered.over)

    def delivered(self) -> Delivered:
        return Delivered(tuple(each.alarm() for each in self.open), self.over)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    form: int
    sinks: dict[str, _Sink]


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
        return {name: sink.delivered() for name, sink in read.sinks.items()}

    def _write(self) -> None:
        sinks = {name: _Sink.of(delivered) for name, delivered in self._delivered.items()}
        data = msgspec.json.encode(_File(FORM, sinks))
        # One name: after a power cut it is written over, and files do not pile up on a card.
        atomic_write(self._path, data, mode=0o600, beside=f"{self._path.name}.new")
        sync_folder(self._path.parent)

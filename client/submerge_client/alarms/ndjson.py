"""Lines: one line of JSON for each start and each end of an alarm, in a file or on a stream.

A line is appended with one write and is on disk before it is noted as told. A file is its own
witness: what its end says was told, so nothing is in it twice, whoever was killed in between. A
stream cannot be read again: killed between a line and the note of it, it is told that line twice.

The file may be rotated by whoever likes: it is opened anew when its name belongs to another one,
and `copytruncate` does no harm. What a full disk cut short stays, on a line of its own.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from submerge import UsageError
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.delivered import Delivered, undelivered
from submerge_client.alarms.event import event_facts
from submerge_client.alarms.journal import Journal
from submerge_client.logs import say

TAIL_BYTES = 1 << 16
"""How much of a file's end is read again: a hundred lines and more."""


class LineOutput(Protocol):
    """What lines are written on."""

    def read(self) -> Collection[tuple[str, str]]:
        """Return name and event of lines that are known to be there; OSError if nobody can."""

    def write(self, line: bytes) -> None:
        """Append a line, safely there when this returns; OSError if it may not be."""

    def close(self) -> None:
        """Let it go."""


class LineSink:
    """Tells alarms as lines.

    Parameters
    ----------
    paper : Paper
    journal : Journal
    name : str
        Of this sink, in the journal.
    group : str
    """

    def __init__(self, paper: LineOutput, journal: Journal, *, name: str, group: str) -> None:
        self._output, self._journal, self._name, self._group = paper, journal, name, group
        self._encode = msgspec.json.Encoder().encode
        self._why: str | None = None

    def tell(self, alarms: tuple[Alarm, ...]) -> None:
        """Write what is new; what cannot be written is tried again with the next state."""
        try:
            self._write(alarms)
        except OSError as error:
            why = error.strerror or str(error)
            if why != self._why:
                self._why = why
                say("alarms not written, trying on", level=logging.ERROR, why=why)
            return
        if self._why is not None:
            self._why = None
            say("alarms written again")

    def _write(self, alarms: tuple[Alarm, ...]) -> None:
        delivered, written = self._journal.delivered(self._name), self._output.read()
        if delivered is None:
            begun = {name for name, event in written if event == "start"}
            ended = {name for name, event in written if event == "end"}
            delivered = Delivered.since(alarms, begun - ended)
            self._journal.note(self._name, delivered)
        for each in undelivered(delivered, alarms):
            if (each.alarm.name, each.kind) not in written:
                self._output.write(self._encode(event_facts(each, self._group)) + b"\n")
            delivered = delivered.after(each)
            self._journal.note(self._name, delivered)

    def close(self, patience_s: float) -> None:
        """Let the paper go: all that can be told is told."""
        self._output.close()


class File:
    """Lines in a file, which others may read, rotate or take away.

    Raises
    ------
    UsageError
        If it is no file: a folder, or a pipe, which would hold up the node.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise UsageError(
                f"alarms.ndjson must be a file, got {path}: name another, or - for standard output"
            )
        self._path = path
        self._fd = -1
        self._torn = False
        self._written: frozenset[tuple[str, str]] = frozenset()
        try:
            self._open()
        except OSError as error:
            # A disk that does not work is no reason not to measure.
            why = error.strerror or str(error)
            say("no file for alarms, trying on", level=logging.ERROR, path=str(path), why=why)

    def read(self) -> frozenset[tuple[str, str]]:
        """Return what the end of the file told when it was opened."""
        if not self._is_it():
            self._open()
        return self._written

    def write(self, line: bytes) -> None:
        """Append a line, on disk when this returns."""
        # What was cut short would else swallow this line as well.
        data = b"\n" + line if self._torn else line
        try:
            if os.write(self._fd, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._fd)
        except OSError:
            # What is there of it, only the file knows: it is read again.
            self.close()
            raise
        self._torn = False

    def close(self) -> None:
        """Close it; the next line opens it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _is_it(self) -> bool:
        """Whether the open file is still the one that has the name."""
        if self._fd < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        self.close()
        self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self._fd).st_size
        tail = os.pread(self._fd, TAIL_BYTES, max(0, size - TAIL_BYTES))
        self._torn = bool(tail) and not tail.endswith(b"\n")
        self._written = frozenset(filter(None, map(_event, tail.split(b"\n"))))


class Stream:
    """Lines on standard output, which nobody can read again."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self) -> tuple[tuple[str, str], ...]:
        """Return nothing: who wrote there before cannot be known."""
        return ()

    def write(self, line: bytes) -> None:
        """Write a line, handed over when this returns."""
        self._stream.write(line)
        self._stream.flush()

    def close(self) -> None:
        """It is everybody's: others go on with it."""


def _event(line: bytes) -> tuple[str, str] | None:
    """Which start or end a line tells; None if it is none, or cut short."""
    try:
        delivered = json.loads(line)
        return str(delivered["id"]), str(delivered["event"])
    except (ValueError, TypeError, KeyError):
        return None

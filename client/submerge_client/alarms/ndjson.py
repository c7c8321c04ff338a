"""Lines: one line of JSON for each start and each end of an alarm, in a file or on a stream.

A line is on disk before the journal notes it, and the end of a file is read again: none is twice.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from submerge import UsageError
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import event_facts
from submerge_client.alarms.journal import Delivered, Journal, undelivered
from submerge_client.files import LineFile
from submerge_client.logs import say


def write_whole(stream: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        taken: int | None = stream.write(left)
        if taken is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[taken:]
    stream.flush()


TAIL_BYTES = 1 << 16  # how much of a file's end is read again: a hundred lines and more


class LineOutput(Protocol):
    def read(self) -> Collection[tuple[str, str]]:
        """Return name and event of the lines that are known to be there."""

    def write(self, line: bytes) -> None:
        """Append a line. It is safe when this returns; otherwise this raises OSError."""

    def close(self) -> None:
        """Release the output."""


class LineSink:
    def __init__(self, output: LineOutput, journal: Journal, *, name: str, group: str) -> None:
        self._output, self._journal, self._name, self._group = output, journal, name, group
        self._encode = msgspec.json.Encoder().encode
        self._why: str | None = None

    def update(self, alarms: tuple[Alarm, ...]) -> None:
        """Write what is new. A line that fails is tried again with the next state."""
        try:
            self._write(alarms)
        except OSError as error:
            why = error.strerror or str(error)
            if why != self._why:
                self._why = why
                say("alarms not written, trying on", level="error", sink=self._name, why=why)
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
        """Close the output. Nothing waits: every line was written at once or failed."""
        self._output.close()


class File:
    """Lines in a file that others may rotate; UsageError for a folder, a link, or a pipe."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path, what="alarms.ndjson")
        if path.exists() and not path.is_file():
            raise UsageError(
                f"alarms.ndjson must be a file, got {path}: name another, or - for standard output"
            )
        self._written: frozenset[tuple[str, str]] = frozenset()
        try:
            self.read()
        except OSError as error:
            # A broken disk does not stop the measurements.
            why = error.strerror or str(error)
            say("alarm file not opened, trying on", level="error", path=str(path), why=why)

    def read(self) -> frozenset[tuple[str, str]]:
        """Return the events at the end of the file when it was opened."""
        if not self._file.is_open:
            lines = self._file.open(TAIL_BYTES).split(b"\n")
            self._written = frozenset(filter(None, map(_event, lines)))
        return self._written

    def write(self, line: bytes) -> None:
        self._file.append(line)

    def close(self) -> None:
        """Close the file; the next look opens it."""
        self._file.close()


class Stream:
    """Lines on standard output, which cannot be read again."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self) -> tuple[tuple[str, str], ...]:
        """Return nothing: earlier lines cannot be known."""
        return ()

    def write(self, line: bytes) -> None:
        write_whole(self._stream, line)

    def close(self) -> None:
        """Do nothing: standard output is shared."""


def _event(line: bytes) -> tuple[str, str] | None:
    """Return name and event of a line; None if it is no event, or cut short."""
    try:
        facts = json.loads(line)
        return str(facts["id"]), str(facts["event"])
    except (ValueError, TypeError, KeyError):
        return None

"""The audit log: who joined, who was refused, and what operators ordered (docs/decisions/0069).

It follows what the machine has committed. `record` never waits, from any thread: a thread of its
own writes what is in the queue.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec

from submerge import UsageError
from submerge_client.config.sections import AnyText, Section
from submerge_client.files import LineFile
from submerge_client.logs import plain, say

MOST_WAITING = 10_000  # lines that wait: 4 MiB at most, and 2 MiB as a rule
PATIENCE_S = 5.0  # at the end, the longest wait for the disk


class Record(Protocol):
    def __call__(self, event: str, /, **facts: object) -> None:
        """Record an event, one of `EVENTS`, with its facts."""


def record_nothing(event: str, /, **facts: object) -> None:
    """Record nothing: there is no audit log."""


class AuditLog:
    """The audit log of one aggregator; without files entries are not kept."""

    def __init__(self, files: AuditFiles | None, wall: Callable[[], float] = time.time) -> None:
        self._files, self._wall = files, wall
        self.dropped = 0
        self._unsaid = 0
        self._failing = False
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def record(self, event: str, /, **facts: object) -> None:
        if self._files is None:
            return
        line = line_of(event, self._wall(), facts)
        with self._changed:
            if self._closing or len(self._waiting) >= MOST_WAITING:
                self._drop(1)
                return
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="audit", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, and close the file."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._unsaid += count

    def _write_all(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                lines = list(self._waiting)
                self._waiting.clear()
                unsaid, self._unsaid = self._unsaid, 0
                if not lines:
                    break
            self._write(lines, unsaid)
        if self._files is not None:
            self._files.close()

    def _write(self, lines: list[bytes], unsaid: int) -> None:
        if self._files is None:
            return
        first = [line_of("dropped", self._wall(), {"count": unsaid})] if unsaid else []
        try:
            self._files.append(b"".join(first + lines))
        except OSError as error:
            with self._changed:
                self._drop(len(lines))
                self._unsaid += unsaid
            if not self._failing:
                self._failing = True
                why = error.strerror or str(error)
                say("audit log not written, entries are dropped", level="error", why=why)
            return
        if self._failing:
            self._failing = False
            say("audit log written again", dropped=unsaid)


# Entries of the audit log as lines of JSON, and back.
#
#     {"at": 1767225600.125, "event": "join", "node": "pump-3", "group": "pumps",
#      "kind": "client", "incarnation": "...", "address": "ipv4:10.0.0.7:51234"}
#
# A line is short whatever its facts are: they may come from a peer.

EVENTS = {
    "start": "the aggregator began to serve",
    "stop": "it ended",
    "join": "a node joined: again only from another address, or after an hour",
    "refused": "messages of one reason, `count` of them since the last such entry",
    "order": "an operator's order, with who gave it, and from where",
    "denied": "an operator's order that was refused, with who gave it, and from where",
    "tokens": "tokens of operators that were made or revoked, by name",
    "ban": "an order that shuts a node out, or lets it in again",
    "quarantine": "a node was put in quarantine by itself",
    "model": "a model was not published",
    "store": "the store began again, empty",
    "dropped": "entries that could not be written, `count` of them",
}
"""What an entry can be about."""

MOST_TEXT, MOST_ITEMS, MOST_FACTS = 200, 8, 24
"""Most characters of a fact, items of a list, and facts of an entry."""

MOST_LINE = 16_384  # a longer line is none of ours

_encode = msgspec.json.Encoder().encode


def line_of(event: str, at: float, facts: Mapping[str, object]) -> bytes:
    """Return an entry as one line, with its line break."""
    short = {name: _short(plain(value)) for name, value in list(facts.items())[:MOST_FACTS]}
    return _encode({"at": round(at, 3), "event": event, **short}) + b"\n"


def entry_of(line: bytes) -> dict[str, Any] | None:
    """Return the entry in a line; None if it is none, or was cut short."""
    try:
        entry = json.loads(line) if len(line) <= MOST_LINE else None
    except ValueError:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("event"), str):
        return None
    at = entry.get("at")
    return entry if isinstance(at, int | float) and not isinstance(at, bool) else None


def _short(value: Any) -> Any:
    if isinstance(value, str):
        # A lone surrogate has no bytes in UTF-8.
        text = value.encode("utf-8", "replace").decode()
        return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."
    if isinstance(value, list):
        return [_short(each) for each in value[:MOST_ITEMS]]
    if isinstance(value, dict):
        return {_short(str(key)): _short(each) for key, each in list(value.items())[:MOST_ITEMS]}
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 63:
        return str(value)  # such as a serial number: readers of JSON round large integers
    return value


# AuditFiles: lines in a file that is rotated by size, PATH, PATH.1, ... with the newest first.
#
# Only their owner may read them. A line that a full disk or a kill cut short stays on a line of its
# own, and readers leave it out.

MOST_BYTES, FILES = 1 << 20, 8
"""Bytes of a file, before the next one begins; files, with the one that is being written."""


class AuditFiles:
    """The files of one audit log, for one writer."""

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._file = LineFile(path, what="the audit log")
        if path.exists() and not path.is_file():
            raise UsageError(f"audit.path must be a file, got {path}: name another, or '' for none")
        self._path, self._most_bytes = path, most_bytes

    def append(self, lines: bytes) -> None:
        # What was removed, or rotated by another program, is left: readers look for the name.
        if self._file.is_open and 0 < self._file.size > self._most_bytes - len(lines):
            self._rotate()
        if not self._file.is_open:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file.open()
        self._file.append(lines)

    def close(self) -> None:
        """Close the file; the next line opens it."""
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(FILES - 1, 0, -1):
            with suppress(FileNotFoundError):
                os.replace(older(self._path, number - 1), older(self._path, number))


def older(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def lines_in(path: Path, *, follow: bool = False) -> Iterator[bytes | None]:
    """Yield the lines of all files, the oldest first; to `follow`, None while there is none."""
    opened = _open_all(path)
    if not opened and not follow:
        raise FileNotFoundError(path)
    for file in opened[:-1]:
        with file:
            yield from file
    newest = opened[-1] if opened else None
    try:
        while True:
            if newest is not None:
                yield from _whole(newest) if follow else newest
            if not follow:
                return
            newer = _open(path)
            if newer is None or (newest is not None and _same(newest, newer)):
                if newer is not None:
                    newer.close()
                yield None
                continue
            if newest is not None:
                # It was rotated: what was written to it in between comes first.
                yield from newest
                newest.close()
            newest = newer
    finally:
        if newest is not None:
            newest.close()


def _whole(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file that is being written; one without its end is read again."""
    while line := file.readline():
        if not line.endswith(b"\n"):
            file.seek(-len(line), os.SEEK_CUR)
            return
        yield line


def _open_all(path: Path) -> list[BinaryIO]:
    """Return all files, open, the oldest first; a rotation meanwhile does no harm."""
    found: list[BinaryIO] = []
    for number in range(FILES):
        file = _open(older(path, number))
        if file is None:
            continue
        if any(_same(file, each) for each in found):
            file.close()
        else:
            found.append(file)
    return found[::-1]


def _open(path: Path) -> BinaryIO | None:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        return None


def _same(one: BinaryIO, other: BinaryIO) -> bool:
    return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))


class AuditConfig(Section, frozen=True, kw_only=True):
    """Who joined, who was refused, and what operators ordered.

    path : A file, which is rotated; left out, STORE.audit.jsonl beside the store; "" for none.
    """

    path: AnyText | None = None


def audit_path(config: AuditConfig, store: str | os.PathLike[str]) -> Path | None:
    """Return the file of an aggregator's audit log; None if it has none."""
    if config.path is None:
        return Path(f"{os.path.realpath(store)}.audit.jsonl")
    return Path(config.path) if config.path else None

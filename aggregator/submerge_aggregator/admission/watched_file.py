"""WatchedFile: what a file says, read again when the file changes.

A file that is missing or wrong at the start is an error, unless a missing one has a meaning
(`missing`). Later on it is logged once, and the last good content holds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from submerge import UsageError
from submerge_client.files import stamp
from submerge_client.logs import say

LOOK_S = 1.0  # least time between two looks
MOST_BYTES = 16 << 20  # of a file; 100,000 nodes are 5 MiB

Content = TypeVar("Content")


class WatchedFile(Generic[Content]):
    def __init__(
        self,
        path: Path,
        parse: Callable[[str], Content],
        *,
        setting: str,
        missing: Content | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._parse, self._setting, self._steady = path, parse, setting, steady
        self._lock = threading.Lock()
        self._looked_at, self._missing = -math.inf, missing
        self._seen: object = None
        try:
            self._seen = self._signature()
            self._content = self._read()
        except (OSError, UsageError) as error:
            raise UsageError(f"{setting}: expected a file to read, got {_why(error, path)}") from (
                error
            )

    def current(self) -> Content:
        """Return the content, as it is now or as it was good last."""
        with self._lock:
            now = self._steady()
            if now >= self._looked_at + LOOK_S:
                self._looked_at = now
                self._look()
            return self._content

    def _look(self) -> None:
        try:
            seen: object = self._signature()
        except OSError as error:
            seen = error.errno
        if seen == self._seen:
            return
        # Taken down before it is read: a file that changes meanwhile is read once more.
        self._seen = seen
        setting, file = self._setting, str(self._path)
        try:
            self._content = self._read()
        except (OSError, UsageError) as error:
            why, todo = _why(error, self._path), "repair it: what it said before still holds"
            say("file not read again", level="error", setting=setting, why=why, todo=todo)
        else:
            say("file read again", setting=setting, file=file)

    def _signature(self) -> tuple[int, ...] | None:
        try:
            return stamp(self._path.stat())
        except FileNotFoundError:
            if self._missing is None:
                raise
            return None

    def _read(self) -> Content:
        if self._seen is None and self._missing is not None:
            return self._missing
        with self._path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(f"more than {MOST_BYTES} bytes")
        try:
            return self._parse(data.decode())
        except UnicodeDecodeError as error:
            raise UsageError("bytes that are no UTF-8") from error


def _why(error: Exception, path: Path) -> str:
    why = error.strerror if isinstance(error, OSError) else str(error)
    return f"{path}: {why}"

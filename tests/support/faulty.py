"""A store whose disk fails or hangs when a test says so; all else is the one that ships."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from submerge.protocol.machine import Key
from submerge_aggregator.store import Store, StoreUnavailable
from support.patience import PATIENCE_S


class FaultyStore(Store):
    """A store for a desk: faults come in by its argument.

    Attributes
    ----------
    is_full : bool
        Writes are refused, as long as it is so.
    """

    def __init__(self, path: object) -> None:
        super().__init__(str(path))
        self.is_full = False
        self._goes_on = threading.Event()
        self._goes_on.set()

    def write(self, changes: Mapping[Key, bytes | None], *, reset: bool = False) -> None:
        """Write, if the disk does."""
        if self.is_full:
            raise StoreUnavailable(self.path, "disk is full")
        self._goes_on.wait(PATIENCE_S)
        super().write(changes, reset=reset)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Refuse writes meanwhile."""
        self.is_full = True
        try:
            yield
        finally:
            self.is_full = False

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let writes wait until this is over."""
        self._goes_on.clear()
        try:
            yield
        finally:
            self._goes_on.set()

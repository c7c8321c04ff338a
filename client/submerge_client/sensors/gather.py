"""RowGatherer: rows that come fast share a step (docs/decisions/0032).

Two threads use it: the sensor's puts, the node's takes. It reads no clock.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from submerge import Array
from submerge.errors import ShapeError, whole
from submerge.judge.decision import Mask


class Lags:
    """Puts rows of `width` channels side by side with their past, `lags` in all, at least 1."""

    def __init__(self, lags: int, width: int) -> None:
        self.lags = whole("lags", lags, least=1)
        self.width = whole("width", width, least=1)
        self.counts = {"lead_in": 0}
        self._past = np.empty((0, self.width))

    def embed(self, rows: Array) -> Array:
        """Return the rows that are complete, (m, lags * width), with the next rows (n, width)."""
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ShapeError("rows", expected=f"(n, {self.width})", got=rows.shape)
        if self.lags == 1:
            return rows
        known = np.concatenate([self._past, rows])
        complete = max(len(known) - self.lags + 1, 0)
        self.counts["lead_in"] += len(rows) - complete
        # A copy: a view would keep the whole block alive.
        self._past = known[max(len(known) - self.lags + 1, 0) :].copy()
        # Lag-major: all channels of this row, then all of the row before.
        newest = self.lags - 1
        return np.concatenate(
            [known[newest - lag : newest - lag + complete] for lag in range(self.lags)], axis=1
        )


BLOCK = 64  # most rows that are put together, and so many that do not wait

AHEAD = 4 * BLOCK
"""Most rows that a sensor may be ahead of the node, beside those that it hands over at once."""


class Hand(Protocol):
    def __call__(self, rows: Array, /, *, waited: bool = False, held: Mask | None = None) -> None:
        """Take rows (n, channels) in the schema's order, NaN for a gap; wait for the node.

        waited : Whether rows may have waited at the source for as long as rows may wait.
        held : Of rows' shape, where a number is repeated because no new one has come.
        """


class Gathered(NamedTuple):
    """Rows (n, channels) of a sensor, and where numbers are `held`, as in `Hand`."""

    rows: Array
    held: Mask | None = None


class SensorEnded(NamedTuple):
    """The sensor has no more rows; `error` if it failed."""

    error: Exception | None


class RowsWaiting(NamedTuple):
    """Rows of the sensor are to be taken."""


class RowGatherer:
    """Rows between a sensor and a node, which wait `gather_s` at most; 0: each block by itself.

    wake : The sensor's thread calls it when there are rows to take at once.
    due_at : On the clock of `take`; infinity while none may be taken.
    """

    def __init__(self, gather_s: float, wake: Callable[[], None]) -> None:
        self._gather_s, self._wake = gather_s, wake
        self._changed = threading.Condition()
        self._blocks: deque[Gathered] = deque()
        self._waiting = 0
        self._is_open = self._has_ended = False
        self.due_at = math.inf

    def put(self, rows: Array, /, *, waited: bool = False, held: Mask | None = None) -> None:
        """Take rows from the sensor, as a `Hand`."""
        with self._changed:
            while not self._has_ended and self._waiting and self._waiting + len(rows) > AHEAD:
                self._changed.wait()
            self._blocks.append(Gathered(rows, held))
            self._waiting += len(rows)
            wakes = waited or not self._is_open or self._waiting >= BLOCK
            self._is_open = self._gather_s > 0.0 and not waited
        if wakes:
            self._wake()

    def end(self) -> None:
        """Let the sensor go on, although the node is behind: it is about to stop."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def take(self, steady: float) -> Gathered | None:
        """Return the oldest rows: one block of the sensor's, or several of `BLOCK` rows at most."""
        with self._changed:
            taken = list[Gathered]()
            rows = 0
            most = BLOCK if self._gather_s else 0
            while self._blocks and (not taken or rows + len(self._blocks[0].rows) <= most):
                taken.append(self._blocks.popleft())
                rows += len(taken[-1].rows)
            if taken:
                self._waiting -= rows
                self._changed.notify()
                self.due_at = steady + self._gather_s if self._is_open else math.inf
                if self._blocks and not self._is_open:
                    self.due_at = steady  # the rest has waited
            elif steady >= self.due_at:
                self._is_open, self.due_at = False, math.inf
        if not taken:
            return None
        return taken[0] if len(taken) == 1 else _joined(taken)


def _joined(blocks: list[Gathered]) -> Gathered:
    rows = np.concatenate([block.rows for block in blocks])
    if all(block.held is None for block in blocks):
        return Gathered(rows)
    masks = [
        np.zeros(block.rows.shape, dtype=bool) if block.held is None else block.held
        for block in blocks
    ]
    return Gathered(rows, np.concatenate(masks))

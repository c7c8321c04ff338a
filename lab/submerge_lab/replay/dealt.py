"""The rows of a replay as a sensor, and the node that learns each row exactly once.

1. Rows wait until the node has joined. Rows read before would be lost if their incarnation ends
   with the join, because the fleet has a scaling of its own.
2. If the fleet has not settled gamma yet, all rows are handed over to measure it, and again once
   it is known.
3. Rows that were handed over to measure gamma are never learnt, even if gamma arrives before the
   node reads them. The node itself drops them, in its own thread: a sensor that stops when it
   sees a gamma is too late for blocks that are on their way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from submerge import Array, Schema
from submerge.client.incarnation import Checkpoint, ClientIncarnation
from submerge.client.node import ClientNode
from submerge.client.pending_finals import PendingFinals
from submerge.protocol.machine import Effect, Event, Now, Reading, Tick
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries

BLOCK = 64
"""Rows that are handed over at once, without a --speed."""

JOIN_S = 30.0
"""Seconds to wait for the join."""

SETTLE_S = 180.0
"""Seconds to wait for a gamma after the rows were handed over: several models of a root."""


class Dealt:
    """A sensor with all rows of one `ReplayNode`.

    rows : (n, channels)
    speed : Rows a second; 0: as fast as the node takes them.
    refused : Returns why the parent refuses the join, or None.
    """

    counts: dict[str, int]
    node: ReplayNode

    def __init__(self, rows: Array, speed: float) -> None:
        self.counts = {}
        self.refused: Callable[[], str | None] = lambda: None
        self._rows, self._speed = rows, speed
        self._to_measure = 0  # rows handed over to measure gamma; written in the sensor's thread
        self._reached = 0  # rows that the node has come to; written in the node's thread

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows at the requested speed."""
        if not self._wait(lambda: self.node.joined, JOIN_S, stop):
            return
        if not self.node.learns:
            self._measure(hand, stop)
            if not self._wait(lambda: self.node.learns and self.node.joined, SETTLE_S, stop):
                return
        block = BLOCK if not self._speed else max(1, min(BLOCK, int(self._speed / 4)))
        began = time.monotonic()
        for first in range(0, len(self._rows), block):
            if self._speed:
                stop.wait(max(0.0, began + first / self._speed - time.monotonic()))
            if stop.is_set():
                return
            hand(self._rows[first : first + block])

    def only_measures(self, n: int) -> bool:
        """Return whether the next n rows of the node only measure gamma."""
        # The node calls this once for each block. Blocks arrive in order, and those that measure
        # gamma come first.
        self._reached += n
        return self._reached <= self._to_measure

    def _measure(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        for first in range(0, len(self._rows), BLOCK):
            if stop.is_set() or self.node.learns:
                return
            rows = self._rows[first : first + BLOCK]
            self._to_measure += len(rows)  # before the node can reach them
            hand(rows)

    def _wait(self, done: Callable[[], bool], seconds: float, stop: threading.Event) -> bool:
        """Wait until `done()`; return False on a stop, a refusal or a timeout."""
        until = time.monotonic() + seconds
        while not done():
            if stop.wait(0.02) or self.refused() or time.monotonic() > until:
                return False
        return True


class _FinalsOfReplay(PendingFinals):
    """Finals of a node that reads again what it has measured: nothing of that waits."""

    def close(
        self, current: ClientIncarnation, last: Checkpoint, why: str, effects: list[Effect]
    ) -> None:
        super().close(current, replace(last, measured=None), why, effects)


class ReplayNode(ClientNode):
    """A client's node that does not learn rows which only measure gamma."""

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        rng: np.random.Generator,
        dealt: Dealt,
    ) -> None:
        super().__init__(settings, schema, summaries, rng)
        self.finals = _FinalsOfReplay(settings)
        self._dealt = dealt
        dealt.node = self

    @property
    def joined(self) -> bool:
        """Return whether its parent has accepted its join; callable from any thread."""
        return self.current.pin is not None

    @property
    def learns(self) -> bool:
        """Return whether it learns rows instead of measuring them; callable from any thread."""
        return self.current.learns

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Step as a client's node; drop rows that measure gamma once it is known."""
        if isinstance(event, Reading):
            measures = self._dealt.only_measures(len(event.rows))
            if measures and self.learns:
                event = Tick()
        return super().step(event, now)

"""Dealt: the rows of a replay, and the node that learns each of them once.

1. Rows wait until the node has joined: what is read before may belong to a life that ends
   with the join, because the fleet has a scaling of its own, and would be lost.
2. Where the fleet has yet to settle a gamma, rows are handed over to measure it by, and again
   once it is there.
3. What was handed over to measure by is never learnt, whatever the node has heard by the time
   that it comes to it. So the node itself passes it over, in its own thread: a sensor that
   stops when it sees a gamma is too late for the blocks that are on their way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from submerge import Array, Schema
from submerge.client.node import ClientNode
from submerge.protocol.machine import Effect, Event, Now, Reading, Tick
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Summaries

BLOCK = 64
"""Rows that are handed on at once, where nobody waits for them."""

JOIN_S = 30.0
"""How long it waits for its parent to let it in."""

SETTLE_S = 180.0
"""How long it waits for a gamma, once its rows have been told: some models of a root."""


class Dealt:
    """A sensor that has all of its rows, for one `ReplayNode`.

    Parameters
    ----------
    rows : (n, channels)
    speed : float
        Rows a second; 0 is as fast as they are taken.

    Attributes
    ----------
    node : ReplayNode
        Whom they are dealt to; it says so itself.
    refused : callable
        Why the parent does not let the node join, or None.
    """

    counts: dict[str, int]
    node: ReplayNode

    def __init__(self, rows: Array, speed: float) -> None:
        self.counts = {}
        self.refused: Callable[[], str | None] = lambda: None
        self._rows, self._speed = rows, speed
        self._to_measure = 0  # rows that were handed over for nothing else; written here only
        self._met = 0  # rows that the node has come to; written in its thread only

    def read(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        """Hand over rows, at the speed that is asked for."""
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
        """Return whether the n rows that the node comes to next are there to measure by only.

        Asked by the node, once for each block: blocks come in the order of their handing over,
        and those to measure by go before all others.
        """
        self._met += n
        return self._met <= self._to_measure

    def _measure(self, hand: Callable[[Array], None], stop: threading.Event) -> None:
        for first in range(0, len(self._rows), BLOCK):
            if stop.is_set() or self.node.learns:
                return
            rows = self._rows[first : first + BLOCK]
            self._to_measure += len(rows)  # before the node can come to them
            hand(rows)

    def _wait(self, there: Callable[[], bool], seconds: float, stop: threading.Event) -> bool:
        """Wait until something is there; False if it will not be."""
        until = time.monotonic() + seconds
        while not there():
            if stop.wait(0.02) or self.refused() or time.monotonic() > until:
                return False
        return True


class ReplayNode(ClientNode):
    """A client's node that learns of dealt rows only those that are meant to be learnt."""

    def __init__(
        self,
        settings: ClientSettings,
        schema: Schema,
        summaries: Summaries,
        rng: np.random.Generator,
        dealt: Dealt,
    ) -> None:
        super().__init__(settings, schema, summaries, rng)
        self._dealt = dealt
        dealt.node = self

    @property
    def joined(self) -> bool:
        """Whether its parent has let it in; from any thread."""
        return self.current.pin is not None

    @property
    def learns(self) -> bool:
        """Whether rows are learnt, and not only measured; from any thread."""
        return self.current.learns

    def step(self, event: Event, now: Now) -> list[Effect]:
        """As a client's; rows to measure by that come too late for that are passed over."""
        if isinstance(event, Reading):
            measures = self._dealt.only_measures(len(event.rows))
            if measures and self.learns:
                event = Tick()
        return super().step(event, now)

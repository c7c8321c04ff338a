"""A fleet for a page: nodes in several states, alarms with verdicts, hours of history, a model.

    with PagedFleet(tmp_path) as fleet:
        page.goto(fleet.origin)
        fleet.reports(OPEN)             # its alarm is over

Nothing of it changes by itself, and nothing is random: the same is drawn each time. All clocks of
the root are the test's; `AT` is what a browser's shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from submerge.protocol.alarm_status import Alarm, Deviation, State
from submerge.protocol.score_trail import MINUTES, ScoreTrail, level_of
from submerge.schema import Channel, Schema
from submerge_client import clock
from support.alarmed import alarm, alarm_status
from support.nodes import EPOCH
from support.paged import Paged
from support.recent_rows import replies

CHANNELS = ("inflow", "pressure", "outflow", "temperature", "vibration", "current")
UNITS = ("m³/h", "bar", "m³/h", "°C", "mm/s", "A")
SCHEMA = Schema(tuple(map(Channel, CHANNELS, UNITS)))
NODES = tuple(f"pump-{i}" for i in range(1, 7))
OPEN, OVER = "pump-2", "pump-4"
"""Who has an alarm that is open, and two that are over."""

HISTORY_BYTES = 1 << 20
EVERY_S = MINUTES * 60.0
"""Between two reports: the trail of one is as long."""

AT = EPOCH + 100.0 + 3 * EVERY_S + 1.0
"""Wall time at the root and in a browser, once the nodes have reported three times."""


def rows_of(seed: int, n: int = 400, width: int = len(CHANNELS)) -> np.ndarray:
    """Return rows of a pump without a fault."""
    mix = np.random.default_rng(5).normal(size=(2, width))
    rng = np.random.default_rng(seed)
    return 20 + 3 * rng.normal(size=(n, 2)) @ mix + 0.3 * rng.normal(size=(n, width))


class PagedFleet(Paged):
    """A root with a page, and six pumps that report to it.

    rounds : how often each has reported, half an hour apart
    """

    def __init__(
        self, folder: Path, *, rounds: int = 3, schema: Schema = SCHEMA, **page: Any
    ) -> None:
        super().__init__(folder, schema=schema, history_bytes=HISTORY_BYTES, **page)
        self.schema, self._rounds = schema, rounds

    def __enter__(self) -> PagedFleet:
        self._clock, clock.now = clock.now, lambda: self.house.time()
        super().__enter__()
        self.house.server.inquire = self._asked
        for turn in range(self._rounds):
            self.house.passes(EVERY_S)
            for i, node in enumerate(NODES):
                alarms = self.alarms(node) if turn == self._rounds - 1 else ()
                state: State = "learning" if node == NODES[-1] else "armed"
                self.reports(node, *alarms, seed=i, state=state)
        self.house.passes(1.0)
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        clock.now = self._clock

    @property
    def now(self) -> float:
        """Wall time, Unix seconds."""
        return self.house.time().wall

    def reports(
        self, node: str, *alarms: Alarm, seed: int = 1, state: State = "armed", **said: Any
    ) -> Any:
        """Have a node report; return the answer."""
        known = {"watched_s": 5 * 604800.0, "allowed": 1.25, "raised": len(alarms)} | said
        return self.house.hears(
            node,
            rows_of(seed, width=self.schema.width),
            schema=self.schema,
            alarm_status=alarm_status(*alarms, state=state, **known),
            trail=self._trail(node, seed, bool(alarms)),
        )

    def alarms(self, node: str) -> tuple[Alarm, ...]:
        """Return what a node has to say."""
        since = self.now - EPOCH
        first, second = (each.name for each in self.schema.named[:2])
        if node == OPEN:
            off = (Deviation(first, 29.2, 19.0), Deviation(second, 21.0, 20.1))
            at = {"began": self.now - 1200.0, "peaked": self.now - 300.0}
            top = ((first, 0.75), (second, 0.25))
            return (alarm(node, 3, worst=13.2, top=top, deviations=off, **at),)
        if node == OVER:
            top = ((second, 0.9), (first, 0.1))
            before = {"began": self.now - 4000.0, "peaked": self.now - 3900.0}
            return (
                alarm(node, 1, ended=since - 3400.0, worst=4.1, top=top, **before),
                alarm(node, 2, ended=since - 900.0, worst=1.3, top=top, provisional=True),
            )
        return ()

    def _trail(self, node: str, seed: int, alarmed: bool) -> ScoreTrail:
        minute = int(self.now // 60)
        rng = np.random.default_rng(minute + seed)
        shares = np.exp(rng.normal(-1.2, 0.35, MINUTES))
        if alarmed and node == OPEN:
            shares[-20:] = np.linspace(1.1, 13.2, 20)
        return ScoreTrail(minute, bytes(level_of(float(share)) for share in shares))

    async def _asked(self, group: str, path: tuple[str, ...], topic: str, **more: object) -> bytes:
        """Reply for a node, as it does itself when somebody looks."""
        normal = rows_of(3, 90, self.schema.width)
        rows = normal.copy()
        if path[-1] == OPEN:  # one channel goes where the others do not
            rows[-40:, 0] += np.linspace(0.0, 12.0, 40)
        return replies(topic, path[-1], group, self.schema.named, rows, normal, self.now)

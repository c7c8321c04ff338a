"""Telling: when there is a line on how a machine is.

The first comes soon, then one each minute; and at once, when an alarm begins or ends and when the
first row was scored. "At once" is within a second: the client is asked, and does nothing for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from logging import WARNING
from typing import Any

from submerge.aggregator.node import AggregatorNode
from submerge.client.monitor import newest_score
from submerge.protocol.machine import Now
from submerge_client.agent import Agent
from submerge_client.logs import say
from submerge_operate.up.arrivals import Arrivals
from submerge_operate.up.box_state import BoxState, has_started, held_of, measured_of, state_of
from submerge_operate.up.config import BoxConfig
from submerge_operate.up.line import Occasion, json_of, text_of
from submerge_operate.up.measuring import MeasuringPace

Ask = Callable[[Callable[[AggregatorNode, Now], Any]], Awaitable[Any]]
"""Asks the root's machine."""

FIRST_S = 5.0
"""Until the first line."""

EVERY_S = 60.0
"""Between two lines, if nothing happens."""

BEREFT = (
    "what it has learnt and the limits of alarms begin again from what client.state holds; if"
    " root.db was moved, stop this program and put it back"
)

LOOK_S = 1.0
"""Between two looks at the client."""


class Telling:
    """Says how a machine is.

    ask : Asks the root.
    tell : Takes each line.
    bereft : The root's store is new, and the client is not: what is gone with the old one is said
        once.
    """

    def __init__(
        self,
        config: BoxConfig,
        agent: Agent,
        ask: Ask,
        tell: Callable[[str], None],
        *,
        as_json: bool = False,
        bereft: bool = False,
    ) -> None:
        self._agent, self._ask, self._tell = agent, ask, tell
        names = [channel.name for channel in config.schema.sensed]
        self._arrivals = Arrivals(names, config.sensor, time.monotonic())
        self._question = held_of(config.group, config.node)
        units = {channel.name: channel.unit for channel in config.schema.sensed}
        self._needed = config.aggregator.settings.scaling_rows
        self._line = partial(json_of if as_json else text_of, units=units, needed=self._needed)
        self._pace = MeasuringPace(config.sensor.every_s)
        self._fills = config.gaps == "fill"
        self._scored, self._bereft = False, bereft
        self._alarms: dict[str, bool] | None = None  # open or not, by name; None before any look

    async def run(self) -> None:
        """Write lines until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time() + FIRST_S
        while True:
            await asyncio.sleep(LOOK_S)
            if not has_started(self._agent.node):
                continue
            self._arrivals.look(self._agent.rows, time.monotonic())
            measured = measured_of(self._agent.node)
            if measured is not None:
                self._pace.take(measured, time.monotonic())
            occasion = self._news() or ("minute" if loop.time() >= due else None)
            if occasion is not None:
                due = loop.time() + EVERY_S
                await self.write(occasion)

    async def write(self, occasion: Occasion) -> None:
        """Write a line."""
        state, arrivals = await self._state(), self._arrivals
        if occasion == "minute":
            arrivals.mark(self._agent.rows, self._agent.newest)
        now = time.monotonic()
        state = replace(state, absent=arrivals.absent, never=arrivals.never)
        state = replace(state, quiet_s=arrivals.quiet_s(now), advice=arrivals.advice)
        if state.measured is not None:
            # A gap is filled with its channel's mean; one that has never come has none.
            waits_on = arrivals.never if self._fills else arrivals.absent
            left_s = -1.0 if waits_on else self._pace.left_s(state.measured, self._needed, now)
            state = replace(state, ready_in_s=left_s, waits_on=waits_on)
        if self._bereft:
            self._bereft = False
            known = state.learnt + state.withheld
            facts = {"readings_gone": max(0, self._agent.node.lifetime - known), "kept": known}
            say("root.db was not there", level=WARNING, **facts, meaning=BEREFT)
        self._tell(self._line(state, time.time(), occasion))

    async def _state(self) -> BoxState:
        """Return how it is; asked again where an incarnation ended in between."""
        while True:
            before = self._agent.node.current.incarnation
            held = await self._ask(self._question)
            state = state_of(self._agent.rows, self._agent.node, held)
            if self._agent.node.current.incarnation == before:
                return state

    def _news(self) -> Occasion | None:
        """Return what has happened since the last look."""
        monitor = self._agent.node.monitor
        if monitor is None:
            return None
        alarms = {each.name: each.is_open for each in monitor.alarms}
        # What was there at the start is none.
        before = alarms if self._alarms is None else self._alarms
        is_first = not self._scored and newest_score(monitor) is not None
        self._alarms, self._scored = alarms, self._scored or is_first
        if any(is_open and not before.get(name) for name, is_open in alarms.items()):
            return "alarm began"
        ended = {name for name, is_open in before.items() if is_open} | (alarms.keys() - before)
        if any(not alarms.get(name) for name in ended):
            return "alarm ended"
        return "first scores" if is_first else None

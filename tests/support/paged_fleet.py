"""A fleet for a page: nodes in several states, alarms with their verdicts, a model and a drill.

Nothing of it changes by itself, and nothing is random: the same is drawn each time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from submerge.protocol.alarm_status import Deviation
from submerge.schema import Channel, Schema
from support.alarmed import alarm, alarm_status
from support.house import House

CHANNELS = ("inflow", "pressure", "outflow", "temperature", "vibration", "current")
UNITS = ("m3/h", "bar", "m3/h", "°C", "mm/s", "A")
SCHEMA = Schema(tuple(map(Channel, CHANNELS, UNITS)))
NODES = tuple(f"pump-{i}" for i in range(1, 7))
OPEN, OVER = "pump-2", "pump-4"
"""Who has an alarm that is open, and two that are over."""

MIX = np.random.default_rng(5).normal(size=(2, len(CHANNELS)))


def rows_of(seed: int, n: int = 400) -> np.ndarray:
    """Return rows of a pump without a fault."""
    rng = np.random.default_rng(seed)
    return 20 + 3 * rng.normal(size=(n, 2)) @ MIX + 0.3 * rng.normal(size=(n, len(CHANNELS)))


def inhabit(house: House) -> None:
    """Have all nodes report, with their alarms."""
    for i, node in enumerate(NODES):
        house.hears(node, rows_of(i), schema=SCHEMA, alarm_status=_said(node))
    house.passes(1.0)


def _said(node: str) -> Any:
    if node == OPEN:
        off = (Deviation("outflow", 17.9, 22.4), Deviation("inflow", 21.0, 20.1))
        top = (("outflow", 0.75), ("inflow", 0.25))
        open_ = alarm(node, 3, worst=13.2, top=top, deviations=off)
        return alarm_status(open_, watched_s=3e6, allowed=1.2, raised=3)
    if node == OVER:
        top = (("temperature", 0.9), ("current", 0.1))
        ended = alarm(node, 1, ended=60.0, worst=4.1, top=top)
        brief = alarm(node, 2, ended=9.0, worst=1.3, top=top, provisional=True)
        return alarm_status(ended, brief, watched_s=3e6, allowed=1.2, raised=2)
    return alarm_status(state="learning" if node == NODES[-1] else "armed")

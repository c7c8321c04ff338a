"""Alarms that a test makes up, and what nodes say of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from submerge.protocol.alarm_status import Alarm, AlarmStatus, State, pooled
from support.house import House
from support.nodes import EPOCH

ROWS = np.random.default_rng(0).normal(size=(60, 6))
FENCE = b"\1" * 16


def alarm(node: str = "c", number: int = 1, *, ended: float = 0.0, **reported: Any) -> Alarm:
    """Return an alarm of a node, that began so many seconds after a test's epoch."""
    began = EPOCH + number
    known: dict[str, Any] = {
        "worst": 2.5,
        "cause": "spe",
        "top": (("mote-1", 0.75), ("mote-4", 0.25)),
        "version": 3,
    }
    known |= {"began": began, "peaked": began, "ended": ended and EPOCH + ended}
    return Alarm(node=node, number=number, **known | reported)


def alarm_status(*alarms: Alarm, state: State = "armed", **reported: Any) -> AlarmStatus:
    """Return what a client says that has these alarms."""
    is_open = sum(each.is_open for each in alarms)
    return AlarmStatus(AlarmStatus.at("alarm" if is_open else state), alarms, is_open, **reported)


def message(house: House, node: str, *alarms: Alarm, **reported: Any) -> Any:
    """Have a client report its alarms; return the answer."""
    return house.hears(node, ROWS, alarm_status=alarm_status(*alarms, **reported))


def passes_on(house: House, aggregator: str, *alarm_statuses: AlarmStatus, desired: int = 0) -> Any:
    """Have an aggregator report what those below it say; return the answer."""
    house.joins(aggregator, FENCE)
    said = pooled(alarm_statuses, desired=desired)
    return house.hears(aggregator, ROWS, fence=FENCE, alarm_status=said)

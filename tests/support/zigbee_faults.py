"""Faults of the household's devices: what a broken one publishes in place of what it measures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from support.zigbee import BASE, DAY_S, Message

Kind = Literal["sticks", "jumps", "drifts", "zero", "times", "silent"]


class Fault(NamedTuple):
    """A fault of one field of a device.

    field : "" for all of its fields, where it is silent
    size : of a jump, and what a drift gains in a day; the factor of `times`
    also : fields that the fault moves alike, as a plug's current follows its power
    """

    kind: Kind
    device: str
    field: str
    size: float = 0.0
    also: tuple[str, ...] = ()

    @property
    def channels(self) -> set[str]:
        """The channels that an alarm may blame."""
        return {f"{self.device}/{field}" for field in (self.field, *self.also)}

    @property
    def text(self) -> str:
        """The fault in a few words."""
        how = {
            "sticks": "repeats one value",
            "jumps": f"jumps by {self.size:+g}",
            "drifts": f"drifts by {self.size:+g} a day",
            "zero": "falls to 0",
            "times": f"{self.size:g} times as much",
            "silent": "says nothing",
        }[self.kind]
        return f"{self.device}{'/' if self.field else ''}{self.field} {how}"


FAULTS = (
    Fault("sticks", "bedroom", "temperature"),
    Fault("sticks", "kitchen", "humidity"),
    Fault("jumps", "bedroom", "temperature", 5.0),
    Fault("jumps", "garden", "temperature", 5.0),
    Fault("drifts", "study", "temperature", 5.0),
    Fault("times", "fridge", "power", 3.0, ("current",)),
    Fault("times", "desk", "power", 3.0, ("current",)),
    Fault("zero", "bath", "humidity"),
    Fault("zero", "radiator", "local_temperature"),
    Fault("silent", "garden", ""),
)


def with_fault(heard: Iterable[Message], fault: Fault, since: float) -> Iterator[Message]:
    """Yield the messages as they are with a fault from a time on."""
    stuck: float | None = None
    for message in heard:
        if message.topic != f"{BASE}/{fault.device}" or message.time < since:
            yield message
            continue
        if fault.kind == "silent":
            continue
        payload = json.loads(message.payload)
        stuck = payload[fault.field] if stuck is None else stuck
        for field in (fault.field, *fault.also):
            payload[field] = _faulty(fault, payload[field], stuck, message.time - since)
        yield message._replace(payload=json.dumps(payload).encode())


def _faulty(fault: Fault, value: float, stuck: float, elapsed_s: float) -> float:
    match fault.kind:
        case "sticks":
            return stuck
        case "jumps":
            return round(value + fault.size, 2)
        case "drifts":
            return round(value + fault.size * elapsed_s / DAY_S, 2)
        case "times":
            return round(value * fault.size, 2)
        case _:
            return 0.0

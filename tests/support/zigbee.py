"""Household: what twelve devices behind Zigbee2MQTT publish, on a virtual clock.

Weather, a daily rhythm and the people at home cause most of it, so channels vary together. Devices
speak once in one to ten minutes, or when something changes; some are silent for hours; one joins
later, and one gets another name. Payloads have the fields of Zigbee2MQTT's device pages; the same
seed gives the same messages.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

DAY_S, HOUR_S, MINUTE_S = 86_400.0, 3600.0, 60.0
BASE = "zigbee2mqtt"

Payload = dict[str, Any]


class Message(NamedTuple):
    """A message of the broker, at a time in seconds of the virtual clock."""

    time: float
    topic: str
    payload: bytes
    retained: bool = False


class Device(NamedTuple):
    """A device: what it is, its usual silence, and for how long it is in the household.

    every_s : the mean time between messages; 0: it speaks when something changes
    """

    name: str
    kind: str
    every_s: float
    fields: tuple[tuple[str, str], ...]


CLIMATE = (("temperature", "°C"), ("humidity", "%"), ("battery", "%"), ("linkquality", "lqi"))
OUTDOOR = (*CLIMATE, ("pressure", "hPa"))
PLUG = (
    *(("power", "W"), ("energy", "kWh"), ("voltage", "V"), ("current", "A")),
    *(("state", ""), ("linkquality", "lqi")),
)
CONTACT = (("contact", ""), ("battery", "%"), ("voltage", "mV"), ("linkquality", "lqi"))
MOTION = (("occupancy", ""), ("illuminance", "lx"), ("battery", "%"), ("linkquality", "lqi"))
THERMOSTAT = (
    *(("local_temperature", "°C"), ("occupied_heating_setpoint", "°C")),
    *(("pi_heating_demand", "%"), ("running_state", ""), ("system_mode", "")),
    *(("battery", "%"), ("linkquality", "lqi")),
)

RENAMED, NEW_NAME, NEW = "study", "office", "attic"

DEVICES = (
    Device("kitchen", "climate", 60.0, CLIMATE),
    Device("bedroom", "climate", 300.0, CLIMATE),
    Device("bath", "climate", 0.0, CLIMATE),
    Device(RENAMED, "climate", 180.0, CLIMATE),
    Device(NEW, "climate", 240.0, CLIMATE),
    Device("garden", "outdoor", 600.0, OUTDOOR),
    Device("front_door", "contact", 0.0, CONTACT),
    Device("window", "contact", 0.0, CONTACT),
    Device("fridge", "plug", 60.0, PLUG),
    Device("desk", "plug", 120.0, PLUG),
    Device("hall", "motion", 0.0, MOTION),
    Device("radiator", "thermostat", 420.0, THERMOSTAT),
)

WARMTH = {"kitchen": 21.5, "bedroom": 18.5, "bath": 22.0, "study": 20.5, "attic": 19.0}
DAMP = {"kitchen": 6.0, "bedroom": 4.0, "bath": 8.0, "study": 2.0, "attic": 0.0}


class Causes:
    """What drives the household, minute by minute: weather, people and their rhythm."""

    def __init__(self, rng: np.random.Generator, days: float) -> None:
        n = int(days * 1440) + 1441
        self.minutes = np.arange(n) * MINUTE_S
        hour = self.minutes / HOUR_S % 24
        day = self.minutes // DAY_S
        weekend = day % 7 >= 5
        self.front = _wander(rng, n, hours=40.0)
        self.cloud = np.clip(0.5 + 0.35 * _wander(rng, n, hours=8.0), 0, 1)
        self.sun = np.clip(np.sin(2 * np.pi * (hour - 6.5) / 24), 0, 1) * (1 - 0.8 * self.cloud)
        self.outside = 6 + 4 * self.front + 3 * np.sin(2 * np.pi * (hour - 9.5) / 24) + 3 * self.sun
        self.pressure = 1013 + 8 * _wander(rng, n, hours=60.0) - 3 * self.front
        wakes = 6.5 + 1.5 * weekend + 0.3 * rng.standard_normal(int(day[-1]) + 1)[day.astype(int)]
        sleeps = 22.8 + 0.5 * weekend
        leaves = np.where(weekend, 11.0, 8.2)
        back = (
            np.where(weekend, 13.0, 16.5)
            + 0.7 * rng.standard_normal(int(day[-1]) + 1)[day.astype(int)]
        )
        self.awake = (hour > wakes) & (hour < sleeps)
        self.home = self.awake & ~((hour > leaves) & (hour < back))
        self.works = self.home & (rng.random(n // 30 + 1).repeat(30)[:n] < 0.6)
        self.setpoint = np.where(self.awake, 21.0, 17.0)
        self.inside = _lagged(self.setpoint + 0.05 * (self.outside - 6) + 0.8 * self.sun, hours=3)
        self.demand = np.clip(
            20 + 25 * (self.setpoint - self.inside) + 2.2 * (10 - self.outside), 0, 100
        )
        self.steam = _lagged(self._showers(rng, wakes, day, hour), hours=0.5)
        cooks = self.home & (np.abs(hour - 18.5) < 1) & (rng.random(n) < 0.03)
        self.cooking = _lagged(cooks * 400.0, hours=0.4)
        self.aired = self.home & (rng.random(n // 20 + 1).repeat(20)[:n] < 0.05)
        self.mains = 231 + 1.5 * _wander(rng, n, hours=2.0) - 1.5 * self.home

    @staticmethod
    def _showers(
        rng: np.random.Generator, wakes: np.ndarray, day: np.ndarray, hour: np.ndarray
    ) -> np.ndarray:
        """Two a day, of five to ten minutes."""
        n = int(day[-1]) + 1
        first, long = rng.uniform(0.1, 0.5, (n, 2)), rng.uniform(0.08, 0.16, (n, 2))
        first[:, 1] += 0.5
        since = (hour - wakes)[:, None] - first[day.astype(int)]
        on = (since > 0) & (since < long[day.astype(int)])
        return np.asarray(200.0 * on.any(axis=1))

    def at(self, name: str, time: float) -> float:
        """Return a cause at a time."""
        cause = getattr(self, name)
        return float(cause[min(int(time // MINUTE_S), len(cause) - 1)])


def _wander(rng: np.random.Generator, n: int, *, hours: float) -> np.ndarray:
    """A stationary walk of deviation one."""
    keep = np.exp(-1 / (60 * hours))
    steps = rng.standard_normal(n) * np.sqrt(1 - keep**2)
    steps[0] = rng.standard_normal()
    return _recursive(steps, keep)


def _lagged(values: np.ndarray, *, hours: float) -> np.ndarray:
    keep = np.exp(-1 / (60 * hours))
    inputs = (1 - keep) * values
    inputs[0] = values[0]
    return _recursive(inputs, keep)


def _recursive(inputs: np.ndarray, keep: float) -> np.ndarray:
    out, last = np.empty(len(inputs)), 0.0
    for i, value in enumerate(inputs.tolist()):
        out[i] = last = keep * last + value
    return out


class Household:
    """The devices of one home.

    Parameters
    ----------
    seed : int
    days : float
    new_on, renamed_on : float or None
        The day on which `NEW` joins, and on which `RENAMED` becomes `NEW_NAME`; None: `NEW` is
        there from the first, and no name changes.
    """

    def __init__(
        self,
        seed: int,
        days: float,
        *,
        new_on: float | None = None,
        renamed_on: float | None = None,
    ) -> None:
        self.seed, self.end_s = seed, days * DAY_S
        self._new_s = 0.0 if new_on is None else new_on * DAY_S
        self._renamed_s = np.inf if renamed_on is None else renamed_on * DAY_S
        self.causes = Causes(np.random.default_rng((seed, 0)), days)

    def messages(self) -> Iterator[Message]:
        """Yield all messages, in the order of time; descriptions are retained."""
        yield self._description(0.0)
        each = [self._of(n, device) for n, device in enumerate(DEVICES)]
        told = [self._description(at) for at in (self._new_s, self._renamed_s) if 0 < at < np.inf]
        yield from heapq.merge(*each, sorted(told), key=lambda message: message.time)

    def _name(self, device: Device, time: float) -> str:
        return NEW_NAME if device.name == RENAMED and time >= self._renamed_s else device.name

    def _description(self, time: float) -> Message:
        """What Zigbee2MQTT retains of all its devices."""
        content = [
            {
                "friendly_name": self._name(device, time),
                "ieee_address": f"0x00158d000{n:07x}",
                "type": "EndDevice",
                "definition": {"exposes": [_expose(*field) for field in device.fields]},
            }
            for n, device in enumerate(DEVICES)
            if device.name != NEW or time >= self._new_s
        ]
        return Message(time, f"{BASE}/bridge/devices", json.dumps(content).encode(), retained=True)

    def _of(self, n: int, device: Device) -> Iterator[Message]:
        rng = np.random.default_rng((self.seed, 1 + n))
        values = _KINDS[device.kind](device, self.causes, rng)
        away = [
            (float(s), float(s + rng.uniform(1, 5) * HOUR_S))
            for s in rng.uniform(0, self.end_s, rng.poisson(self.end_s / (20 * DAY_S)))
        ]
        begins = self._new_s if device.name == NEW else 0.0
        for time in self._times(device, values, rng, begins):
            if any(s <= time < e for s, e in away):
                continue
            payload = values(time)
            payload["linkquality"] = int(np.clip(110 + 4 * n + rng.normal(0, 9), 1, 255))
            payload["update"] = {"installed_version": 4096 + n, "state": "idle"}
            topic = f"{BASE}/{self._name(device, time)}"
            yield Message(time, topic, json.dumps(payload).encode())

    def _times(
        self, device: Device, values: Values, rng: np.random.Generator, begins: float
    ) -> Iterator[float]:
        time = begins + rng.uniform(0, device.every_s or MINUTE_S)
        if device.every_s:
            while time < self.end_s:
                yield time
                time += device.every_s * rng.uniform(0.7, 1.3)
            return
        last, last_s, slack = None, -np.inf, 50 * MINUTE_S
        while time < self.end_s:
            now = _coarse(values(time))
            if now != last or time - last_s > slack:
                yield time
                last, last_s = now, time
            time += rng.uniform(20, 40)


Values = Callable[[float], Payload]
"""What a device says at a time."""


def _coarse(payload: Payload) -> tuple[object, ...]:
    """What makes a device that reports changes speak."""
    step = {"temperature": 0.5, "humidity": 3.0, "illuminance": 50.0, "contact": 1, "occupancy": 1}
    return tuple(round(float(payload[key]) / step[key]) for key in step if key in payload)


def _climate(device: Device, causes: Causes, rng: np.random.Generator) -> Values:
    name, cell = device.name, rng.uniform(70, 100)

    def values(time: float) -> Payload:
        warm = WARMTH[name] - 19.5 + causes.at("inside", time)
        damp = 45 + DAMP[name] + 5 * causes.at("front", time) - 1.5 * (warm - 20)
        if name == "bath":
            warm, damp = warm + 0.06 * causes.at("steam", time), damp + causes.at("steam", time)
        if name == "kitchen":
            warm += 0.12 * causes.at("cooking", time)
            damp += 0.6 * causes.at("cooking", time)
        if name == "attic":
            warm += 0.25 * (causes.at("outside", time) - 6) + 2 * causes.at("sun", time)
        return {
            "temperature": round(warm + rng.normal(0, 0.05), 2),
            "humidity": round(float(np.clip(damp + rng.normal(0, 0.4), 0, 100)), 2),
            "battery": round(cell - time / (12 * DAY_S)),
        }

    return values


def _outdoor(_device: Device, causes: Causes, rng: np.random.Generator) -> Values:
    def values(time: float) -> Payload:
        outside = causes.at("outside", time)
        damp = 78 + 6 * causes.at("front", time) - 2 * (outside - 6)
        return {
            "temperature": round(outside + rng.normal(0, 0.1), 2),
            "humidity": round(float(np.clip(damp + rng.normal(0, 1), 0, 100)), 2),
            "pressure": round(causes.at("pressure", time) + rng.normal(0, 0.1), 1),
            "battery": round(95 - time / (20 * DAY_S)),
        }

    return values


def _plug(device: Device, causes: Causes, rng: np.random.Generator) -> Values:
    energy, last_s, cycle_s = rng.uniform(5, 400), 0.0, rng.uniform(35, 50) * MINUTE_S

    def values(time: float) -> Payload:
        nonlocal energy, last_s
        if device.name == "fridge":
            runs = time % cycle_s < cycle_s * (0.3 + 0.02 * (causes.at("inside", time) - 20))
            power = 82 + rng.normal(0, 1.5) if runs else 1.2
        else:
            power = 65 + rng.normal(0, 6) if causes.at("works", time) else 0.8
        volts = causes.at("mains", time) + rng.normal(0, 0.3)
        energy, last_s = energy + power * (time - last_s) / 3.6e6, time
        return {
            "power": round(power, 1),
            "energy": round(energy, 2),
            "voltage": round(volts, 1),
            "current": round(power / volts, 2),
            "state": "ON",
        }

    return values


def _contact(device: Device, causes: Causes, rng: np.random.Generator) -> Values:
    door = device.name == "front_door"
    cell = rng.uniform(80, 100)
    opens = np.random.default_rng(rng.integers(2**32)).random(len(causes.minutes)) < 0.02

    def values(time: float) -> Payload:
        minute = min(int(time // MINUTE_S), len(opens) - 1)
        is_open = causes.home[minute] and opens[minute] if door else causes.aired[minute]
        return {
            "contact": not is_open,
            "battery": round(cell - time / (30 * DAY_S)),
            "voltage": round(2900 + cell - time / (4 * DAY_S), -1),
        }

    return values


def _motion(_device: Device, causes: Causes, rng: np.random.Generator) -> Values:
    moves = np.random.default_rng(rng.integers(2**32)).random(len(causes.minutes)) < 0.15

    def values(time: float) -> Payload:
        minute = min(int(time // MINUTE_S), len(moves) - 1)
        lamp = 120.0 if causes.home[minute] and causes.sun[minute] < 0.05 else 0.0
        light = max(0.0, 600 * causes.sun[minute] + lamp + rng.normal(0, 4))
        return {
            "occupancy": bool(causes.home[minute] and moves[minute]),
            "illuminance": round(light),
            "battery": round(88 - time / (15 * DAY_S)),
        }

    return values


def _thermostat(_device: Device, causes: Causes, rng: np.random.Generator) -> Values:
    def values(time: float) -> Payload:
        demand = round(float(np.clip(causes.at("demand", time) + rng.normal(0, 3), 0, 100)))
        return {
            "local_temperature": round(causes.at("inside", time) + rng.normal(0, 0.1), 1),
            "occupied_heating_setpoint": causes.at("setpoint", time),
            "pi_heating_demand": demand,
            "running_state": "heat" if demand else "idle",
            "system_mode": "auto",
            "battery": round(90 - time / (10 * DAY_S)),
        }

    return values


_KINDS: dict[str, Callable[[Device, Causes, np.random.Generator], Values]] = {
    "climate": _climate,
    "outdoor": _outdoor,
    "plug": _plug,
    "contact": _contact,
    "motion": _motion,
    "thermostat": _thermostat,
}


def _expose(name: str, unit: str) -> dict[str, str]:
    if name in ("contact", "occupancy", "state"):
        return {"type": "binary", "property": name, "name": name}
    if name.endswith(("_mode", "_state")):
        return {"type": "enum", "property": name, "name": name}
    return {"type": "numeric", "property": name, "name": name, "unit": unit}

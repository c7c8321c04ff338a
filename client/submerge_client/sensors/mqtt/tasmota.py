"""TasmotaDiscovery: what Tasmota's own discovery says of a device's readings.

Two retained messages describe a device: `tasmota/discovery/MAC/config` has how its topics are made,
`tasmota/discovery/MAC/sensors` the last content of its topic SENSOR, with units of temperature,
pressure and speed beside the readings. The form of the first is that of Tasmota's documentation,
page "Auto discovery"; that of the second, and the units that quantities have by their names, those
of the library hatasmota (`discovery.py`, `sensor.py`), which Home Assistant reads both with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from submerge_client.sensors.mqtt.fields import LONGEST_NAME, leaves_of

SUBSCRIPTION = "tasmota/discovery/#"

MOST_DEVICES = 512
"""Devices of which one message has come and the other has not."""

MOST_WAITING = 4096
"""Readings that wait for the topic of their device, over all of them."""

UNITS = {
    **dict.fromkeys(("Power", "ActivePower"), "W"),
    **dict.fromkeys(("Current", "CurrentNeutral"), "A"),
    **dict.fromkeys(("Humidity", "Moisture", "Battery"), "%"),
    **dict.fromkeys(("Illuminance", "Ambient"), "lx"),
    **dict.fromkeys(("PM1", "PM2.5", "PM10", "CF1", "CF2.5", "CF10"), "µg/m³"),
    **dict.fromkeys(("CarbonDioxide", "eCO2"), "ppm"),
    **dict.fromkeys(("Total", "Today", "Yesterday", "Energy"), "kWh"),
    **dict.fromkeys(("ExportActive", "ImportActive"), "kWh"),
    **dict.fromkeys(("ExportReactive", "ImportReactive"), "kvarh"),
    "ApparentPower": "VA",
    "ReactivePower": "var",
    "Voltage": "V",
    "Frequency": "Hz",
    "PhaseAngle": "°",
    "Distance": "cm",
    "TVOC": "ppb",
    "Weight": "kg",
}
"""By the last word of a reading's path, without a number at its end."""

LONGEST_TOPIC = 2 * LONGEST_NAME

SPOKEN = {
    **dict.fromkeys(("Temperature", "DewPoint"), "TempUnit"),
    **dict.fromkeys(("Pressure", "SeaPressure"), "PressureUnit"),
    "Speed": "SpeedUnit",
}
"""The words whose unit stands in the message, and where."""


class TasmotaDiscovery:
    """Puts both messages of each device together."""

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}
        # Not the messages: they may be large, and any device of the network can publish them.
        self._readings: dict[str, list[tuple[str, str, str]]] = {}

    def take(self, topic: str, content: Any) -> Iterator[tuple[str, str, str, str]]:
        """Yield topic, path, unit and kind of each reading of a device that is known now."""
        *_, device, what = topic.split("/")
        if len(device) > LONGEST_NAME or not isinstance(content, dict):
            return
        if what == "config":
            if device in self._topics or len(self._topics) < MOST_DEVICES:
                self._topics[device] = _topic_of(content)
        elif what == "sensors":
            readings = _readings_in(content.get("sn"))
            self._readings.pop(device, None)
            if self._topics.get(device) or self._has_room(readings):
                self._readings[device] = readings
        if self._topics.get(device):
            for reading in self._readings.pop(device, ()):
                yield self._topics[device], *reading

    def _has_room(self, readings: list[tuple[str, str, str]]) -> bool:
        waiting = sum(map(len, self._readings.values()))
        return len(self._readings) < MOST_DEVICES and waiting + len(readings) <= MOST_WAITING


def _topic_of(config: dict[str, Any]) -> str:
    """Return the topic of a device's readings; "" if the message does not say it."""
    full, prefixes = config.get("ft"), config.get("tp")
    if not isinstance(full, str) or not isinstance(prefixes, list) or len(prefixes) != 3:
        return ""
    words = {"prefix": prefixes[2], "topic": config.get("t"), "hostname": config.get("hn")}
    mac = config.get("mac")
    words["id"] = mac[-6:] if isinstance(mac, str) else ""
    for word, text in words.items():
        # Each word may stand there many times, and each of them may be long.
        if len(full) > LONGEST_TOPIC:
            return ""
        full = full.replace(f"%{word}%", text[:LONGEST_TOPIC] if isinstance(text, str) else "")
    return f"{full.rstrip('/')}/SENSOR" if len(full) <= LONGEST_TOPIC else ""


def _readings_in(content: Any) -> list[tuple[str, str, str]]:
    """Return path, unit and kind of each reading."""
    found = ((path, _unit(path, content), _kind(value)) for path, value in leaves_of(content))
    return [each for each in found if each[-1]]


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "state" if value in ("ON", "OFF") else ""


def _unit(path: str, readings: Any) -> str:
    words = [word for word in path.split(".") if not word.isdecimal()]
    if not words:
        return ""
    dotted = path.rpartition(f".{words[-1]}.")[2]  # PM2.5 has a dot of its own
    last = f"{words[-1]}.{dotted}" if f"{words[-1]}.{dotted}" in UNITS else words[-1]
    word = re.sub(r"(?<=[a-z])\d+$", "", last)  # Temperature1
    unit = readings.get(SPOKEN[word]) if word in SPOKEN and isinstance(readings, dict) else None
    if isinstance(unit, str):
        unit = unit[:LONGEST_NAME]
        return f"°{unit}" if SPOKEN[word] == "TempUnit" else unit
    return UNITS.get(word, "")

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

from submerge_client.sensors.mqtt.fields import leaves_of

SUBSCRIPTION = "tasmota/discovery/#"

MOST_DEVICES = 512
"""Devices of which one message has come and the other has not."""

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
        self._readings: dict[str, Any] = {}

    def take(self, topic: str, content: Any) -> Iterator[tuple[str, str, str, str]]:
        """Yield topic, path, unit and kind of each reading of a device that is known now."""
        *_, device, what = topic.split("/")
        if what == "config" and isinstance(content, dict):
            _remember(self._topics, device, _topic_of(content))
        elif what == "sensors" and isinstance(content, dict):
            _remember(self._readings, device, content.get("sn"))
        if self._topics.get(device) and device in self._readings:
            readings = self._readings.pop(device)
            for path, value in leaves_of(readings):
                kind = _kind(value)
                if kind:
                    yield self._topics[device], path, _unit(path, readings), kind


def _remember(known: dict[str, Any], device: str, what: Any) -> None:
    if device in known or len(known) < MOST_DEVICES:
        known[device] = what


def _topic_of(config: dict[str, Any]) -> str:
    """Return the topic of a device's readings; "" if the message does not say it."""
    full, prefixes = config.get("ft"), config.get("tp")
    if not isinstance(full, str) or not isinstance(prefixes, list) or len(prefixes) != 3:
        return ""
    words = {"prefix": prefixes[2], "topic": config.get("t"), "hostname": config.get("hn")}
    words["id"] = str(config.get("mac", ""))[-6:]
    for word, text in words.items():
        full = full.replace(f"%{word}%", text if isinstance(text, str) else "")
    return f"{full.rstrip('/')}/SENSOR"


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
        return f"°{unit}" if SPOKEN[word] == "TempUnit" else unit
    return UNITS.get(word, "")

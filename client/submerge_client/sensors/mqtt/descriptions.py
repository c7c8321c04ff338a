"""Descriptions: what devices say about their fields, in retained messages beside the readings.

1. Zigbee2MQTT publishes all of its devices under `zigbee2mqtt/bridge/devices`; each has `exposes`,
   a tree of properties with types, units and categories.
2. Home Assistant's discovery has a message for each field, with the topic of its state, its unit,
   and a template with the field's path. Tasmota, Shelly, ESPHome and others can publish it.
3. Tasmota's own discovery has two messages for each device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from submerge_client.sensors.mqtt.decoder import DEEPEST, LONGEST_NAME, MalformedMessage, leaves_of
from submerge_client.sensors.mqtt.topics import DEVICE

SUBSCRIPTION = "tasmota/discovery/#"

MOST_DEVICES = 512  # devices of which one message has come and the other has not
MOST_WAITING = 4096  # readings that wait for the topic of their device, over all of them

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
            told = content.get("sn")
            found = ((path, _unit(path, told), _kind(value)) for path, value in leaves_of(told))
            readings = [each for each in found if each[-1]]
            self._readings.pop(device, None)
            waiting = len(readings) + sum(map(len, self._readings.values()))
            has_room = len(self._readings) < MOST_DEVICES and waiting <= MOST_WAITING
            if self._topics.get(device) or has_room:
                self._readings[device] = readings
        if self._topics.get(device):
            for reading in self._readings.pop(device, ()):
                yield self._topics[device], *reading


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


SUBSCRIPTIONS = (
    "+/bridge/devices",
    "homeassistant/+/+/config",
    "homeassistant/+/+/+/config",
    SUBSCRIPTION,
)
"""Where they are published."""

LARGEST_DESCRIPTION = 1 << 20  # bytes: a gateway describes a hundred devices in one message
MOST_DESCRIBED = 4096  # fields that are read of a message

LONGEST_UNIT = 32

MOST_AWAY = 4  # topics of one field that say whether its device is away

_BRIDGE, _CONFIG = "/bridge/devices", "/config"
_TASMOTA = SUBSCRIPTION.removesuffix("#")
_NUMBERS = ("sensor", "number")
_STATES = ("binary_sensor", "switch", "lock", "select")
_PUBLISHED = 1
"""The bit of Zigbee2MQTT's `access` that a property has which stands in the device's messages."""

_IN_TEMPLATE = re.compile(r"value_json((?:\.\w+|\[\s*'[^'\]]+'\s*\]|\[\s*\d+\s*\])+)")
_STEP = re.compile(r"\.(\w+)|\[\s*'([^'\]]+)'\s*\]|\[\s*(\d+)\s*\]")


def bridges_of(topics: Sequence[str]) -> tuple[str, ...]:
    """Return where Zigbee2MQTT describes the devices of such patterns: `zigbee2mqtt/+`."""
    bases = [topic.rpartition("/") for topic in topics]
    # Nothing else: some brokers disconnect a client that asks for more than it may read.
    return tuple(
        f"{base}{_BRIDGE}"
        for base, _, last in bases
        if base and last in ("+", DEVICE) and not set("+#{") & set(base)
    )


class DescribedField(NamedTuple):
    """A field as the device or its gateway describes it, at a topic and a path in its JSON."""

    topic: str
    path: str
    unit: str
    kind: str  # "number", "state" for words and booleans, or ""
    is_minor: bool = False  # a setting, or about the device
    away: tuple[tuple[str, str], ...] = ()  # topics where it says so, with the words


def is_description(topic: str) -> bool:
    return topic.endswith(_BRIDGE) or (
        topic.startswith(("homeassistant/", _TASMOTA)) and topic.endswith((_CONFIG, "/sensors"))
    )


class Descriptions:
    """Reads descriptions; those of Tasmota have two messages for a device."""

    def __init__(self) -> None:
        self._tasmota = TasmotaDiscovery()

    def take(self, topic: str, payload: bytes | bytearray) -> list[DescribedField]:
        if len(payload) > LARGEST_DESCRIPTION:
            raise MalformedMessage(
                f"expected {LARGEST_DESCRIPTION} bytes at most, got {len(payload)}"
            )
        if not payload.strip():
            return []  # what was retained is deleted
        try:
            content = msgspec.json.decode(payload)
        except (ValueError, OverflowError, RecursionError) as error:
            raise MalformedMessage(f"expected JSON, got other bytes: {error}") from None
        return list(filter(_is_usable, islice(self._found(topic, content), MOST_DESCRIBED)))

    def _found(self, topic: str, content: Any) -> Iterator[DescribedField]:
        if topic.endswith(_BRIDGE):
            return _of_bridge(topic, content)
        if topic.startswith(_TASMOTA):
            return (DescribedField(*each) for each in self._tasmota.take(topic, content))
        return _of_discovery(topic, content)


def _is_usable(field: DescribedField) -> bool:
    texts = (field.topic, field.path, field.unit)
    longest = (2 * LONGEST_NAME, LONGEST_NAME, LONGEST_UNIT)
    return bool(field.topic) and all(
        len(text) <= most and text.isprintable() for text, most in zip(texts, longest, strict=True)
    )


def _of_bridge(topic: str, content: Any) -> Iterator[DescribedField]:
    base = topic.removesuffix(_BRIDGE)
    for device in _items(content):
        name = _text(device, "friendly_name")
        definition = device.get("definition")
        exposes = definition.get("exposes") if isinstance(definition, dict) else None
        for path, property_ in _properties(exposes, 0):
            kind = {"numeric": "number", "binary": "state", "enum": "state"}
            yield DescribedField(
                f"{base}/{name}",
                path,
                _text(property_, "unit"),
                kind.get(_text(property_, "type"), ""),
                _text(property_, "category") in ("config", "diagnostic"),
            )


def _properties(exposes: Any, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each property that is published, and what is said of it."""
    for each in _items(exposes):
        path, access = _text(each, "property"), each.get("access", _PUBLISHED)
        has_parts = depth < DEEPEST and isinstance(each.get("features"), list)
        if path and not has_parts and isinstance(access, int) and access & _PUBLISHED:
            yield path, each
        for inner, property_ in _properties(each.get("features"), depth + 1) if has_parts else ():
            # The features of a composite, as of a colour, are inside its property.
            yield f"{path}.{inner}" if path else inner, property_


def _of_discovery(topic: str, content: Any) -> Iterator[DescribedField]:
    """Yield the field, by the full or the short names of settings."""
    if not isinstance(content, dict):
        return
    state_topic = _whole(content, _text(content, "state_topic", "stat_t"))
    template = _text(content, "value_template", "val_tpl")
    inside = _IN_TEMPLATE.search(template[:1024])
    if template and inside is None and "value" not in template.split("|")[0].split():
        return
    steps = _STEP.findall(inside[1]) if inside else []
    path = ".".join(next(filter(None, step)) for step in steps)
    unit = _text(content, "unit_of_measurement", "unit_of_meas")
    component = topic.split("/")[1]
    kind = "number" if unit or _text(content, "state_class", "stat_cla") else ""
    kind = "state" if component in _STATES else kind if component in _NUMBERS else ""
    minor = bool(_text(content, "entity_category", "ent_cat"))
    away = tuple(islice(_away(content), MOST_AWAY))
    yield DescribedField(state_topic, path, unit, kind, minor, away)


def _away(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield where a device says that it is away, with the word."""
    listed = content.get("availability", content.get("avty"))
    topic = {"topic": _text(content, "availability_topic", "avty_t")}
    for each in (*_items(listed), content | topic):
        named = _text(each, "topic", "t")
        word = _text(each, "payload_not_available", "pl_not_avail") or "offline"
        said = _whole(content, named), word
        if named and all(len(text) <= LONGEST_NAME and text.isprintable() for text in said):
            yield said


def _whole(content: dict[str, Any], topic: str) -> str:
    """Return a topic with what `~` stands for."""
    base = _text(content, "~")
    return re.sub(r"^~|~$", lambda _: base, topic) if base else topic


def _items(content: Any) -> Iterator[dict[str, Any]]:
    for each in content if isinstance(content, list) else []:
        if isinstance(each, dict):
            yield each


def _text(content: dict[str, Any], *keys: str) -> str:
    for key in keys:
        value = content.get(key)
        if isinstance(value, str):
            return value
    return ""

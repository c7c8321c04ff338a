"""units_in(): what devices say about their fields, in retained messages beside the readings.

1. Zigbee2MQTT publishes all of its devices under `zigbee2mqtt/bridge/devices`; each has `exposes`,
   a tree of properties with units.
2. Home Assistant's discovery has a message for each field, with the topic of its state, its unit,
   and a template with the field's path. Tasmota, Shelly, ESPHome and others can publish it.

Other messages, and parts that have another form, say nothing. Births of Sparkplug B have units
themselves (`sparkplug_payload`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from submerge_client.sensors.mqtt.decoder import MalformedMessage
from submerge_client.sensors.mqtt.fields import DEEPEST, LONGEST_NAME
from submerge_client.sensors.mqtt.topics import TopicPattern, name_of

SUBSCRIPTIONS = (
    "+/bridge/devices",
    "homeassistant/+/+/config",
    "homeassistant/+/+/+/config",
)
"""Where they are published."""

LARGEST_DESCRIPTION = 1 << 20
"""Bytes: a gateway describes a hundred devices in one message."""

MOST_DESCRIBED = 4096
"""Fields that are read of a message."""

_BRIDGE, _CONFIG = "/bridge/devices", "/config"
_IN_TEMPLATE = re.compile(r"value_json((?:\.\w+|\[\s*'[^'\]]+'\s*\]|\[\s*\d+\s*\])+)")
_STEP = re.compile(r"\.(\w+)|\[\s*'([^'\]]+)'\s*\]|\[\s*(\d+)\s*\]")


class FieldUnit(NamedTuple):
    """The unit of a field.

    name : `device/field`
    unit : a text that is not empty
    """

    name: str
    unit: str


def is_description(topic: str) -> bool:
    """Return whether a topic is one that `units_in` reads."""
    return topic.endswith(_BRIDGE) or (
        topic.startswith("homeassistant/") and topic.endswith(_CONFIG)
    )


def units_in(
    topic: str, payload: bytes | bytearray, patterns: Sequence[TopicPattern]
) -> list[FieldUnit]:
    """Return the units in a description.

    Parameters
    ----------
    topic : str
    payload : bytes
    patterns : sequence of TopicPattern
        They say how fields are called; those of other topics are left out.

    Raises
    ------
    MalformedMessage
        If it is not JSON, or too large.
    """
    if len(payload) > LARGEST_DESCRIPTION:
        raise MalformedMessage(f"expected {LARGEST_DESCRIPTION} bytes at most, got {len(payload)}")
    if not payload.strip():
        return []  # what was retained is deleted
    try:
        content = msgspec.json.decode(payload)
    except (ValueError, OverflowError, RecursionError) as error:
        raise MalformedMessage(f"expected JSON, got other bytes: {error}") from None
    found = _of_bridge(topic, content) if topic.endswith(_BRIDGE) else _of_discovery(content)
    units = list[FieldUnit]()
    for n, (state_topic, path, unit) in enumerate(found):
        if n == MOST_DESCRIBED:
            break
        place = next(filter(None, (each.place_of(state_topic) for each in patterns)), None)
        if place is not None and unit.isprintable() and 0 < len(unit) <= 32:
            name = name_of(place, path)
            if len(name) <= 2 * LONGEST_NAME and name.isprintable():
                units.append(FieldUnit(name, unit))
    return units


def _of_bridge(topic: str, content: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the topic, path and unit of each property."""
    base = topic.removesuffix(_BRIDGE)
    for device in _items(content):
        name = _text(device, "friendly_name")
        definition = device.get("definition")
        exposes = definition.get("exposes") if isinstance(definition, dict) else None
        for path, unit in _properties(exposes, 0):
            yield f"{base}/{name}", path, unit


def _properties(exposes: Any, depth: int) -> Iterator[tuple[str, str]]:
    for each in _items(exposes):
        path, unit = _text(each, "property"), _text(each, "unit")
        if path and unit:
            yield path, unit
        if depth < DEEPEST:
            for inner, unit in _properties(each.get("features"), depth + 1):
                # The features of a composite, as of a colour, are inside its property.
                yield f"{path}.{inner}" if path else inner, unit


def _of_discovery(content: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the topic, path and unit of the field, by the full or the short names of settings."""
    if not isinstance(content, dict):
        return
    base = _text(content, "~")
    topic = _text(content, "state_topic", "stat_t")
    if base:
        topic = re.sub(r"^~|~$", lambda _: base, topic)
    template = _text(content, "value_template", "val_tpl")
    inside = _IN_TEMPLATE.search(template[:1024])
    if template and inside is None and "value" not in template.split("|")[0].split():
        return
    steps = _STEP.findall(inside[1]) if inside else []
    path = ".".join(next(filter(None, step)) for step in steps)
    yield topic, path, _text(content, "unit_of_measurement", "unit_of_meas")


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

"""What gateways and devices say about their fields."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge_client.sensors.mqtt import descriptions as module
from submerge_client.sensors.mqtt.decoder import MalformedMessage
from submerge_client.sensors.mqtt.descriptions import (
    SUBSCRIPTIONS,
    DescribedField,
    Descriptions,
    bridges_of,
    is_description,
)

BRIDGE = "zigbee2mqtt/bridge/devices"

# Zigbee2MQTT's guide, page "MQTT Topics and Messages", section "zigbee2mqtt/bridge/devices", and
# its page "Exposes": generic types, and a composite with features.
DEVICES = [
    {"friendly_name": "Coordinator", "definition": None},
    {
        "friendly_name": "bath",
        "definition": {
            "exposes": [
                {"type": "numeric", "property": "temperature", "unit": "°C"},
                {"type": "binary", "property": "occupancy"},
                {
                    "type": "composite",
                    "property": "color",
                    "features": [{"type": "numeric", "property": "hue", "unit": "°"}],
                },
                {"type": "light", "features": [{"property": "color_temp", "unit": "mired"}]},
            ]
        },
    },
]


def described(topic: str, content: Any) -> list[DescribedField]:
    assert is_description(topic)
    return Descriptions().take(topic, json.dumps(content).encode())


def units(topic: str, content: Any) -> dict[tuple[str, str], str]:
    return {(each.topic, each.path): each.unit for each in described(topic, content)}


def test_a_bridge_gives_the_fields_of_its_devices() -> None:
    """Also inside of what has features."""
    at = "zigbee2mqtt/bath"
    assert [
        DescribedField(at, "temperature", "°C", "number"),
        DescribedField(at, "occupancy", "", "state"),
        DescribedField(at, "color.hue", "°", "number"),
        DescribedField(at, "color_temp", "mired", ""),
    ] == described(BRIDGE, DEVICES)


def test_a_bridge_says_what_is_not_measured() -> None:
    """By the category and the access bits of its page "Exposes": 1 is "published in a state"."""
    exposes = [
        {"type": "numeric", "property": "battery", "category": "diagnostic", "access": 1},
        {"type": "numeric", "property": "offset", "category": "config", "access": 7},
        {"type": "enum", "property": "identify", "access": 2},
    ]
    devices = [{"friendly_name": "bath", "definition": {"exposes": exposes}}]
    assert {"battery": True, "offset": True} == {
        each.path: each.is_minor for each in described(BRIDGE, devices)
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # Home Assistant's documentation, page "MQTT", section "Discovery messages": full and short
        # names of settings, and a base topic.
        (
            {
                "state_topic": "zigbee2mqtt/bath",
                "unit_of_measurement": "%",
                "value_template": "{{ value_json.humidity }}",
            },
            {("zigbee2mqtt/bath", "humidity"): "%"},
        ),
        (
            {
                "~": "tele/plug",
                "stat_t": "~/SENSOR",
                "unit_of_meas": "W",
                "val_tpl": "{{ value_json['ENERGY'].Power[0] | float }}",
            },
            {("tele/plug/SENSOR", "ENERGY.Power.0"): "W"},
        ),
        (
            {"state_topic": "zigbee2mqtt/scale", "unit_of_measurement": "kg"},
            {("zigbee2mqtt/scale", ""): "kg"},
        ),
        (
            {"state_topic": "zigbee2mqtt/bath", "value_template": "{{ value_json.door }}"},
            {("zigbee2mqtt/bath", "door"): ""},
        ),
        ({"state_topic": "zigbee2mqtt/bath", "unit_of_meas": "C", "val_tpl": "{{ 1 }}"}, {}),
        (["no object"], {}),
    ],
)
def test_discovery_gives_the_unit_of_a_field(content, expected) -> None:
    """By the topic of its state, and the path in its template."""
    assert expected == units("homeassistant/sensor/bath/config", content)


@pytest.mark.parametrize(
    ("component", "more", "kind"),
    [
        ("sensor", {"unit_of_measurement": "W"}, "number"),
        ("sensor", {"stat_cla": "measurement"}, "number"),
        ("sensor", {}, ""),
        ("binary_sensor", {}, "state"),
        ("light", {"unit_of_measurement": "W"}, ""),
    ],
)
def test_discovery_says_what_kind_a_field_is(component, more, kind) -> None:
    """Home Assistant's page "MQTT Sensor": without a unit and a state class, it may be text."""
    content = {"state_topic": "a/b", "entity_category": "diagnostic", **more}
    (field,) = described(f"homeassistant/{component}/a/config", content)

    assert (kind, True) == (field.kind, field.is_minor)


# Tasmota's documentation, page "Auto discovery": the settings t, ft and tp of a device.
TASMOTA = {
    "hn": "tasmota_49A3BC-0956",
    "mac": "AABBCC49A3BC",
    "t": "tasmota_49A3BC",
    "ft": "%prefix%/%topic%/",
    "tp": ["cmnd", "stat", "tele"],
}
# The comment on array and nested sensors in hatasmota's sensor.py, with a unit of temperatures.
SENSORS = {
    "sn": {
        "Time": "2020-03-03T00:00:00+00:00",
        "ENERGY": {"TotalStartTime": "2018-11-23T15:33:47", "Total": 0.017, "Power": [0.0, 1.0]},
        "DS18B20": {"Temperature": 20.6},
        "SDS0X1": {"PM2.5": 3.0},
        "Switch1": "ON",
        "TempUnit": "C",
    },
    "ver": 1,
}


@pytest.mark.parametrize("first", [0, 1])
def test_tasmota_describes_a_device_in_two_messages(first) -> None:
    """Whichever comes first."""
    messages = [("config", TASMOTA), ("sensors", SENSORS)]
    descriptions, found = Descriptions(), list[DescribedField]()
    for what, content in messages[first:] + messages[:first]:
        topic = f"tasmota/discovery/AABBCC49A3BC/{what}"
        assert is_description(topic)
        found += descriptions.take(topic, json.dumps(content).encode())

    assert {"tele/tasmota_49A3BC/SENSOR"} == {each.topic for each in found}
    assert {
        "ENERGY.Total": ("kWh", "number"),
        "ENERGY.Power.0": ("W", "number"),
        "ENERGY.Power.1": ("W", "number"),
        "DS18B20.Temperature": ("°C", "number"),
        "SDS0X1.PM2.5": ("µg/m³", "number"),
        "Switch1": ("", "state"),
    } == {each.path: (each.unit, each.kind) for each in found}


def test_what_tasmota_devices_describe_takes_little_memory() -> None:
    """Words that make each other longer make no topic; readings without a topic are few."""
    many = {
        **TASMOTA,
        "ft": "%prefix%" * 20_000,
        "tp": ["", "", "%topic%" * 20_000],
        "t": "x" * 900,
    }
    twice = {**TASMOTA, "ft": "%prefix%/", "tp": ["", "", "%topic%" * 30], "t": "x" * 200}
    descriptions = Descriptions()
    tracemalloc.start()
    try:
        for i, content in enumerate((many, twice)):
            assert [] == descriptions.take(f"tasmota/discovery/{i}/sensors", encoded(SENSORS))
            assert [] == descriptions.take(f"tasmota/discovery/{i}/config", encoded(content))
        numbers = {f"{'x' * 100}{i}": i for i in range(500)}
        for i in range(100):
            descriptions.take(f"tasmota/discovery/{i + 2}/sensors", encoded({"sn": numbers}))
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (held < 2e6, peak < 20e6) == (True, True), (held, peak)


def encoded(content: Any) -> bytes:
    return json.dumps(content).encode()


def test_a_description_is_bounded(monkeypatch) -> None:
    """In bytes, in fields and in depth."""
    monkeypatch.setattr(module, "MOST_DESCRIBED", 2)
    deep: dict[str, Any] = {"property": "x", "unit": "C"}
    for _ in range(20):
        deep = {"features": [deep]}

    assert 2 == len(units(BRIDGE, DEVICES))
    assert {} == units(BRIDGE, [{"friendly_name": "a", "definition": {"exposes": [deep]}}])
    with pytest.raises(MalformedMessage, match="expected 1048576 bytes at most"):
        Descriptions().take(BRIDGE, b" " * (1 << 20) + b"1")


def test_all_descriptions_are_subscribed_to() -> None:
    """And nothing else is taken for one."""
    topics = [BRIDGE, "homeassistant/sensor/a/config", "homeassistant/sensor/a/b/config"]
    topics.append("tasmota/discovery/A/config")
    for subscription, topic in zip(SUBSCRIPTIONS, topics, strict=True):
        assert subscription.endswith("#") or subscription.count("/") == topic.count("/")
        assert is_description(topic)
    assert not is_description("zigbee2mqtt/bath")


some = st.text(max_size=3) | st.none() | st.integers()
keys = st.sampled_from(
    ["sn", "friendly_name", "definition", "exposes", "features", "property", "unit"]
)
shorts = st.sampled_from(["~", "stat_t", "val_tpl", "unit_of_meas"])
trees = st.recursive(
    some, lambda x: st.lists(x, max_size=2) | st.dictionaries(keys | shorts, x, max_size=3)
)


@given(
    st.sampled_from([BRIDGE, "homeassistant/a/b/config", "tasmota/discovery/A/sensors"]),
    trees | st.binary(max_size=20),
)
@example(topic="tasmota/discovery/A/sensors", content={"sn": [0]})
def test_any_description_is_read_or_refused(topic, content) -> None:
    """Nothing else is raised."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    descriptions = Descriptions()
    descriptions.take("tasmota/discovery/A/config", json.dumps(TASMOTA).encode())
    try:
        found = descriptions.take(topic, data)
    except MalformedMessage:
        return
    assert all(each.topic for each in found)


def test_bridges_are_those_of_patterns_of_one_level() -> None:
    """`a/#` covers them; other patterns are of other gateways."""
    patterns = ("zigbee2mqtt/+", "home/z2m/{device}", "a/#", "+/{device}", "tele/{device}/x", "#")

    assert ("zigbee2mqtt/bridge/devices", "home/z2m/bridge/devices") == bridges_of(patterns)

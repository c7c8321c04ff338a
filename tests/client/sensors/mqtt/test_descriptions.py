"""Units in what gateways say about their devices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_client.sensors.mqtt import descriptions as module
from submerge_client.sensors.mqtt.decoder import MalformedMessage
from submerge_client.sensors.mqtt.descriptions import SUBSCRIPTIONS, is_description, units_in
from submerge_client.sensors.mqtt.messages import KINDS, MessageDecoder
from submerge_client.sensors.mqtt.topics import TopicPattern
from submerge_client.sensors.tally import ProblemTally, no_log

BRIDGE = "zigbee2mqtt/bridge/devices"
PATTERNS = [TopicPattern("zigbee2mqtt/+"), TopicPattern("tele/{device}/SENSOR")]

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


def units(topic: str, content: Any) -> dict[str, str]:
    assert is_description(topic)
    return dict(units_in(topic, json.dumps(content).encode(), PATTERNS))


def test_a_bridge_gives_the_units_of_its_devices() -> None:
    """Also inside of what has features."""
    assert {
        "bath/temperature": "°C",
        "bath/color.hue": "°",
        "bath/color_temp": "mired",
    } == units(BRIDGE, DEVICES)


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
            {"bath/humidity": "%"},
        ),
        (
            {
                "~": "tele/plug",
                "stat_t": "~/SENSOR",
                "unit_of_meas": "W",
                "val_tpl": "{{ value_json['ENERGY'].Power[0] | float }}",
            },
            {"plug/ENERGY.Power.0": "W"},
        ),
        (
            {"state_topic": "zigbee2mqtt/scale", "unit_of_measurement": "kg"},
            {"scale": "kg"},
        ),
        ({"state_topic": "zigbee2mqtt/bath", "value_template": "{{ value_json.door }}"}, {}),
        ({"state_topic": "other/bath", "unit_of_measurement": "kg"}, {}),
        ({"state_topic": "zigbee2mqtt/bath", "unit_of_meas": "C", "val_tpl": "{{ 1 }}"}, {}),
        (["no object"], {}),
    ],
)
def test_discovery_gives_the_unit_of_a_field(content, expected) -> None:
    """By the topic of its state, and the path in its template."""
    assert expected == units("homeassistant/sensor/bath/config", content)


def test_a_decoder_knows_the_units_of_what_it_hears() -> None:
    """Whichever comes first; a description that cannot be read is counted."""
    tally = ProblemTally(no_log, *KINDS)
    decoder = MessageDecoder((), topics=("zigbee2mqtt/+",), tally=tally, exclude=("*/color*",))
    named = decoder.describe(BRIDGE, json.dumps(DEVICES).encode())
    decoder.readings("zigbee2mqtt/bath", b'{"temperature": 21.5}', retained=False)

    assert ["bath/temperature"] == named
    assert "°C" == decoder.heard.fields["bath/temperature"].unit
    assert ([], 1) == (decoder.describe(BRIDGE, b"{"), tally.counts["malformed"])


def test_a_description_is_bounded(monkeypatch) -> None:
    """In bytes, in fields and in depth."""
    monkeypatch.setattr(module, "MOST_DESCRIBED", 2)
    deep: dict[str, Any] = {"property": "x", "unit": "C"}
    for _ in range(20):
        deep = {"features": [deep]}

    assert 2 == len(units(BRIDGE, DEVICES))
    assert {} == units(BRIDGE, [{"friendly_name": "a", "definition": {"exposes": [deep]}}])
    with pytest.raises(MalformedMessage, match="expected 1048576 bytes at most"):
        units_in(BRIDGE, b" " * (1 << 20) + b"1", PATTERNS)


def test_all_descriptions_are_subscribed_to() -> None:
    """And nothing else is taken for one."""
    topics = [BRIDGE, "homeassistant/sensor/a/config", "homeassistant/sensor/a/b/config"]
    for subscription, topic in zip(SUBSCRIPTIONS, topics, strict=True):
        assert len(subscription.split("/")) == len(topic.split("/"))
        assert is_description(topic)
    assert not is_description("zigbee2mqtt/bath")


some = st.text(max_size=3) | st.none() | st.integers()
keys = st.sampled_from(["friendly_name", "definition", "exposes", "features", "property", "unit"])
shorts = st.sampled_from(["~", "stat_t", "val_tpl", "unit_of_meas"])
trees = st.recursive(
    some, lambda x: st.lists(x, max_size=2) | st.dictionaries(keys | shorts, x, max_size=3)
)


@given(st.sampled_from([BRIDGE, "homeassistant/a/b/config"]), trees | st.binary(max_size=20))
def test_any_description_is_read_or_refused(topic, content) -> None:
    """Nothing else is raised."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    try:
        found = units_in(topic, data, [TopicPattern("#")])
    except MalformedMessage:
        return
    assert all(unit for _, unit in found)

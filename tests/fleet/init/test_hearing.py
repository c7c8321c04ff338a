"""What a broker's messages become, without a broker."""

from __future__ import annotations

import json

import pytest

from submerge_client.config.topic_patterns import wrong_with
from submerge_fleet.init.hearing import Hearing

BRIDGE = json.dumps(
    [
        {
            "friendly_name": "bath",
            "definition": {
                "exposes": [
                    {"type": "numeric", "property": "temperature", "unit": "°C", "access": 1},
                    {"type": "numeric", "property": "humidity", "unit": "%", "access": 1},
                ]
            },
        }
    ]
).encode()


def heard(*asked: str) -> Hearing:
    hearing = Hearing(asked)
    hearing.describe("zigbee2mqtt/bridge/devices", BRIDGE)
    hearing.describe("zigbee2mqtt/bridge/devices", b"no JSON")
    hearing.begin()
    hearing.take("zigbee2mqtt/bath", b'{"temperature": 21, "door": true}', retained=False)
    hearing.take("zigbee2mqtt/bath", b'{"pressure": 1013}', retained=True)
    hearing.take("zigbee2mqtt/bath/set", b'{"temperature": 99}', retained=False)
    hearing.take("home/shed/temperature", b"5.5", retained=False)
    hearing.take("home/shed/temperature", b"{", retained=False)
    return hearing


def test_messages_are_named_by_the_best_pattern() -> None:
    """A retained one is known, but not heard; an order is neither."""
    hearing = heard("#")

    assert {"bath/temperature": 21, "shed/temperature": 5.5} == {
        name: field.last for name, field in hearing.fields.items()
    }
    assert {"bath/door": {"true"}} == hearing.words
    assert ["bath/pressure"] == list(hearing.retained)
    assert ["bath/temperature", "bath/humidity"] == list(hearing.described())


def test_only_patterns_of_use_are_proposed() -> None:
    """Also for what is only described; `#` itself never is."""
    hearing = heard("#")
    described = hearing.described()

    away = "zigbee2mqtt/+/availability"

    assert ["zigbee2mqtt/+", "home/#", away] == hearing.patterns([*hearing.fields, *described])
    assert ["zigbee2mqtt/+", away] == hearing.patterns(["bath/humidity"])


def test_what_was_not_asked_for_is_not_described() -> None:
    """The subscriptions of descriptions hear all devices."""
    hearing = Hearing(["home/#"])
    hearing.describe("zigbee2mqtt/bridge/devices", BRIDGE)
    assert ("home/#",) == hearing.begin()

    assert {} == hearing.described()


def test_a_broker_with_many_topics_takes_bounded_memory(monkeypatch) -> None:
    """Further first levels are passed over."""
    monkeypatch.setattr("submerge_fleet.init.hearing.MOST_PATTERNS", 10)
    hearing = Hearing(["#"])
    hearing.begin()
    for i in range(100):
        hearing.take(f"level{i}/x", b"1", retained=False)

    assert len(hearing.fields) <= 10


def test_a_thousand_bridges_and_strange_ones_are_few_patterns() -> None:
    """Any device of the network can publish a description; each pattern costs at each message."""
    hearing = Hearing(["#"])
    strange = ["{device}/{device}", "{device}{field}", "{", "a/{x}", ""]
    for base in (*strange, *(f"b{i}" for i in range(1000))):
        hearing.describe(f"{base}/bridge/devices", b"[]")
    for i, prefix in enumerate((*strange, *(f"p{i}" for i in range(1000)))):
        config = {"ft": "%prefix%/%topic%/", "tp": ["c", "s", prefix], "t": f"t{i}"}
        hearing.describe(f"tasmota/discovery/{i}/config", json.dumps(config).encode())
        hearing.describe(f"tasmota/discovery/{i}/sensors", b'{"sn": {"Power": 1}}')
    hearing.begin()
    for first in strange:
        hearing.take(f"{first}/x", b"1", retained=False)
    hearing.take("shed/temperature", b"5.5", retained=False)

    assert "temperature" in hearing.fields
    patterns = hearing.patterns([*hearing.described(), *hearing.fields])
    assert {"shed/#"} <= set(patterns)
    assert 32 > len(patterns)
    assert {""} == {wrong_with(pattern) for pattern in patterns}


def described(**more: object) -> Hearing:
    """A device of ESPHome, described for Home Assistant."""
    hearing, content = Hearing(("#",)), {"stat_t": "~/sensor/heat/state", "unit_of_meas": "°C"}
    config = json.dumps({"~": "shed", **content, **more}).encode()
    hearing.describe("homeassistant/sensor/shed/heat/config", config)
    hearing.begin()
    hearing.take("shed/sensor/heat/state", b"5.5", retained=False)
    return hearing


@pytest.mark.parametrize(
    ("more", "away"),
    [
        ({"avty_t": "~/status"}, ["{device}/status"]),
        ({"availability_topic": "tele/shed/LWT"}, ["tele/{device}/LWT"]),
        ({"availability": [{"topic": "x/shed/availability"}]}, ["x/{device}/availability"]),
        ({"avty": [{"t": "~/online", "pl_not_avail": "false"}]}, ["{device}/online"]),
        ({"avty_t": "~/status", "pl_not_avail": "gone"}, []),
        ({"avty_t": "other/status"}, []),
        ({"avty_t": "shed/+/status"}, []),
        ({"avty_t": "shed/\n/status"}, []),
        ({"avty_t": f"shed/{'x' * 999}/status"}, []),
        ({"avty_t": 7, "avty": "no list"}, []),
        ({}, []),
    ],
)
def test_where_a_description_says_that_its_device_is_away_is_heard(more, away) -> None:
    """As far as the sensor understands it."""
    hearing = described(**more)
    assert ["shed/heat"] == list(hearing.described())
    assert ["{device}/sensor/{field}/state", *away] == hearing.patterns(["shed/heat"])

"""The patterns of topics that are proposed."""

from __future__ import annotations

import pytest

from submerge_client.sensors.mqtt.descriptions import DescribedField
from submerge_client.sensors.mqtt.topics import is_reading
from submerge_operate.init.devices import FORMS, patterns_of


def at(topic: str) -> DescribedField:
    return DescribedField(topic, "x", "", "number")


@pytest.mark.parametrize(
    ("asked", "bridges", "described", "expected"),
    [
        ("zigbee2mqtt/#", ["zigbee2mqtt"], [at("zigbee2mqtt/bath")], ["zigbee2mqtt/+", "*"]),
        # Friendly names with a room in front.
        ("zigbee2mqtt/#", ["zigbee2mqtt"], [at("zigbee2mqtt/up/bath")], ["*"]),
        ("zigbee2mqtt/bath", ["zigbee2mqtt"], [], ["*"]),
        ("tele/#", ["zigbee2mqtt"], [], ["tele/{device}/SENSOR", "*"]),
        ("#", ["house/zigbee"], [], ["house/zigbee/+", *FORMS]),
        ("#", [], [at("plugs/a/SENSOR")], ["plugs/{device}/SENSOR", *FORMS]),
        ("#", [], [at("a/tele/SENSOR")], ["{device}/tele/SENSOR", *FORMS]),
        ("plant/{device}/+", ["zigbee2mqtt"], [], ["*"]),
    ],
)
def test_forms_that_are_known_come_first(asked, bridges, described, expected) -> None:
    """As far as they are within what was asked for, which is last."""
    expected = [asked if each == "*" else each for each in expected]

    assert expected == patterns_of([asked], bridges, described)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("zigbee2mqtt/bath", True),
        ("zigbee2mqtt/bridge/state", False),
        ("zigbee2mqtt/bath/set", False),
        ("cmnd/plug/POWER", False),
        ("homeassistant/sensor/a/config", False),
        ("submerge/v1/default/score/desk", False),
    ],
)
def test_orders_and_descriptions_are_no_readings(topic, expected) -> None:
    """Nor are the scores of this program, which would be learnt as readings."""
    assert expected == is_reading(topic)

"""Patterns of topics: which device a topic is of, and which patterns are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_client.sensors.mqtt.topics import TopicPattern, wrong_with

PATTERNS = {
    "zigbee2mqtt/+": (
        "zigbee2mqtt/+",
        {"zigbee2mqtt/lamp": ("lamp", ""), "zigbee2mqtt/a/set": None, "other/lamp": None},
    ),
    "zigbee2mqtt/#": (
        "zigbee2mqtt/#",
        {"zigbee2mqtt/lamp": ("lamp", ""), "zigbee2mqtt/a/b": ("a", "b"), "zigbee2mqtt": None},
    ),
    "tele/{device}/SENSOR": (
        "tele/+/SENSOR",
        {"tele/plug/SENSOR": ("plug", ""), "tele/plug/STATE": None},
    ),
    "shellies/{device}/#": (
        "shellies/+/#",
        {"shellies/em/emeter/0/power": ("em", "emeter.0.power")},
    ),
    "{device}/sensor/{field}/state": (
        "+/sensor/+/state",
        {"room/sensor/temp/state": ("room", "temp"), "room/light/temp/state": None},
    ),
    "homie/+/+/+": ("homie/+/+/+", {"homie/car/engine/speed": ("car", "engine.speed")}),
    "v3/+/devices/{device}/up": (
        "v3/+/devices/+/up",
        {"v3/app/devices/d1/up": ("app.d1", "")},
    ),
    "s-{device}-x": ("+", {"s-1-x": ("1", ""), "s--x": None, "s-1": None}),
    "home/{field}": ("home/+", {"home/temp": ("home", "temp")}),
    "{field}/of/{device}": ("+/of/+", {"temp/of/room": ("room", "temp")}),
    "home/weather": ("home/weather", {"home/weather": ("weather", ""), "home": None}),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_topic_stands_for_a_device_and_the_beginning_of_a_name(pattern) -> None:
    """Wildcards and places, in the topic's order; other topics stand for nothing."""
    subscription, expected = PATTERNS[pattern]
    reader = TopicPattern(pattern)

    assert "" == wrong_with(pattern)
    assert subscription == reader.subscription
    assert expected == {topic: reader.place_of(topic) for topic in expected}


levels = st.text("abc+#", min_size=1, max_size=3)


@given(st.lists(levels, min_size=1, max_size=4), st.data())
def test_two_topics_never_have_the_same_place(topic, data) -> None:
    """Whatever the wildcards are, as long as levels have no dots."""
    kinds = data.draw(st.lists(st.sampled_from(["a", "+"]), max_size=3))
    tail = data.draw(st.sampled_from([[], ["#"]]))
    if not kinds + tail:
        return
    pattern = TopicPattern("/".join(kinds + tail))
    other = data.draw(st.lists(levels, min_size=1, max_size=4))
    place = pattern.place_of("/".join(topic))
    if place is not None and topic != other and ("+" in kinds or tail):
        assert place != pattern.place_of("/".join(other))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", "a topic"),
        ("a/#/b", "# as the last level alone"),
        ("a/b#", "# as the last level alone"),
        ("a/b+", "+ as a whole level"),
        ("{device}/{device}", "{device} and {field} once each"),
        ("{device}-{field}", "{device} and {field} in levels of their own"),
        ("a/{channel}", "no other places than {device} and {field}"),
        ("{field}", "a level beside {field}, which is the device"),
    ],
)
def test_a_pattern_that_is_none_says_what_it_should_be(pattern, expected) -> None:
    """Before anything is connected."""
    assert expected == wrong_with(pattern)

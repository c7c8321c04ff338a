"""Messages of many devices as readings: names, times, patterns, and what is counted."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import UsageError
from submerge_client.sensors.mqtt.decoder import ChannelReading
from submerge_client.sensors.mqtt.messages import ASK_AGAIN_S, KINDS, MessageDecoder
from submerge_client.sensors.tally import ProblemTally
from submerge_proto import sparkplug_pb2 as pb

CHANNELS = ("lamp/temperature", "lamp/humidity")


class Listening:
    """A decoder, with what it logged, and a clock."""

    def __init__(self, *channels: str, **chosen: Any) -> None:
        self.now, self.notes = 0.0, list[tuple[str, dict[str, object]]]()
        tally = ProblemTally(lambda what, /, **facts: self.notes.append((what, facts)), *KINDS)
        self.counts = tally.counts
        self.decoder = MessageDecoder(
            channels,
            tally=tally,
            steady=lambda: self.now,
            wall=lambda: 1_700_000_000.0,
            **{"topics": ("zigbee2mqtt/+",)} | chosen,
        )

    def hears(self, topic: str, payload: bytes | str, *, retained: bool = False) -> list:
        data = payload if isinstance(payload, bytes) else payload.encode()
        return self.decoder.readings(topic, data, retained=retained)


def test_numbers_of_channels_are_readings_and_others_are_unknown() -> None:
    """Counted, remembered, and named once."""
    lamp = Listening(*CHANNELS)
    message = '{"humidity": 40, "temperature": 21.5, "linkquality": 80}'
    found = [lamp.hears("zigbee2mqtt/lamp", message) for _ in range(2)]

    assert [[ChannelReading(1, 40, None), ChannelReading(0, 21.5, None)]] * 2 == found
    assert 2 == lamp.counts["unknown"]
    assert (["lamp/linkquality"], []) == (
        lamp.decoder.take_unlisted(),
        lamp.decoder.take_unlisted(),
    )


def test_what_a_pattern_leaves_out_is_named_once_and_else_forgotten() -> None:
    """A device that is left out is not even read: its messages may be of any form."""
    lamp = Listening(
        *CHANNELS, exclude=("*/linkquality", "bridge/*"), include=("lamp/*", "bridge/*")
    )
    lamp.hears("zigbee2mqtt/lamp", '{"linkquality": 80}')
    lamp.hears("zigbee2mqtt/other", '{"temperature": 80}')
    lamp.hears("zigbee2mqtt/bridge", "{" * 100)

    assert {0} == set(lamp.counts.values())
    assert not lamp.decoder.heard.fields
    names = ["lamp/linkquality", "other/temperature", "bridge/*"]
    assert [names, []] == [lamp.decoder.take_kept_out() for _ in "ab"]


def test_a_channel_that_the_patterns_leave_out_is_refused() -> None:
    """It would be a gap for ever."""
    with pytest.raises(UsageError, match=re.escape("channels must be left by include and exclude")):
        Listening(*CHANNELS, exclude=("*/humidity",))


def test_a_bare_number_of_a_device_has_the_name_of_the_device() -> None:
    """There is no field to name."""
    found = Listening("scale", topics=("weights/{device}",)).hears("weights/scale", "71.5")

    assert [ChannelReading(0, 71.5, None)] == found


def test_a_message_belongs_to_the_first_pattern_that_fits() -> None:
    """One message is never two readings."""
    lamp = Listening("lamp/x", "a/lamp.x", topics=("a/+", "+/#"))

    assert [ChannelReading(0, 1, None)] == lamp.hears("a/lamp", '{"x": 1}')


def test_retained_messages_count_only_with_a_time_of_their_own() -> None:
    """They may be days old."""
    plain, timed = Listening(*CHANNELS), Listening(*CHANNELS, time="seen.at")
    message = '{"temperature": 21.5, "seen": {"at": "2020-02-12T15:15:45Z"}}'
    found = [each.hears("zigbee2mqtt/lamp", message, retained=True) for each in (plain, timed)]
    untimed = timed.hears("zigbee2mqtt/lamp", '{"temperature": 21.5}', retained=True)
    plain.hears("zigbee2mqtt/lamp", "{", retained=True)

    assert [[], [ChannelReading(0, 21.5, 1_581_520_545.0)]] == found
    assert ([], 2, 1) == (untimed, plain.counts["retained"], timed.counts["retained"])
    assert 0 == plain.counts["malformed"]


def test_without_a_time_in_it_a_live_message_has_the_time_of_its_arrival() -> None:
    """Not every message of a device has one."""
    timed = Listening(*CHANNELS, time="at")

    assert [ChannelReading(0, 1, None)] == timed.hears("zigbee2mqtt/lamp", '{"temperature": 1}')


@pytest.mark.parametrize("key", [b"a" * 129, b"\\u001b[2J", b"\\u202e"])
def test_a_hostile_key_hides_no_other_field(key) -> None:
    """It is counted, and named in the log."""
    lamp = Listening(*CHANNELS, topics=("zigbee2mqtt/+",))
    before = b'{"' + key + b'": 5, "temperature": 1}'
    behind = b'{"temperature": 1, "' + key + b'": {"a": 5}}'

    assert [1.0, 1.0] == [
        each.value
        for payload in (before, behind)
        for each in lamp.hears("zigbee2mqtt/lamp", payload)
    ]
    assert 2 == lamp.counts["malformed"]


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        ("zigbee2mqtt/lamp", b"\xff"),
        ("zigbee2mqtt/lamp", b'{"temperature": 1'),
        ("zigbee2mqtt/lamp", b'{"temperature": 1, "x": [' + b"1," * 512 + b"1]}"),
        ("zigbee2mqtt/" + "a" * 200, b'{"temperature": 1}'),
        ("zigbee2mqtt/a\nb", b'{"temperature": 1}'),
        ("spBv1.0/g/NDATA/n", b"\xff"),
    ],
)
def test_a_bad_message_changes_nothing_but_a_counter(topic, payload) -> None:
    """Also if the channel is in it, before what is wrong."""
    lamp = Listening(*CHANNELS, topics=("zigbee2mqtt/+", "spBv1.0/#"))

    assert [] == lamp.hears(topic, payload)
    assert {"malformed": 1} == {kind: n for kind, n in lamp.counts.items() if n}
    assert not lamp.decoder.heard.fields


def test_names_are_remembered_up_to_a_number() -> None:
    """Readings of channels come through all the same."""
    lamp = Listening(*CHANNELS)
    for i in range(5):
        keys = ", ".join(f'"k{n}": 1' for n in range(500 * i, 500 * i + 500))
        lamp.hears("zigbee2mqtt/attacker", f"{{{keys}}}")

    assert (2500, 452) == (lamp.counts["unknown"], lamp.counts["unremembered"])
    assert 2048 == len(lamp.decoder.take_unlisted())
    assert [ChannelReading(0, 1, None)] == lamp.hears("zigbee2mqtt/lamp", '{"temperature": 1}')


def sparkplug(*metrics: pb.Metric, at_ms: int = 0) -> bytes:
    return pb.Payload(timestamp=at_ms, metrics=metrics).SerializeToString()


BORN = pb.Metric(name="p", alias=5, int_value=4)
ALIAS = pb.Metric(alias=5, int_value=6)


def test_sparkplug_is_named_by_its_specification() -> None:
    """Group, node and device, whatever the pattern of the topic is."""
    plant = Listening("g.n.d/p", topics=("spBv1.0/#",))
    found = [
        plant.hears("spBv1.0/g/DBIRTH/n/d", sparkplug(BORN)),
        plant.hears("spBv1.0/g/DDATA/n/d", sparkplug(ALIAS, at_ms=1_700_000_000_000)),
    ]

    assert [[ChannelReading(0, 4, None)], [ChannelReading(0, 6, None)]] == found


def test_times_of_sparkplug_are_taken_if_they_are_asked_for() -> None:
    """As of other messages."""
    plant = Listening("g.n/p", topics=("spBv1.0/#",), time="timestamp")
    plant.hears("spBv1.0/g/NBIRTH/n", sparkplug(BORN))
    found = plant.hears("spBv1.0/g/NDATA/n", sparkplug(ALIAS, at_ms=1_700_000_000_000))

    assert [ChannelReading(0, 6, 1.7e9)] == found


def test_a_sensor_asks_for_no_birth_unless_it_is_told_to() -> None:
    """That would publish a message. The log says how."""
    plant = Listening("g.n/p", topics=("spBv1.0/#",))
    found = plant.hears("spBv1.0/g/NDATA/n", sparkplug(ALIAS))
    ((what, facts),) = plant.notes

    assert ([], [], 1) == (found, plant.decoder.take_requests(), plant.counts["unborn"])
    assert ("data without names", "g/n") == (what, facts["node"])
    assert "rebirth = true" in str(facts["hint"])


def test_a_birth_is_asked_for_once_a_minute() -> None:
    """Each edge node by itself, and not more of them than a number."""
    plant = Listening("g.n/p", topics=("spBv1.0/#",), rebirth=True)
    asked = []
    for now in (0.0, 1.0, ASK_AGAIN_S + 1):
        plant.now = now
        plant.hears("spBv1.0/g/NDATA/n", sparkplug(ALIAS))
        asked.append([request.topic for request in plant.decoder.take_requests()])
    for i in range(100):
        plant.hears(f"spBv1.0/g/NDATA/n{i}", sparkplug(ALIAS))

    assert [["spBv1.0/g/NCMD/n"], [], ["spBv1.0/g/NCMD/n"]] == asked
    assert 63 == len(plant.decoder.take_requests())


topics = st.sampled_from(["zigbee2mqtt/lamp", "spBv1.0/g/NDATA/n", "other", ""]) | st.text(
    max_size=9
)


@given(topics, st.binary(max_size=99) | st.text(max_size=99).map(str.encode), st.booleans())
def test_no_message_raises_anything(topic, payload, retained) -> None:
    """The sensor's thread lives on whatever comes."""
    lamp = Listening(*CHANNELS, topics=("zigbee2mqtt/+", "#"), time="timestamp", rebirth=True)
    lamp.hears(topic, payload, retained=retained)


AWAY = [
    ("zigbee2mqtt/#", "zigbee2mqtt/lamp/availability", '{"state": "offline"}', "lamp/t", "lamp2/t"),
    (
        "zigbee2mqtt/{device}/availability",
        "zigbee2mqtt/lamp/availability",
        "offline",
        "lamp",
        "lam",
    ),
    (
        "zigbee2mqtt/#",
        "zigbee2mqtt/hall/lamp/availability",
        "offline",
        "hall/lamp.t",
        "hall/lamp2.t",
    ),
    ("tele/{device}/#", "tele/plug/LWT", "Offline", "plug/SENSOR.ENERGY.Power", "plug1/SENSOR.x"),
    ("{device}/status", "livingroom/status", "offline", "livingroom/t", "living/t"),
    ("shellies/{device}/#", "shellies/ht-1/online", "false", "ht-1/sensor.t", "ht-10/sensor.t"),
    ("homie/{device}/#", "homie/car/$state", "lost", "car/engine.t", "caravan/engine.t"),
]


@pytest.mark.parametrize(("pattern", "topic", "payload", "channel", "other"), AWAY)
def test_a_device_that_is_away_has_no_values(pattern, topic, payload, channel, other) -> None:
    """As gateways and last wills say it, retained or not; others go on."""
    house = Listening(channel, other, topics=(pattern,))
    found = [house.hears(topic, payload, retained=retained) for retained in (False, True)]

    assert 2 * [[ChannelReading(0, None, None)]] == found
    assert {0} == set(house.counts.values())
    assert not house.decoder.heard.fields


@pytest.mark.parametrize("payload", ["online", '{"state": "online"}', "", "[]", '{"state": 1}'])
def test_a_device_that_is_there_says_nothing_by_that(payload) -> None:
    """Its next reading brings a channel back."""
    house = Listening("lamp/t", topics=("zigbee2mqtt/#",))

    assert [] == house.hears("zigbee2mqtt/lamp/availability", payload)


def test_a_channel_of_the_topic_itself_has_its_number() -> None:
    """Where `false` is a number, `online` may be a channel."""
    house = Listening("ht/online", "ht/t", topics=("{device}/#",), states={"false": 0.0})
    found = house.hears("ht/online", "false")

    assert [ChannelReading(1, None, None), ChannelReading(0, 0.0, None)] == found


def test_the_death_of_an_edge_node_ends_its_channels() -> None:
    """By the specification they are stale."""
    plant = Listening("g.n/x", "g.n.pump/y", "g.m/x", topics=("spBv1.0/g/#",))
    found = plant.hears("spBv1.0/g/NDEATH/n", sparkplug(at_ms=1_700_000_000_000))

    assert [ChannelReading(0, None, None), ChannelReading(1, None, None)] == found


def test_descriptions_give_units_and_nothing_else() -> None:
    """Of fields that the patterns let pass; one that cannot be read is counted."""
    house = Listening("lamp/t", exclude=("*/rssi",))
    exposes = '[{"property": "t", "unit": "°C"}, {"property": "rssi", "unit": "dB"}]'
    house.decoder.describe(
        "zigbee2mqtt/bridge/devices",
        f'[{{"friendly_name": "attic", "definition": {{"exposes": {exposes}}}}}]'.encode(),
    )
    house.decoder.describe("zigbee2mqtt/bridge/devices", b"[")
    house.hears("zigbee2mqtt/attic", '{"t": 20, "rssi": -70, "h": 40}')

    assert {"attic/t": "°C", "attic/h": ""} == {
        name: field.unit for name, field in house.decoder.heard.fields.items()
    }
    assert (1, 2) == (house.counts["malformed"], house.counts["unknown"])


@pytest.mark.parametrize("first", ["kitchen", "cellar"])
def test_two_topics_never_feed_one_channel_without_a_word(first) -> None:
    """A name that users have stays that of the first pattern's topic; the other gets its own."""
    rooms = Listening("state/temp", topics=("kitchen/#", "cellar/#"))
    second = "cellar" if first == "kitchen" else "kitchen"
    for room in (first, second):
        rooms.hears(f"{room}/state", '{"temp": 20}')
    fed = {room: rooms.hears(f"{room}/state", '{"temp": 21}') for room in (first, second)}

    assert {"kitchen": [ChannelReading(0, 21, None)], "cellar": []} == fed
    ((what, facts),) = [each for each in rooms.notes if "alike" in each[1]][:1]
    assert "two topics give one name, the other is not read as it" == what
    assert ("state/temp", "kitchen/state", "cellar/state") == (
        *(facts["name"], facts["topic"], facts["other"]),
    )
    assert ["cellar.state/temp"] == rooms.decoder.take_unlisted()


def test_topics_of_one_pattern_with_one_name_are_not_mixed() -> None:
    """A level with a dot in it: there is no other name, so the second is not read."""
    house = Listening("a/b.c", topics=("{device}/#",))

    assert [1, 0, 1] == [len(house.hears(topic, "5")) for topic in ("a/b.c", "a/b/c", "a/b.c")]
    assert 1 == house.counts["alike"]


def test_a_device_with_a_long_name_is_away_alone() -> None:
    """The other room's channel of the same short name goes on."""
    channels = ("kitchen.plug/power", "cellar.plug/power")
    rooms = Listening(*channels, topics=("kitchen/#", "cellar/#"))

    assert [ChannelReading(1, None, None)] == rooms.hears("cellar/plug/availability", "offline")
    assert [ChannelReading(0, 5, None)] == rooms.hears("kitchen/plug/power", "5")

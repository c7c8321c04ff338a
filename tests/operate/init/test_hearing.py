"""What a broker's messages become, without a broker."""

from __future__ import annotations

import itertools
import json

import pytest

from submerge_client.sensors.mqtt.messages import KINDS, MessageDecoder
from submerge_client.sensors.mqtt.topics import wrong_with
from submerge_client.sensors.tally import ProblemTally, no_log
from submerge_operate.init.devices import Hearing
from submerge_operate.init.proposal import choose, exclusions

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
    """First levels without end are one pattern; further bare topics are passed over."""
    monkeypatch.setattr("submerge_operate.init.devices.MOST_PATTERNS", 10)
    hearing = Hearing(["#"])
    hearing.begin()
    for i in range(100):
        hearing.take(f"level{i}/x", b"1", retained=False)
        hearing.take(f"bare{i}", b"1", retained=False)

    assert {f"level{i}/x" for i in range(100)} <= set(hearing.fields)
    assert len(hearing.patterns(hearing.fields)) <= 10


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

    assert "shed/temperature" in hearing.fields
    patterns = hearing.patterns([*hearing.described(), *hearing.fields])
    assert {"{device}/#"} <= set(patterns)
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


def shelly(name: str) -> dict[str, str]:
    """What a Shelly of the second generation publishes."""
    switch = '{"id": 0, "apower": %s, "voltage": %s, "aenergy": {"minute_ts": 1764329820}}'
    return {f"{name}/status/switch:0": switch, f"{name}/online": "true"}


SYSTEMS = {
    "rooms of JSON": {"kitchen/state": '{"temp": %s, "ts": 9}', "cellar/state": '{"temp": %s}'},
    "rooms of numbers": {f"{room}/{what}": "%s" for room in "ab" for what in ("temp", "co2")},
    "one room": {"kitchen/temp": "%s", "kitchen/co2": "%s"},
    "two houses": {f"{house}/kitchen/temp": "%s" for house in ("home", "cabin")},
    "rooms that differ": {"kitchen/state": '{"temp": %s}', "cellar/state": '{"co2": %s}'},
    "a house and rooms": {f"home/{n}/temp": "%s" for n in "ab"}
    | {f"{room}/state": '{"temp": %s}' for room in ("kitchen", "cellar")},
    "a house and old Shellies": {"home/a/temp": "%s", "shellies/plug/relay/0/power": "%s"},
    "two sites": {"home/a/temp": "%s", "office/b/temp": "%s", "home/b/temp": "%s"},
    "three levels and four": {"home/a/temp": "%s", "home/a/b/temp": "%s", "cabin/a/temp": "%s"},
    "two Shellies": shelly("shellyplus1pm-a8032ab1") | shelly("shellyplus1pm-bbbb"),
    "old Shellies": {f"shellies/plug-{n}/relay/0/power": "%s" for n in "12"},
    "Zigbee2MQTT": {
        f"zigbee2mqtt/{n}": '{"temp": %s, "linkquality": 70}' for n in ("bath", "hall")
    },
    "a bath twice": {"zigbee2mqtt/bath": '{"temp": %s}', "home/bath/temp": "%s"},
    "Tasmota": {f"tele/{n}/SENSOR": '{"Time": "x", "ENERGY": {"Power": %s}}' for n in "ab"},
    "two prefixes": {f"{p}/plug/SENSOR": '{"ENERGY": {"Power": %s}}' for p in ("tele", "attic")},
    "ESPHome": {f"{n}/sensor/temp/state": "%s" for n in ("stove", "desk")},
    "Homie": {f"homie/{n}/sensor/temp": "%s" for n in ("stove", "desk")},
    "statestream": {f"stream/sensor/{n}/state": "%s" for n in ("stove", "desk")},
    "all at once": {},
}
for each in list(SYSTEMS.values())[:-1]:
    SYSTEMS["all at once"] |= each


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("backwards", [False, True])
def test_each_number_of_each_topic_is_a_channel_of_its_own(system, backwards) -> None:
    """By the patterns and names that are proposed, in whatever order devices speak later."""
    sent, numbers = SYSTEMS[system], itertools.count(20)
    hearing = Hearing(["#"])
    hearing.begin()
    for topic in list(sent) * 3:
        payload = sent[topic] % tuple(itertools.islice(numbers, sent[topic].count("%s")))
        hearing.take(topic, payload.encode(), retained=False)
    choice = choose(hearing.fields, hearing.described(), {}, hearing.words, with_states=False)
    names = [each.name for each in choice.found]
    tally = ProblemTally(no_log, *KINDS)
    topics, excluded = hearing.patterns(names), exclusions(choice)
    decoder = MessageDecoder(names, topics=topics, tally=tally, exclude=excluded)
    fed = [
        reading.channel
        for topic in (reversed(sent) if backwards else sent)
        for reading in decoder.readings(
            topic, (sent[topic] % ((1.5,) * sent[topic].count("%s"))).encode(), retained=False
        )
    ]

    assert sum(payload.count("%s") for payload in sent.values()) == len(names)
    assert sorted(fed) == list(range(len(names)))
    assert 0 == tally.counts["alike"]
    assert not any("ts" in name.split(".") for name in names)


def test_shellies_keep_their_names() -> None:
    """One that is silent while `init` listens can join later by the same pattern."""
    hearing = Hearing(["#"])
    hearing.begin()
    hearing.take("shellyplus1pm-a8/status/switch:0", b'{"apower": 560.1}', retained=False)

    assert ["shellyplus1pm-a8/switch:0.apower"] == list(hearing.fields)
    assert ["{device}/status/#"] == hearing.patterns(hearing.fields)


@pytest.mark.parametrize(
    ("topics", "patterns"),
    [
        ({"kitchen/state": {"temp": 20}, "cellar/state": {"temp": 18}}, ["{device}/#"]),
        # Rooms whose quantities differ, and one that is heard alone.
        ({"kitchen/state": {"temp": 20}, "cellar/state": {"co2": 500}}, ["{device}/#"]),
        ({"kitchen/state": {"temp": 20}}, ["{device}/#"]),
        ({"kitchen/temp": 20}, ["{device}/#"]),
        ({"kitchen/SENSOR": {"temp": 20}, "hall/co2": 500}, ["{device}/#"]),
        ({"home/kitchen/temp": 20, "cabin/kitchen/temp": 18}, ["{device}/#"]),
        ({"home/kitchen/temp": 20, "cabin/attic/temp": 18}, ["{device}/#"]),
        # One house: its rooms are devices.
        ({"home/kitchen/temp": 20, "home/cellar/temp": 18}, ["home/#"]),
        ({"home/kitchen/temp": 20, "attic/temp": 18}, ["{device}/#"]),
        # Its room is called like a device of a known form.
        ({"home/plug/power": 20, "plug/status/power": 18}, ["{device}/status/#", "{device}/#"]),
    ],
)
def test_a_channel_is_one_device_s_one_quantity(topics, patterns) -> None:
    """No topic that is heard later, in the same place, can have the name of another."""
    hearing, rooms = Hearing(["#"]), {"kitchen", "cellar", "attic", "hall", "home"}
    hearing.begin()
    for topic, content in topics.items():
        hearing.take(topic, json.dumps(content).encode(), retained=False)
    names = list(hearing.fields)
    assert patterns == hearing.patterns(names)

    later = [
        "/".join(other if level == one else level for level in topic.split("/"))
        for topic in topics
        for one in rooms
        for other in rooms
    ]
    tally = ProblemTally(no_log, *KINDS)
    decoder = MessageDecoder(names, topics=patterns, tally=tally)
    for topic in dict.fromkeys([*later, *topics]):
        fed = decoder.readings(topic, b'{"temp": 1, "co2": 2}', retained=False)
        assert topic in topics or not fed
    assert 0 == tally.counts["alike"]
    assert decoder.take_unlisted()


def test_of_two_patterns_that_were_asked_for_names_are_whole() -> None:
    """They are heard where they were asked for, and nowhere else."""
    hearing = Hearing(["kitchen/#", "cellar/#"])
    hearing.begin()
    hearing.take("kitchen/state", b'{"temp": 20}', retained=False)
    hearing.take("cellar/state", b'{"co2": 500}', retained=False)

    assert {"kitchen.state/temp", "cellar.state/co2"} == set(hearing.fields)
    assert ["kitchen/#", "cellar/#"] == hearing.patterns(hearing.fields)


def test_orders_and_descriptions_are_no_fields_that_join() -> None:
    """Where all topics are heard; a channel that a person has listed stays one."""
    decoder = MessageDecoder(
        ["pump/set"], topics=["{device}/#"], tally=ProblemTally(no_log, *KINDS)
    )
    for topic in ("fan/set", "cmnd/fan/power", "submerge/v1/box/score/desk", "pump/set"):
        decoder.readings(topic, b"5", retained=False)

    assert [] == decoder.take_unlisted()
    assert ["pump/set"] == list(decoder.heard.fields)

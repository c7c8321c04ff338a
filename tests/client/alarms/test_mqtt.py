"""The retained message: always how it is now, said again to each broker, and not too often."""

from __future__ import annotations

import json

import pytest

from submerge_client.alarms import over_mqtt
from submerge_client.alarms.over_mqtt import AGAIN_S, MqttAlarms
from submerge_client.config.links import UplinkConfig
from support.alarms import HISTORY, Log, alarm

STATE = "submerge/v1/f/alarm/pump-1"
CONFIGS = {
    "homeassistant/binary_sensor/pump-1/alarm/config",
    "homeassistant/sensor/pump-1/score/config",
    "homeassistant/sensor/pump-1/channel/config",
}


class Line:
    """A line that writes down what is put."""

    def __init__(self, broker, *, name, will, opened, parted):
        self.name, self.will, self.opened, self.parted = name, will, opened, parted
        self.put_down = []

    def open(self):
        pass

    def put(self, key, publication):
        assert publication.retain
        self.put_down.append((publication.topic, publication.data))

    def close(self, last):
        self.put(last.topic, last)

    def taken(self):
        """What was put since it was asked last."""
        taken, self.put_down = self.put_down, []
        return taken


class Told:
    """A sink with such a line, and a clock."""

    def __init__(self, monkeypatch, **settings):
        self.now = 0.0
        made = []

        def line(*args, **more):
            made.append(Line(*args, **more))
            return made[0]

        monkeypatch.setattr(over_mqtt, "BrokerConnection", line)
        self.sink = MqttAlarms(
            UplinkConfig(url="mqtt://broker", insecure=True, fleet="f"),
            **{"node": "pump-1", "group": "g", "discovery": "homeassistant", **settings},
            clock=lambda: self.now,
        )
        self.line = made[0]

    def update(self, alarms):
        """What is published for it."""
        self.sink.update(alarms)
        return [json.loads(data) for _, data in self.line.taken()]


@pytest.fixture
def delivered(monkeypatch):
    return Told(monkeypatch)


def test_each_connection_hears_all_and_last_that_somebody_watches(delivered):
    """A broker may have lost what it had."""
    delivered.update(HISTORY[1])
    for _ in range(2):
        delivered.line.opened()
        topics = [topic for topic, _ in delivered.line.put_down]
        assert topics == [*dict.fromkeys(topics)]
        assert CONFIGS | {STATE, f"{STATE}/state"} == set(topics)
        assert (f"{STATE}/state", b"online") == delivered.line.taken()[-1]


def test_a_connection_before_anything_is_known_says_nothing_of_it(delivered):
    """What was retained before stays until then."""
    delivered.line.opened()

    assert STATE not in {topic for topic, _ in delivered.line.taken()}


def test_the_broker_says_it_when_nobody_watches_any_more(delivered):
    """As last will, or as a farewell; to each node its own connection."""
    delivered.sink.close(0.0)

    assert (f"{STATE}/state", b"offline") == delivered.line.will[:2] == delivered.line.taken()[-1]
    assert delivered.line.will.retain
    assert "submerge:f:alarm:pump-1" == delivered.line.name


def test_without_discovery_home_assistant_hears_nothing(monkeypatch):
    """The state is for others as well."""
    delivered = Told(monkeypatch, discovery="")
    delivered.line.opened()

    assert [f"{STATE}/state"] == [topic for topic, _ in delivered.line.taken()]


def test_a_change_is_said_at_once_and_nothing_twice(delivered):
    """A start, an end, a verdict."""
    judged = (alarm(0, over=True, verdict="rejected"),)
    said = [delivered.update(state) for state in (*HISTORY[:3], HISTORY[2], judged)]

    assert ["OFF", "ON", "OFF", None, "OFF"] == [
        each[0]["alarm"] if each else None for each in said
    ]
    assert "rejected" == said[-1][0]["verdict"]


def test_figures_of_an_open_alarm_are_said_once_a_minute(delivered):
    """However often they change."""
    scores = []
    for second in range(int(3 * AGAIN_S)):
        delivered.now = float(second)
        scores += [each["score"] for each in delivered.update((alarm(0, worst=float(second + 1)),))]

    assert [1.0, 1.0 + AGAIN_S, 1.0 + 2 * AGAIN_S] == scores


def test_a_broker_that_is_away_is_said_once(delivered):
    """And when it is back."""
    log = Log()
    for why in ("nothing listens", "nothing listens"):
        delivered.line.parted(why)
    delivered.line.opened()
    delivered.line.opened()

    assert [
        "alarms do not reach the broker, trying on",
        "alarms reach the broker again",
    ] == log.said()

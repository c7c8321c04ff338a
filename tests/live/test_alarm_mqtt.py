"""Alarms over a real broker: what Home Assistant finds there, also after the worst."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys

import paho.mqtt.client as paho
import pytest

from submerge_client.alarms.over_mqtt import MqttAlarms
from submerge_client.config.links import UplinkConfig
from support.alarms import HISTORY
from support.patience import PATIENCE_S
from support.programs import PATH

pytestmark = pytest.mark.slow

STATE = "submerge/v1/f/alarm/pump-1"
THERE = f"{STATE}/state"
CONFIGS = [
    "homeassistant/binary_sensor/pump-1/alarm/config",
    "homeassistant/sensor/pump-1/score/config",
    "homeassistant/sensor/pump-1/channel/config",
]
ALL = {STATE, THERE, *CONFIGS}


class HomeAssistant:
    """Whoever subscribes to all, late or early."""

    def __init__(self, broker):
        self.heard = heard = queue.SimpleQueue()
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        # Not by way of self: paho closes its sockets when it is let go, and not in a ring.
        self._client.on_message = lambda _, __, m: heard.put((m.topic, m.payload, m.retain))
        self._client.connect("127.0.0.1", broker.port)
        self._client.subscribe([("homeassistant/#", 1), ("submerge/#", 1)])
        self._client.loop_start()

    def next(self):
        """What is heard next."""
        return self.heard.get(timeout=PATIENCE_S)

    def until(self, topic, data, also=()):
        """What is heard until a topic says so, and others have said something."""
        heard = {}
        while heard.get(topic, (b"",))[0] != data or not set(also) <= set(heard):
            came, *heard[came] = self.next()
        return heard

    def close(self):
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def home(mosquitto):
    """A way to come as Home Assistant, as often as one likes."""
    came = []

    def come():
        came.append(HomeAssistant(mosquitto))
        return came[-1]

    yield come
    for each in came:
        each.close()


def sink(mosquitto):
    link = UplinkConfig(url=f"mqtt://127.0.0.1:{mosquitto.port}", insecure=True, fleet="f")
    return MqttAlarms(link, node="pump-1", group="pumps", discovery="homeassistant")


def test_home_assistant_finds_all_there_is_whenever_it_comes(mosquitto, home):
    """Things, state and that somebody watches, all retained; each template finds its field."""
    reported = sink(mosquitto)
    early = home()
    reported.update(HISTORY[1])
    early.until(THERE, b"online", also=ALL)
    heard = home().until(THERE, b"online", also=ALL)
    reported.close(1.0)

    state = json.loads(heard[STATE][0])
    configs = [json.loads(heard[topic][0]) for topic in CONFIGS]
    assert set(heard) == ALL
    assert all(retained for _, retained in heard.values())
    assert ("ON", 3.21, "flow") == (state["alarm"], state["score"], state["channel"])
    assert {STATE} == {config["state_topic"] for config in configs}
    assert {THERE} == {config["availability_topic"] for config in configs}


def test_an_alarm_goes_on_and_off_once(mosquitto, home):
    """However often it is heard: a state said again is no news."""
    reported, watching = sink(mosquitto), home()
    watching.until(THERE, b"online")
    states = []
    for state in HISTORY:
        reported.update(state)
        reported.update(state)
        states.append(watching.next())
    reported.close(1.0)
    last = watching.next()

    assert [STATE] * 5 == [topic for topic, _, _ in states]
    assert ["OFF", "ON", "OFF", "ON", "OFF"] == [json.loads(data)["alarm"] for _, data, _ in states]
    assert (THERE, b"offline") == last[:2]


def test_a_broker_that_lost_all_hears_all_again(mosquitto, home):
    """It keeps nothing over a restart here; nobody has to do anything."""
    reported = sink(mosquitto)
    reported.update(HISTORY[1])
    early = home()
    early.until(THERE, b"online", also=ALL)
    early.close()
    mosquitto.stop()
    mosquitto.start()
    heard = home().until(THERE, b"online", also=ALL)
    reported.close(1.0)

    assert "ON" == json.loads(heard[STATE][0])["alarm"]


PROGRAM = """
import sys, time
from submerge_client.alarms.over_mqtt import MqttAlarms
from submerge_client.config.links import UplinkConfig
from support.alarms import HISTORY
link = UplinkConfig(url=f"mqtt://127.0.0.1:{sys.argv[1]}", insecure=True, fleet="f")
sink = MqttAlarms(link, node="pump-1", group="pumps", discovery="homeassistant")
sink.update(HISTORY[int(sys.argv[2])])
sys.stdin.read()
"""


def test_whoever_is_killed_is_offline_and_its_alarm_stays(mosquitto, home):
    """The broker says the first; the next process says how it is then."""

    def process(n):
        command = [sys.executable, "-c", PROGRAM, str(mosquitto.port), str(n)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, env={"PYTHONPATH": PATH})

    watching = home()
    with process(1) as first:
        watching.until(THERE, b"online", also=ALL)
        first.send_signal(signal.SIGKILL)
        watching.until(THERE, b"offline")
    late = home().until(THERE, b"offline", also=ALL)
    with process(2) as second:
        heard = watching.until(THERE, b"online", also=ALL)
        second.send_signal(signal.SIGKILL)

    assert "ON" == json.loads(late[STATE][0])["alarm"]
    assert "OFF" == json.loads(heard[STATE][0])["alarm"]

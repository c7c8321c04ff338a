"""Readings from a real broker: rows, loss, and a connection that comes back."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

paho = pytest.importorskip("paho.mqtt.client")

from submerge_client.assembly import build_agent  # noqa: E402
from submerge_client.config import client_config  # noqa: E402
from submerge_client.config.sensors import MqttSensor  # noqa: E402
from submerge_client.sensors import tally  # noqa: E402
from submerge_client.sensors.mqtt import readings  # noqa: E402
from submerge_client.sensors.mqtt.readings import MqttReadings  # noqa: E402
from support.broker import PROGRAM, REQUIRED, Mosquitto  # noqa: E402
from support.patience import PATIENCE_S, until  # noqa: E402

pytestmark = pytest.mark.slow


class Broker(Mosquitto):
    """A Mosquitto that publishes what it is told."""

    @property
    def url(self) -> str:
        return f"mqtt://{self.host}:{self.port}"

    def publish(self, topic: str, payload: Any, *, retain: bool = False) -> None:
        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        content = payload if isinstance(payload, str | bytes) else json.dumps(payload)
        client.publish(topic, content, qos=1, retain=retain).wait_for_publish(PATIENCE_S)
        client.disconnect()
        client.loop_stop()


class Reading:
    """A sensor that reads in a thread, and what came of it."""

    def __init__(self, sensor: MqttReadings, notes: list[tuple[str, dict[str, object]]]) -> None:
        self.sensor, self.notes = sensor, notes
        self.rows: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
        self.put = self.rows.put
        self.stop = threading.Event()
        self.thread = threading.Thread(
            target=sensor.read, args=(lambda rows, **_: self.put(rows), self.stop)
        )
        self.thread.start()

    def ended(self) -> float:
        """Stop it, and return how long that took."""
        begun = time.monotonic()
        self.stop.set()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()
        return time.monotonic() - begun

    def noted(self, what: str) -> int:
        return sum(1 for said, _ in self.notes if said == what)

    def row_with(self, *expected: float) -> None:
        """Wait for a row that is this one, among others."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for row in self.rows.get(timeout=PATIENCE_S):
                if np.array_equal(row, expected, equal_nan=True):
                    return
        pytest.fail(f"no row {expected} within {PATIENCE_S} s")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    if PROGRAM is None and not REQUIRED:
        pytest.skip("mosquitto is not installed")
    broker = Broker(tmp_path)
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def listening(broker: Broker) -> Iterator[Callable[..., Reading]]:
    """Sensors of this broker, connected, unless told not to wait for that."""
    begun: list[Reading] = []

    def begin(
        *, connected: bool = True, channels: tuple[str, ...] = ("temp", "hum"), **chosen: Any
    ) -> Reading:
        notes: list[tuple[str, dict[str, object]]] = []
        chosen = {
            "url": broker.url,
            "insecure": True,
            "topic": "plant/{channel}/value",
            "value": "",
            "period_s": 0.05,
            "lateness_s": 0.05,
            "max_age_s": 60.0,
        } | chosen
        sensor = MqttReadings(
            channels,
            MqttSensor(**chosen),
            note=lambda what, /, **facts: notes.append((what, facts)),
        )
        begun.append(Reading(sensor, notes))
        if connected:
            until(lambda: begun[-1].noted("subscribed") > 0)
        return begun[-1]

    yield begin
    for reading in begun:
        reading.ended()


def test_what_is_published_becomes_rows(broker, listening) -> None:
    """A channel after the other, in the schema's order, a gap until one has spoken."""
    reading = listening()
    broker.publish("plant/hum/value", "40")
    reading.row_with(np.nan, 40)
    broker.publish("plant/temp/value", "21.5")

    reading.row_with(21.5, 40)


def test_a_stated_time_counts(broker, listening) -> None:
    """Of two values, the one whose time is later, though it came first."""
    reading = listening(value="v", time="at", period_s=1.0, lateness_s=2.0)
    now = time.time()
    broker.publish("plant/temp/value", {"v": 2, "at": now})
    broker.publish("plant/temp/value", {"v": 1, "at": now - 0.001})
    broker.publish("plant/hum/value", {"v": 3, "at": now})

    reading.row_with(2, 3)


def test_what_means_nothing_is_counted_and_costs_nothing_else(broker, listening) -> None:
    """Malformed, null, retained and unknown messages; the next good one is read."""
    broker.publish("plant/temp/value", "99", retain=True)
    reading = listening()
    for topic, payload in [("temp", "on"), ("temp", "null"), ("dew", "1"), ("hum", b"\xff")]:
        broker.publish(f"plant/{topic}/value", payload)
    broker.publish("plant/temp/value", "5")

    reading.row_with(5, np.nan)
    counts = reading.sensor.counts
    assert {"malformed": 2, "null": 1, "unknown": 1, "retained": 1} == {
        name: counts[name] for name in ("malformed", "null", "unknown", "retained")
    }
    assert reading.noted("malformed message") == 2


def test_the_connection_comes_back(broker, listening) -> None:
    """After the broker has died: said once, not every second, and rows go on."""
    reading = listening()
    broker.stop()
    until(lambda: reading.sensor.counts["unreachable"] >= 2)
    broker.start()
    until(lambda: reading.noted("subscribed") == 2)
    broker.publish("plant/temp/value", "7")

    reading.row_with(7, np.nan)
    assert reading.noted("broker unreachable, trying on") == 1


def test_a_broker_may_come_later(broker, listening) -> None:
    """Nobody has to start them in order."""
    broker.stop()
    reading = listening(connected=False)
    until(lambda: reading.noted("broker unreachable, trying on") == 1)
    ((_, facts),) = reading.notes
    broker.start()
    until(lambda: reading.noted("subscribed") == 1)

    assert "refused" in str(facts["why"])


def test_a_callback_that_fails_does_not_end_the_thread(broker, listening, monkeypatch) -> None:
    """paho's thread would die of it, and say that it is connected ever after."""
    reading = listening()
    read = reading.sensor._decoder.read

    def failing(payload: bytes) -> Any:
        if payload == b"13":
            raise RuntimeError("a bug of ours")
        return read(payload)

    monkeypatch.setattr(reading.sensor._decoder, "read", failing)
    broker.publish("plant/temp/value", "13")
    broker.publish("plant/temp/value", "14")

    reading.row_with(14, np.nan)
    assert reading.sensor.counts["failed"] == 1
    assert reading.noted("MQTT callback failed") == 1


def test_a_loop_that_fails_is_started_anew(broker, listening, monkeypatch) -> None:
    """Bytes that paho does not expect cost the connection, not the sensor."""
    reading = listening()

    def failing() -> Any:
        raise IndexError("bytearray index out of range")

    monkeypatch.setattr(reading.sensor._listener._client, "_packet_handle", failing)
    broker.publish("plant/temp/value", "1")
    until(lambda: reading.noted("subscribed") == 2)
    broker.publish("plant/temp/value", "8")

    reading.row_with(8, np.nan)
    assert reading.noted("MQTT client failed, restarting it") == 1


def test_a_node_that_is_behind_loses_readings_by_number(broker, listening, monkeypatch) -> None:
    """What does not fit into the queue is counted; nothing grows."""
    monkeypatch.setattr(readings, "WAITING", 4)
    reading = listening()
    behind, gate = threading.Event(), threading.Event()

    def put(_rows: np.ndarray) -> None:
        behind.set()
        gate.wait(6 * PATIENCE_S)

    reading.put = put
    try:
        broker.publish("plant/temp/value", "0")
        assert behind.wait(PATIENCE_S)
        for i in range(12):
            broker.publish("plant/temp/value", str(i))
        until(lambda: reading.sensor.counts["dropped"] == 8)
    finally:
        gate.set()

    assert reading.noted("the node is behind, readings dropped") == 3


def test_it_stops_at_once_connected_or_not(broker, listening) -> None:
    """A broker that is away holds up no end."""
    connected = listening()
    broker.publish("plant/temp/value", "1")
    connected.row_with(1, np.nan)
    took = [connected.ended()]
    broker.stop()
    took.append(listening(connected=False).ended())

    assert max(took) < 5.0


def test_messages_of_two_devices_become_rows(broker, listening) -> None:
    """As behind Zigbee2MQTT: fields of both, in the schema's order; others are named in the log."""
    reading = listening(
        topic="",
        value="value",
        topics=("zigbee2mqtt/+",),
        states={"ON": 1.0, "OFF": 0.0},
        channels=("bath/temperature", "lamp/state"),
        max_age_s=None,
    )
    broker.publish("zigbee2mqtt/bath", {"temperature": 27.34, "humidity": 44.72, "battery": None})
    reading.row_with(27.34, np.nan)
    broker.publish("zigbee2mqtt/lamp", {"state": "ON", "brightness": 215})
    broker.publish("zigbee2mqtt/lamp/availability", {"state": "online"})
    reading.row_with(27.34, 1)
    broker.publish("zigbee2mqtt/lamp", {"state": "OFF"})
    reading.row_with(27.34, 0)

    assert 2 == reading.sensor.counts["unknown"]
    assert (0, 0) == tuple(reading.sensor.counts[kind] for kind in ("malformed", "failed"))


def test_unknown_names_are_logged_in_one_line(broker, listening, monkeypatch) -> None:
    """Those of a minute together, and not more of them than a number."""
    monkeypatch.setattr(tally, "FIRST_NAMES_S", 0.2)
    monkeypatch.setattr(tally, "MOST_NAMED", 2)
    reading = listening(
        topic="", value="value", topics=("zigbee2mqtt/+",), channels=("bath/temperature",)
    )
    broker.publish("zigbee2mqtt/lamp", {"a": 1, "b": 2, "c": 3})
    until(lambda: reading.noted("no channels of the schema, ignored") > 0)
    _, facts = reading.notes[-1]

    assert "lamp/a, lamp/b, …" == facts["names"]


def test_what_the_schema_lacks_is_known_to_others(broker, listening) -> None:
    """With its unit, which the gateway has described before; and the device is a gap once away."""
    exposes = [{"property": "t", "unit": "°C"}]
    description = [{"friendly_name": "attic", "definition": {"exposes": exposes}}]
    broker.publish("zigbee2mqtt/bridge/devices", description, retain=True)
    reading = listening(
        topic="",
        value="value",
        topics=("zigbee2mqtt/+", "zigbee2mqtt/{device}/availability"),
        channels=("bath/t", "hall/t"),
    )
    for value in (1.0, 3.0):
        broker.publish("zigbee2mqtt/attic", {"t": value})
    for device in ("bath", "hall"):
        broker.publish(f"zigbee2mqtt/{device}", {"t": 5.0})
    reading.row_with(5, 5)
    broker.publish("zigbee2mqtt/bath/availability", {"state": "offline"}, retain=True)
    reading.row_with(np.nan, 5)
    (field,) = reading.sensor.newcomers

    assert ("attic/t", "°C", 2, 2.0, 1.0) == (
        *(field.name, field.unit, field.count, field.mean, field.deviation),
    )


def test_the_habits_of_devices_are_kept_beside_the_checkpoint(broker, tmp_path) -> None:
    """For the next start, by the name of the channel."""
    path = tmp_path / "bath.toml"
    path.write_text(f"""
node = "bath"
group = "rooms"
parent = "root"
state = "{tmp_path}/bath.state"
uplink.url = "memory://root"
schema.channels = ["bath/t"]
[sensor]
kind = "mqtt"
url = "{broker.url}"
insecure = true
topics = ["zigbee2mqtt/+"]
period_s = 0.05
""")
    reading = Reading(build_agent(client_config.load(path, {})).sensor, [])
    habits = tmp_path / "bath.state.habits"

    def has_spoken_twice() -> bool:
        broker.publish("zigbee2mqtt/bath", {"t": 5.0})
        return reading.sensor.counts["taken"] > 1

    until(has_spoken_twice)
    reading.ended()

    assert {"bath/t"} == set(json.loads(habits.read_text())["longest_s"])


def test_a_birth_is_asked_for_over_the_broker(broker, listening) -> None:
    """Data with an alias alone, and rebirth = true: the edge node gets its command."""
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    node = paho.Client(paho.CallbackAPIVersion.VERSION2)
    node.on_message = lambda _client, _data, message: asked.put(message.topic)
    node.on_subscribe = lambda *_: asked.put("subscribed")
    node.connect("127.0.0.1", broker.port)
    node.subscribe("spBv1.0/g/NCMD/n")
    node.loop_start()
    assert "subscribed" == asked.get(timeout=PATIENCE_S)
    listening(
        topic="", value="value", topics=("spBv1.0/#",), rebirth=True, channels=("g.n/p", "g.n/q")
    )
    broker.publish("spBv1.0/g/NDATA/n", b"\x12\x04\x10\x05\x50\x06")

    assert "spBv1.0/g/NCMD/n" == asked.get(timeout=PATIENCE_S)
    node.disconnect()
    node.loop_stop()

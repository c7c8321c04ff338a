"""MQTT 5: what brokers say of themselves and of messages, and the limits that clouds document."""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import sys
import threading
from contextlib import closing, suppress
from typing import Any, NamedTuple

import pytest

from submerge_aggregator.downlink.over_mqtt import MqttDownlink
from submerge_client.uplink import Parted
from submerge_client.uplink.broker import Broker
from submerge_client.uplink.line import WINDOW
from submerge_client.uplink.over_mqtt import MqttUplink
from support.patience import until
from support.programs import free_port
from support.token_gate import TokenGate, packet
from support.ways import Ear, Host

pytestmark = pytest.mark.slow

NAMES: dict[str, Any] = {"fleet": "f", "parent": "a", "limit": 300_000, "first_wait_s": 0.02}
CONNACK, PUBLISH, PUBACK, SUBSCRIBE = 2, 3, 4, 8
QUIET_S = 0.1  # of a client that sends no more


class Limits(NamedTuple):
    """window : unacknowledged messages; message : bytes of a packet; level, topic : of a topic."""

    window: int
    message: int
    levels: int = 100
    topic: int = 65_535
    client_id: int = 65_535
    subscriptions: int = 1_000


CLOUDS = {
    "AWS IoT Core": Limits(100, 131_072, levels=8, topic=256, client_id=128, subscriptions=8),
    "Azure Event Grid": Limits(100, 524_288, levels=8, topic=256),
    # paho takes no such packet size: it is not in its range. The way is 3.1.1.
    "HiveMQ": Limits(10, 268_435_460),
    "HiveMQ, 5 MB": Limits(10, 5_242_880),
}


class CloudGate(TokenGate):
    """The limits that clouds document, before a broker that has none of them.

    It says its limits as it lets a client of MQTT 5 in, and cuts a connection that breaks one. It
    holds acknowledgements back for as long as a client sends: so a client fills its whole window.

    Attributes
    ----------
    broken : list of str
        Limits that clients broke.
    versions : set of int
        Of MQTT, that clients spoke until the end; 4 is 3.1.1.
    most : int
        Messages that were unacknowledged at once.
    """

    def __init__(self, port: int, limits: Limits) -> None:
        self._limits = limits
        self.broken: list[str] = []
        self.versions = set[int]()
        self.most = 0
        super().__init__(port)

    def _serve(self, client: socket.socket) -> None:
        with (
            client,
            suppress(OSError, IndexError),  # either end is gone
            socket.create_connection((self.host, self._behind)) as broker,
        ):
            self._pass_on(client, broker)

    def _pass_on(self, client: socket.socket, broker: socket.socket) -> None:
        held, flying = list[bytes](), 0
        first = packet(client)
        version, name = first[8 + (first[1] > 127)], text(connect_id(first))
        if len(name) > self._limits.client_id:
            self.broken.append(f"client id {name!r}")
            return
        broker.sendall(first)
        while True:
            ready = select.select([client, broker], [], [], QUIET_S if held else None)[0]
            if not ready:
                flying -= len(held)
                client.sendall(b"".join(held))
                held.clear()
            if client in ready:
                sent = packet(client)
                self.versions.add(version)  # it has taken our welcome
                flying += sent[0] >> 4 == PUBLISH and bool(sent[0] & 6)
                self.most = max(self.most, flying)
                if why := self._wrong(sent, flying if version == 5 else 0, version):
                    self.broken.append(why)
                    return
                broker.sendall(sent)
            if broker in ready:
                came = packet(broker)
                kind = came[0] >> 4
                if kind == PUBACK:
                    held.append(came)
                else:
                    welcomes = kind == CONNACK and version == 5
                    client.sendall(self._welcome() if welcomes else came)

    def _welcome(self) -> bytes:
        said = struct.pack(">BHBI", 0x21, self._limits.window, 0x27, self._limits.message)
        return bytes([CONNACK << 4, 3 + len(said), 0, 0, len(said)]) + said

    def _wrong(self, sent: bytes, flying: int, version: int) -> str:
        limits, kind = self._limits, sent[0] >> 4
        if flying > limits.window:
            return f"{flying} messages at once"
        if len(sent) > limits.message:
            return f"a packet of {len(sent)} bytes"
        body = memoryview(sent)[2 + sum(each > 127 for each in sent[1:4]) :]
        topics = list[bytes]()
        if kind == PUBLISH:
            topics = [text(body)]
        elif kind == SUBSCRIBE:
            rest = body[3 + body[2] :] if version == 5 else body[2:]
            while rest:
                topics.append(text(rest))
                rest = rest[3 + len(topics[-1]) :]
            if len(topics) > limits.subscriptions:
                return f"{len(topics)} topics in a subscription"
        bad = [t for t in topics if t.count(b"/") >= limits.levels or len(t) > limits.topic]
        return f"topics {bad}" if bad else ""


def text(body: memoryview) -> bytes:
    """Return the text that a part of a packet begins with."""
    return bytes(body[2 : 2 + int.from_bytes(body[:2], "big")])


def connect_id(sent: bytes) -> memoryview:
    """Return a CONNECT from its client id on."""
    body = memoryview(sent)[2 + (sent[1] > 127) :]
    return body[11 + body[10] :] if body[6] == 5 else body[10:]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_what_a_cloud_documents_is_kept(mosquitto, cloud):
    """A window's worth of models at once, and reports up, within the limits that it says."""
    names = {"fleet": "default", "parent": "site-1", "limit": 122_880, "first_wait_s": 0.02}
    groups = [f"hall-{number}" for number in range(40)]
    with CloudGate(mosquitto.port, CLOUDS[cloud]) as gate:
        at = Broker(gate.host, gate.port)
        host = Host(MqttDownlink(at, **names, note=lambda *_, **__: None))
        ear = Ear()
        up = MqttUplink(at, node="pump-17.hall-3", groups=groups, **names)
        with closing(host), closing(up):
            up.open(ear)
            ear.opened()
            for group in groups:
                host.publish(group, group.encode())
            ear.has(*(group.encode() for group in groups))
            up.send("report", "hall-1", bytes(100_000))
            host.letter(bytes(100_000))
        assert [] == gate.broken
        if cloud == "HiveMQ":
            assert {4} == gate.versions
        else:
            assert ({5}, min(CLOUDS[cloud].window, WINDOW)) == (gate.versions, gate.most)


def test_a_broker_that_says_nothing_to_mqtt_5_is_asked_in_3_1_1():
    """As aMQTT does, the demo's own broker."""
    port = free_port()
    command = (sys.executable, "-m", "submerge_lab.demo.broker", str(port))
    with subprocess.Popen(command, stderr=subprocess.PIPE) as broker:
        assert broker.stderr is not None
        broker.stderr.readline()
        at, ear = Broker("127.0.0.1", port), Ear()
        up = MqttUplink(at, node="c", groups=["g"], **NAMES)
        host = Host(MqttDownlink(at, **NAMES, note=lambda *_, **__: None))
        with closing(host), closing(up):
            up.open(ear)
            ear.opened()
            host.publish("g", b"model")
            ear.came(b"model")
            up.send("report", "g", b"report")
            host.letter(b"report")
        broker.terminate()


@pytest.mark.parametrize("size", [1_000, 2_000])
def test_a_message_that_a_broker_does_not_take_is_named_before_it_hangs_up(mosquitto, size):
    mosquitto.stop()
    mosquitto.start("max_packet_size 1100")
    ear = Ear()
    up = MqttUplink(Broker(mosquitto.host, mosquitto.port), node="c", groups=["g"], **NAMES)
    with closing(up):
        up.open(ear)
        ear.opened()
        up.send("report", "g", bytes(size))
        up.send("join", "g", bytes(10))
        if size > 1_000:
            assert "takes messages of 1100 bytes at most, got 2" in ear.parted().why
            ear.opened()
        until(lambda: not up._line.unacknowledged, lambda: "both to be acknowledged")
        assert size > 1_000 or not [each for each in ear.heard if isinstance(each, Parted)]


@pytest.mark.parametrize(
    ("setting", "down", "up"),
    [
        ("retain_available false", "keeps no retained messages", "retain not supported"),
        ("max_qos 0", "acknowledges no messages (QoS 1)", "qos not supported"),
    ],
)
def test_what_a_broker_cannot_do_is_said_in_words(mosquitto, setting, down, up):
    """To who leaves a will, as a client does, by the broker; to others before they send."""
    mosquitto.stop()
    mosquitto.start(setting)
    at, ear, notes = Broker(mosquitto.host, mosquitto.port), Ear(), list[str]()
    host = Host(MqttDownlink(at, **NAMES, note=lambda *_, **facts: notes.append(str(facts))))
    client = MqttUplink(at, node="c", groups=["g"], **NAMES)
    with closing(host), closing(client):
        host.publish("g", b"model")
        client.open(ear)
        assert up in ear.parted().why
        until(lambda: down in str(notes), lambda: str(notes))


def test_why_a_broker_hangs_up_is_said_in_its_own_words():
    """A DISCONNECT of MQTT 5 has a reason, and may have a text."""
    granted, own = b"\x20\x03\0\0\0", b"\x1f\0\x08at night"
    away = b"\xe0" + bytes([2 + len(own), 0x8B, len(own)]) + own
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as visitor:
                packet(visitor)
                visitor.sendall(granted + away)
                visitor.recv(999)

        thread = threading.Thread(target=serve)
        thread.start()
        ear = Ear()
        at = Broker(*listener.getsockname())
        up = MqttUplink(at, node="c", groups=["g"], **NAMES)
        with closing(up):
            up.open(ear)
            assert "hung up: server shutting down (at night)" in ear.parted().why
        thread.join()

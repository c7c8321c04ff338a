"""A root as a process of its own, with two groups, and peers with kits that send what they like.

It is reached over gRPC with mutual TLS, or through Mosquitto with the shipped settings. A peer
stands for a machine whose kit was stolen, or for an honest one; what differs is what it sends.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from submerge.protocol.messages import (
    Answer,
    Counts,
    Incarnation,
    Join,
    Joined,
    Model,
    Report,
    Stamp,
)
from submerge.protocol.permission import Permission
from submerge.schema import Schema
from submerge_client.uplink.over_grpc import SERVICE
from submerge_client.uplink.tls import Tls
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec, parts, topics
from submerge_proto.wire.codec import Kind
from support.broker import Mosquitto
from support.certified import LOOPBACK, Certified
from support.liars import summary
from support.nodes import new_incarnation
from support.patience import PATIENCE_S, until
from support.programs import PATH, SUBMERGE, Programs, free_port
from support.shipped_broker import shipped

FLEET, ROOT, PLAIN, STRICT = "f", "root", "plain", "strict"
CHANNELS = [f"x{i}" for i in range(8)]
SIZES = np.array([4.0, 3.0, 2.0, 0.3, 0.2, 0.2, 0.1, 0.1])
CONFIG = """
node = "root"
kit = "{kit}"
store = "{folder}/root.db"
{listen}
[status]
address = "127.0.0.1:{status}"
[timing]
model_every_s = 0.2
report_every_s = 60
[groups.plain]
summary = {{rank = 3, oversample = 3}}
[groups.plain.schema]
channels = {channels}
scaling = "none"
[groups.strict]
robust = true
summary = {{rank = 3, oversample = 3}}
[groups.strict.schema]
channels = {channels}
scaling = "none"
"""

Heard = Answer | Joined | str
"""What comes back: an answer, the name of a gRPC status, or nothing, ""."""


class AttackedRoot:
    """A root at work, and its fleet's authority.

    Parameters
    ----------
    programs : Programs
    over : {"grpc", "mqtt"}
    """

    def __init__(self, programs: Programs, over: str) -> None:
        self.honest: list[Peer] = []
        self.over, self.folder = over, programs.folder
        self.fleet = Certified(self.folder)
        self.status = free_port()
        self.port = free_port()
        listen = f'[listen.grpc]\naddress = "{LOOPBACK}:{self.port}"'
        if over == "mqtt":
            self.broker = Mosquitto(self.folder)
            self.fleet.kit("broker", LOOPBACK)
            self.broker.start(*shipped(self.folder))
            self.port = self.broker.port
            listen = f'[listen.mqtt]\nurl = "mqtts://{LOOPBACK}:{self.port}"\nfleet = "{FLEET}"'
        kit = self.fleet.kit(ROOT, LOOPBACK)
        text = CONFIG.format(
            kit=kit, folder=self.folder, listen=listen, status=self.status, channels=CHANNELS
        )
        self.config = programs.file("root.toml", text)
        self.root = programs.start("aggregator", "--config", self.config)
        self.root.until("serving")

    def close(self) -> None:
        """End the broker; the programs end by themselves."""
        if self.over == "mqtt":
            self.broker.stop()

    def kit(self, node: str, permission: Permission | None = None) -> Path:
        """Make a kit, without a role by default: as kits were before there were roles."""
        return self.fleet.kit(node, permission=permission)

    def metrics(self) -> str:
        """Return what Prometheus would read."""
        url = f"http://127.0.0.1:{self.status}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
            return str(page.read().decode())

    def submerge(self, *args: str) -> str:
        """Run a command to its end, on the root's own machine; return its output."""
        done = subprocess.run(
            [SUBMERGE, *args, "--config", self.config],
            env=os.environ | {"PYTHONPATH": PATH},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert 0 == done.returncode, done.stderr
        return done.stdout


class Peer:
    """A node with a kit, which sends what it likes, to any group."""

    def __init__(self, root: AttackedRoot, node: str, permission: Permission | None = None) -> None:
        self.root, self.node = root, node
        self.kit = root.kit(node, permission)
        self.me = new_incarnation(1)
        self.pinned: dict[str, Incarnation] = {}
        self.schema: dict[str, Schema] = {}
        self._seq = 0

    def join(self, group: str, **fields: Any) -> Heard:
        """Ask to join; remember the answer."""
        stamp = Stamp(self.node, group, self.me, 0)
        message = Join(**{"stamp": stamp, "fence": b"", "past_fences": (), "schema": b""} | fields)
        heard = self.send("join", group, codec.encode(message))
        if isinstance(heard, Joined) and heard.pinned is not None and heard.schema:
            self.pinned[group], self.schema[group] = heard.pinned, Schema.parse(heard.schema)
        return heard

    def report(self, group: str, like: Peer | None = None, **fields: Any) -> Heard:
        """Report, with a summary of its own by default.

        `like`: a peer whose parent's name and schema it uses, if it has not joined itself.
        """
        known = self if like is None else like
        self._seq += 1
        usual: dict[str, Any] = {
            "stamp": Stamp(self.node, group, self.me, self._seq),
            "final": False,
            "pinned": known.pinned[group],
            "fence": b"",
            "fingerprint": known.schema[group].fingerprint,
            "summary": self.summary(known.schema[group]),
            "moments": None,
            "counts": Counts(200 + self._seq),
            "as_of": time.time(),
            "synced": True,
            "version": 0,
            "lifetime": 200 + self._seq,
        }
        return self.send("report", group, codec.encode(Report(**usual | fields)))

    def summary(self, schema: Schema, *, turned: bool = False, **fields: Any) -> Any:
        """Return a summary of 200 readings of the common law, or of one at right angles to it."""
        rng = np.random.default_rng(sum(self.node.encode()))
        sizes = SIZES[::-1] if turned else SIZES
        X = rng.standard_normal((200, len(SIZES))) * sizes
        return replace(summary(X, schema, rank=6), **fields)

    def send(self, kind: Kind, group: str, data: bytes) -> Heard:
        """Send bytes; return the answer, or the status, or "" if nothing came."""
        return (_over_grpc if self.root.over == "grpc" else _over_mqtt)(self, kind, group, data)

    def watch(self, group: str) -> str | None:
        """Ask for models over gRPC, and return the status of the refusal; None without one."""
        with _channel(self) as channel:
            call = channel.unary_stream(f"/{SERVICE}/Watch")
            try:
                next(call(_request(self, group), timeout=PATIENCE_S))
            except grpc.RpcError as error:
                return str(error.code().name)
        return None


class Models:
    """The models of a group, as a node receives them; those that cannot be read are kept apart."""

    def __init__(self, peer: Peer, group: str) -> None:
        self.newest: Model | None = None
        self.unreadable: list[str] = []
        self._stop: Callable[[], object] = lambda: None
        self._listen = self._by_grpc if peer.root.over == "grpc" else self._by_mqtt
        self._listen(peer, group)

    def close(self) -> None:
        """Stop listening."""
        self._stop()

    def after(self, version: int) -> Model:
        """Wait for a model that is newer than a version."""
        until(
            lambda: self.newest is not None and self.newest.version > version,
            lambda: f"a model after {version}; unreadable: {self.unreadable[-1:]}",
        )
        assert self.newest is not None
        return self.newest

    def _take(self, data: bytes) -> None:
        try:
            message = codec.decode("watch", data)
        except Exception as error:  # of any kind: that is what is looked for
            self.unreadable.append(repr(error))
            return
        if isinstance(message, Model):
            self.newest = message

    def _by_grpc(self, peer: Peer, group: str) -> None:
        channel = _channel(peer)
        call = channel.unary_stream(f"/{SERVICE}/Watch")(_request(peer, group))

        def read() -> None:
            with suppress(grpc.RpcError):
                for data in call:
                    self._take(data)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        self._stop = channel.close

    def _by_mqtt(self, peer: Peer, group: str) -> None:
        topic = topics.model(FLEET, ROOT, group)
        client = _client(peer, f"models {peer.node}", [topic], lambda _, data: self._take(data))
        self._stop = client.disconnect


def models(peer: Peer, group: str) -> closing[Models]:
    """Receive a group's models for a while."""
    return closing(Models(peer, group))


def _channel(peer: Peer) -> grpc.Channel:
    credentials = grpc.ssl_channel_credentials(*Tls(kit=peer.kit).contents())
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
    return grpc.secure_channel(f"{LOOPBACK}:{peer.root.port}", credentials, options)


def _request(peer: Peer, group: str) -> bytes:
    header = parts.header(Stamp(peer.node, group, Incarnation(0, 0), 0))
    return bytes(pb.WatchRequest(header=header).SerializeToString())


def _over_grpc(peer: Peer, kind: Kind, _: str, data: bytes) -> Heard:
    with _channel(peer) as channel:
        call = channel.unary_unary(f"/{SERVICE}/{kind.title()}")
        try:
            answer = call(data, timeout=PATIENCE_S)
        except grpc.RpcError as error:
            return str(error.code().name)
    return codec.decode("joined" if kind == "join" else "answer", answer)


def _over_mqtt(peer: Peer, kind: Kind, group: str, data: bytes) -> Heard:
    came: queue.Queue[Heard] = queue.Queue()
    answers: tuple[Kind, ...] = ("joined", "answer")
    down = {topics.down(FLEET, ROOT, peer.node, each): each for each in answers}
    client = _client(
        peer, peer.node, list(down), lambda topic, data: came.put(codec.decode(down[topic], data))
    )
    try:
        topic = topics.up(FLEET, ROOT, peer.node, kind, group)
        # Again, as a client does: the root may not have subscribed yet.
        for _ in range(12):
            client.publish(topic, data, qos=1)
            with suppress(queue.Empty):
                return came.get(timeout=PATIENCE_S / 12)
        return ""
    finally:
        client.disconnect()
        client.loop_stop()


def _client(
    peer: Peer, name: str, read: list[str], take: Callable[[str, bytes], object]
) -> mqtt.Client:
    ready = threading.Event()
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name)
    client.tls_set_context(Tls(kit=peer.kit).context())
    client.on_connect = lambda client, *_: client.subscribe([(topic, 1) for topic in read])
    client.on_subscribe = lambda *_: ready.set()
    client.on_message = lambda _, __, message: take(message.topic, bytes(message.payload))
    client.connect(LOOPBACK, peer.root.port)
    client.loop_start()
    assert ready.wait(PATIENCE_S)
    return client

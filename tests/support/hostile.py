"""A root under siege, over gRPC or through a broker; and whoever comes to it, saying what he likes.

The root is the one that ships, from a configuration, with certificates; Mosquitto runs with the
files that are shipped. What it holds is looked at on its own thread, between two messages.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Now, Tick
from submerge.protocol.messages import Answer, Incarnation, Joined
from submerge_aggregator.assembly import server_of
from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.tomlfile import decoded
from submerge_client.uplink.over_grpc import SERVICE, THROTTLED
from submerge_client.uplink.tls import Tls
from submerge_proto.wire import codec, topics
from submerge_proto.wire.codec import Kind
from support.broker import Mosquitto
from support.certified import LOOPBACK, Certified
from support.patience import PATIENCE_S, until
from support.shipped_broker import shipped

GROUP, FLEET, ROOT = "room", "f", "root"
CHANNELS = [f"x{i}" for i in range(6)]
BURST = 20
"""Messages at once; after that next to none, for as long as a test takes."""
MOST_BYTES = 20_000


class Held(NamedTuple):
    """What hostile messages must leave alone: the store's bytes, and the model's.

    Of the store all but that somebody is under suspicion: that is kept for the next time.
    """

    store: dict[Any, bytes]
    model: bytes


class Root:
    """A root at work; `ways` is in its section [listen], `more` are other sections."""

    def __init__(
        self, fleet: Certified, ways: dict[str, Any], listen: Any = (), **more: Any
    ) -> None:
        table = {
            "node": ROOT,
            "kit": str(fleet.kit(ROOT, LOOPBACK)),
            "store": str(fleet.folder / "root.db"),
            "listen": {"most_per_s": 0.001, **ways, **dict(listen)},
            "advanced": {"burst": BURST},
            "groups": {
                GROUP: {
                    "summary": {"rank": 2, "oversample": 2},
                    "schema": {"channels": CHANNELS},
                }
            },
            "status": {"address": ""},
            "timing": {"model_every_s": 0.001},  # what is taken in shows at once
            **more,
        }
        self.config = decoded(table, AggregatorConfig)
        self.schema = self.config.plans[GROUP].schema
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._does(self._start())

    def close(self) -> None:
        """End it."""
        self._does(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def port(self) -> int:
        """Where it listens, over gRPC."""
        (downlink,) = self._server.downlinks
        return int(downlink.port)  # type: ignore[attr-defined]

    @property
    def listens(self) -> bool:
        """Whether what is said to it from now on arrives."""
        return self._server.broker is not False

    @property
    def counts(self) -> dict[str, int]:
        """What was refused, by the reasons that there were."""
        return {reason: n for reason, n in self._server.refusals.counts.items() if n}

    @property
    def incarnation(self) -> Incarnation:
        """Of its store."""
        return self._asked(lambda node, _: node.incarnation)

    def held(self) -> Held:
        """Look at what it holds, once it has made a model of all that came in."""

        def look(node: AggregatorNode, _: Now) -> Held:
            model = node.model(GROUP)
            kept = self._server.worker.store.load()
            store = {key: data for key, data in kept.items() if key[0] != "suspected"}
            return Held(store, b"" if model is None else codec.encode(model))

        while True:
            before = self._asked(look)
            time.sleep(0.002)  # a model is due
            if before == (held := self._asked(look)):
                return held

    def _asked(self, question: Callable[[AggregatorNode, Now], Any]) -> Any:
        return self._does(self._server.ask(question, Tick()))

    def _does(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    async def _start(self) -> None:
        self._server = server_of(self.config)
        self._running = asyncio.create_task(self._server.run())
        while not self._server.ready and not self._running.done():
            await asyncio.sleep(0.001)

    async def _stop(self) -> None:
        self._server.stop()
        await self._running


Heard = Answer | Joined | str
"""What comes back: an answer, a status and what it adds, or nothing, ""."""


class OverGrpc:
    """Whoever has a kit, or none, and a channel."""

    name = "grpc"

    def __init__(self, folder: Path, stack: ExitStack, **more: Any) -> None:
        self.fleet = Certified(folder)
        listen = {"address": f"{LOOPBACK}:0", "max_message_bytes": MOST_BYTES}
        self.root = Root(self.fleet, {"grpc": listen}, **more)
        stack.callback(self.root.close)

    def message(self, kit: Path, kind: Kind, *reported: bytes, silent: bool = False) -> list[Heard]:
        """Say some things one after the other, and return what is said to each."""
        method = f"/{SERVICE}/{kind.title()}"
        return self.calls(Tls(kit=kit), method, *reported)

    def calls(self, tls: Tls | None, method: str, *reported: bytes, **how: Any) -> list[Heard]:
        """Call any method, with any certificates or none; b"": without a message."""
        target = f"{LOOPBACK}:{self.root.port}"
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        if tls is None:
            opened = grpc.insecure_channel(target, options)
        else:
            credentials = grpc.ssl_channel_credentials(*tls.contents())
            opened = grpc.secure_channel(target, credentials, options)
        with opened as channel:
            call = channel.stream_stream(method)
            return [self._called(call, method, data, **how) for data in reported]

    def _called(self, call: Any, method: str, data: bytes, **how: Any) -> Heard:
        try:
            (answer,) = call(iter([data] if data else []), timeout=PATIENCE_S, **how)
        except grpc.RpcError as error:
            more = THROTTLED if THROTTLED in dict(error.trailing_metadata() or ()) else ""
            return f"{error.code().name} {more}".strip()
        return codec.decode("joined" if method.endswith("Join") else "answer", answer)


class OverMqtt:
    """Whoever has a kit, and a connection to the broker, which knows him by it."""

    name = "mqtt"

    def __init__(self, folder: Path, stack: ExitStack, **more: Any) -> None:
        self.fleet, self.broker = Certified(folder), Mosquitto(folder)
        self.fleet.kit("broker", LOOPBACK)
        self.broker.start(*shipped(folder))
        stack.callback(self.broker.stop)
        url = f"mqtts://{self.broker.host}:{self.broker.port}"
        listen = {"url": url, "fleet": FLEET, "max_message_bytes": MOST_BYTES}
        self.root = Root(self.fleet, {"mqtt": listen}, **more)
        stack.callback(self.root.close)
        # What is said before it has subscribed is lost: nothing here is retained.
        until(lambda: self.root.listens, lambda: "the root at its broker")

    def message(self, kit: Path, kind: Kind, *reported: bytes, silent: bool = False) -> list[Heard]:
        """Say some things on one's own topic, and wait for the answer to each.

        `silent`: there will be none, and it is enough that something was counted.
        """
        topic = topics.up(FLEET, ROOT, kit.stem, kind, GROUP)
        with self.visitor(kit) as visitor:
            return [self._said(visitor, topic, data, silent=silent) for data in reported]

    def visitor(self, kit: Path) -> Visitor:
        """Return a connection to the broker."""
        return Visitor(self.broker, Tls(kit=kit), kit.stem)

    def _said(self, visitor: Visitor, topic: str, data: bytes, *, silent: bool) -> Heard:
        before = self.root.counts
        visitor.say(topic, data)
        if not silent:
            return visitor.next()
        until(lambda: self.root.counts != before, lambda: f"something about {topic}")
        return visitor.next() if visitor.heard else ""


class Visitor:
    """One connection to a broker, which hears what is answered to a node."""

    def __init__(self, broker: Mosquitto, tls: Tls, node: str) -> None:
        self._came: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._ready = threading.Event()
        self._topics = [(topics.down(FLEET, ROOT, node, kind), 1) for kind in ("joined", "answer")]
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=f"visitor {node}")
        self._client.tls_set_context(tls.context())
        self._client.on_connect = lambda client, *_: client.subscribe(self._topics)
        self._client.on_subscribe = lambda *_: self._ready.set()
        self._client.on_message = self._hear
        self._client.connect(broker.host, broker.port)
        self._client.loop_start()
        assert self._ready.wait(PATIENCE_S)

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def say(self, topic: str, data: bytes, *, retain: bool = False) -> None:
        """Publish; the broker acknowledges what it refuses as well."""
        self._client.publish(topic, data, qos=1, retain=retain).wait_for_publish(PATIENCE_S)

    @property
    def heard(self) -> bool:
        """Whether something was answered."""
        return not self._came.empty()

    def next(self) -> Heard:
        """Return the next answer."""
        topic, data = self._came.get(timeout=PATIENCE_S)
        return codec.decode("joined" if topic.endswith("joined") else "answer", data)

    def _hear(self, client: Any, _: Any, message: mqtt.MQTTMessage) -> None:
        self._came.put((message.topic, bytes(message.payload)))

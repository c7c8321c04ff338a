"""Real wires between one load generator and an aggregator: gRPC, and MQTT through Mosquitto.

They speak for many nodes from one event loop. Over gRPC a node has a connection of its own,
or shares some; over MQTT all share one, which publishes and listens under every node's own
topics: an aggregator has one connection to its broker either way.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import processes
from submerge.protocol.messages import Incarnation, Stamp
from submerge_client.uplink.over_grpc import SERVICE
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import parts, topics
from submerge_proto.wire.codec import Kind

GROUP, FLEET, ROOT = "g", "bench", "root"

Hear = Callable[[Sequence[str], Kind, bytes], None]
"""Told which nodes hear something, as what, and its bytes."""


class Wire(Protocol):
    """A way for nodes to speak to a root.

    url : what a real client is told
    failures : calls that brought no answer, and watches that ended
    """

    url: str
    failures: int

    def listen(self) -> str:
        """Return the root's side of it, as TOML."""

    async def open(self, names: Sequence[str], hear: Hear) -> None:
        """Connect, in the name of all of these."""

    def send(self, name: str, kind: Kind, data: bytes) -> None:
        """Send something for one of them; what is sent before the way is open is lost."""

    async def close(self) -> None:
        """Let go."""


class OverGrpc:
    """Speaks over gRPC.

    channels : Connections to share, the first of which watches for all; None: one for each node,
        each with its own watch.
    streams : Each node reports on a stream of its own; else each report is a call.
    """

    def __init__(self, channels: int | None = None, *, streams: bool = False) -> None:
        self._address = f"{processes.HOST}:{processes.free_port()}"
        self.url = f"grpc://{self._address}"
        self._share, self._on_streams = channels, streams
        self._calls: dict[str, dict[str, Any]] = {}
        self._streams: dict[str, Any] = {}
        self._tasks: set[asyncio.Task] = set()
        self.failures = 0

    def listen(self) -> str:
        """Return [listen.grpc]."""
        return f'[listen.grpc]\naddress = "{self._address}"\ninsecure = true\n'

    async def open(self, names: Sequence[str], hear: Hear) -> None:
        """Connect."""
        import grpc

        self._hear = hear
        options = [("grpc.use_local_subchannel_pool", 1)]
        count = len(names) if self._share is None else self._share
        self._channels = [grpc.aio.insecure_channel(self._address, options) for _ in range(count)]
        calls = [
            {
                "join": each.unary_unary(f"/{SERVICE}/Join"),
                "report": each.unary_unary(f"/{SERVICE}/Report"),
                "reports": each.stream_stream(f"/{SERVICE}/Reports"),
            }
            for each in self._channels
        ]
        self._calls = {name: calls[i % count] for i, name in enumerate(names)}
        for i, channel in enumerate(self._channels if self._share is None else self._channels[:1]):
            await channel.channel_ready()
            self._begin(self._watch(channel, names if self._share else names[i : i + 1]))

    def send(self, name: str, kind: Kind, data: bytes) -> None:
        """Make a call."""
        if name in self._calls:
            self._begin(self._call(name, kind, data))

    async def close(self) -> None:
        """Leave off, and close the connections."""
        for stream in self._streams.values():
            stream.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels:
            await channel.close()

    async def _call(self, name: str, kind: Kind, data: bytes) -> None:
        import grpc

        try:
            if kind == "report" and self._on_streams:
                stream = self._streams.get(name)
                if stream is None:
                    stream = self._streams[name] = self._calls[name]["reports"]()
                await stream.write(data)
                answer = await stream.read()
                if answer is grpc.aio.EOF:
                    raise RuntimeError("the root keeps no stream open")
            else:
                answer = await self._calls[name][kind](data, timeout=30.0)
        except grpc.aio.AioRpcError:
            self.failures += 1  # the node says it again, if it is one that does
            return
        self._hear((name,), "joined" if kind == "join" else "answer", answer)

    async def _watch(self, channel: Any, names: Sequence[str]) -> None:
        header = parts.header(Stamp(names[0], GROUP, Incarnation(0, 0), 0))
        request = pb.WatchRequest(header=header).SerializeToString()
        try:
            async for data in channel.unary_stream(f"/{SERVICE}/Watch")(request):
                self._hear(names, "watch", data)
        finally:
            self.failures += 1

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class OverMqtt:
    """Speaks through a broker of its own."""

    def __init__(self, site: processes.Site, *, core: int | None = None) -> None:
        self._port = site.broker(core=core)
        self.url = f"mqtt://{processes.HOST}:{self._port}"
        self.failures = 0
        self._client: Any = None

    def listen(self) -> str:
        """Return [listen.mqtt]."""
        return f'[listen.mqtt]\nurl = "{self.url}"\nfleet = "{FLEET}"\ninsecure = true\n'

    async def open(self, names: Sequence[str], hear: Hear) -> None:
        """Connect, and listen under all topics of all nodes."""
        import paho.mqtt.client as mqtt

        loop, granted = asyncio.get_running_loop(), asyncio.Event()
        kinds: dict[str, Kind] = {"joined": "joined", "answer": "answer"}

        def came(_: object, __: object, message: mqtt.MQTTMessage) -> None:
            *_, place, last = message.topic.split("/")
            kind = kinds.get(last)
            hear(names if kind is None else (place,), kind or "watch", message.payload)

        client = self._client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "bench")
        client.max_inflight_messages_set(0)
        client.on_message = came
        client.on_subscribe = lambda *_: granted.set()
        client.on_socket_register_write = lambda _, __, s: loop.add_writer(s, client.loop_write)
        client.on_socket_unregister_write = lambda _, __, s: loop.remove_writer(s)
        client.connect(processes.HOST, self._port)
        loop.add_reader(client.socket(), client.loop_read, 100)
        self._tending = asyncio.create_task(self._tend())
        below = f"submerge/{topics.VERSION}/{FLEET}/{ROOT}"
        ours = ("down/+/+", "model/+", "hello")
        client.subscribe([(f"{below}/{topic}", 1) for topic in ours])
        await asyncio.wait_for(granted.wait(), processes.WITHIN_S)

    def send(self, name: str, kind: Kind, data: bytes) -> None:
        """Publish, as a node does."""
        if self._client is None:
            return
        topic = topics.up(FLEET, ROOT, name, kind, GROUP)
        self._client.publish(topic, data, qos=1, retain=kind == "report")

    async def close(self) -> None:
        """Disconnect."""
        self._tending.cancel()
        with suppress(asyncio.CancelledError):
            await self._tending
        loop, socket = asyncio.get_running_loop(), self._client.socket()
        if socket is not None:
            loop.remove_reader(socket)
            loop.remove_writer(socket)
        self._client.disconnect()

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._client.loop_misc()

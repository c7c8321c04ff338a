"""OverMqtt: the way to the children through an MQTT broker, perhaps one of other aggregators, too.

It keeps each child's newest report, the hello and the models: all come again after a restart.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

from submerge_aggregator.downlink import UNPROVEN, Inbound, PeerIdentity, Take
from submerge_aggregator.refusals import Refusals
from submerge_client.uplink.broker import Broker, Parting, Publication, overhead
from submerge_client.uplink.line import BrokerConnection
from submerge_proto.wire import topics
from submerge_proto.wire.codec import Kind

REPEAT_S = 600.0  # between two publications of an unchanged message: a broker may lose what it has

PUSH_S = 10.0
"""Between two publications of one group's model for a child that lacks it: all children get it."""

REMIND_S = 60.0  # between two log lines on a broker that is out of reach

MOST_ARRIVING = 256
"""Messages that wait for the commit of their batch. With more the thread stops reading, and the
broker waits: 10,000 reports that arrive at once are all taken."""

STALLED_S = 20.0
"""An event loop that takes nothing for so long ends the connection; the next one brings all
messages again. Less than the broker's limit for a silent client."""

MOST_ANSWERS = 16_384  # answers that wait for the broker; without room for one, a child asks again


class MqttDownlink:
    """A `Downlink` over MQTT.

    limit : Most bytes of a message that comes in; paho has made room for it by then.
    sends : Most bytes of one that goes out, topic and header included; None: as many.
    """

    reading = None  # messages come whole

    def __init__(
        self,
        broker: Broker,
        *,
        fleet: str,
        parent: str,
        limit: int,
        sends: int | None = None,
        note: Callable[..., None],
        first_wait_s: float = 1.0,
        refusals: Refusals | None = None,
    ) -> None:
        self._fleet, self._parent, self._limit, self._note = fleet, parent, limit, note
        # Without TLS any process of the network can write to any topic.
        self._identity = UNPROVEN if broker.tls is None else PeerIdentity("broker")
        self._sends = limit if sends is None else sends
        self._broker = broker
        self._take: Take = lambda _: None
        self._kept: dict[str, Publication] = {}
        self._pushed_at: dict[str, float] = {}
        self._remind_at = 0.0
        self._away = False
        self.reachable: bool | None = False
        self._arriving = threading.BoundedSemaphore(MOST_ARRIVING)
        self._refusals = Refusals() if refusals is None else refusals
        self._line = BrokerConnection(
            self._broker,
            name=f"submerge:{fleet}:{parent}",
            topics=topics.all_up(fleet, parent),
            opened=self._on_opened,
            parted=self._on_parted,
            came=self._on_message,
            first_wait_s=first_wait_s,
        )

    async def open(self, take: Take) -> None:
        self._take, self._loop = take, asyncio.get_running_loop()
        self._repeat = self._loop.call_later(REPEAT_S, self._publish_again)
        self._line.open()

    def publish(self, group: str, data: bytes) -> None:
        topic = self._topic(group)
        if not self._fits(topic, data):
            self._note("not published: too large", group=group, size=len(data), most=self._sends)
            return
        self._kept[topic] = Publication(topic, data, retain=True)
        if self._line.is_open:  # or all are published as soon as it is
            self._line.put(topic, self._kept[topic])

    def push(self, node: str, group: str, kind: Kind, data: bytes) -> None:
        """Publish an answer; or a model again, for all children, if that is not too soon."""
        if kind != "watch":
            self._answer(node, kind, data)
            return
        topic, now = self._topic(group), self._loop.time()
        kept = self._kept.get(topic)
        if kept is None or kept.data != data or now >= self._pushed_at.get(topic, 0.0) + PUSH_S:
            self._pushed_at[topic] = now
            self.publish(group, data)

    async def close(self) -> None:
        self._repeat.cancel()
        await asyncio.to_thread(self._line.close)

    # On the line's thread:
    def _on_opened(self) -> None:
        self._loop.call_soon_threadsafe(self._back)

    def _on_parted(self, why: str) -> None:
        self._line.clear()  # answers: their children will have asked again
        self._loop.call_soon_threadsafe(self._gone, why)

    def _on_message(self, topic: str, data: bytes) -> None:
        origin = topics.origin(topic)
        who = "" if origin is None else origin.node
        if len(data) > self._limit:
            why = f"{len(data)} bytes, expected at most {self._limit}"
            self._refusals.count("oversize", who, why=why)
        elif origin is None:
            self._refusals.count("foreign_topic", why=topic[:200])
        elif not data:
            self._refusals.count("empty", who)  # a report taken back
        elif self._arriving.acquire(timeout=STALLED_S):
            self._loop.call_soon_threadsafe(self._arrive, origin, data)
        else:
            raise Parting("the event loop takes no messages: it stands still")

    # On the event loop:
    def _arrive(self, origin: topics.Origin, data: bytes) -> None:
        node = origin.node

        def answer(kind: Kind, data: bytes) -> None:
            if origin.kind != "job":  # a job's messages need no answer of their own
                self._answer(node, kind, data)

        # A refusal has no topic, so the child gets no reason.
        inbound = Inbound(origin.kind, data, node, True, answer, lambda *_: None)
        self._take(replace(inbound, identity=self._identity, done=self._arriving.release))

    def _answer(self, node: str, kind: Kind, data: bytes) -> None:
        topic = topics.down(self._fleet, self._parent, node, kind)
        if not self._fits(topic, data):
            return
        if kind == "job":
            self._line.put_later(Publication(topic, data, retain=False))
            return
        # Answers to one child do not replace each other: they may be about several groups.
        if self._line.waiting < MOST_ANSWERS:
            self._line.put(object(), Publication(topic, data, retain=False))

    def _back(self) -> None:
        self._publish_all()
        self.reachable = True
        if self._away:
            self._away = False
            self._note("broker reached again", broker=str(self._broker))

    def _gone(self, why: str) -> None:
        self.reachable = False
        if self._loop.time() >= self._remind_at:
            self._away = True
            self._remind_at = self._loop.time() + REMIND_S
            self._note(
                "broker unreachable, trying on", level="warning", broker=str(self._broker), why=why
            )

    def _publish_again(self) -> None:
        self._repeat = self._loop.call_later(REPEAT_S, self._publish_again)
        self._publish_all()

    def _publish_all(self) -> None:
        for topic, publication in self._kept.items():
            self._line.put(topic, publication)

    def _topic(self, group: str) -> str:
        if not group:
            return topics.hello(self._fleet, self._parent)
        return topics.model(self._fleet, self._parent, group)

    def _fits(self, topic: str, data: bytes) -> bool:
        return len(data) + overhead(topic) <= self._sends

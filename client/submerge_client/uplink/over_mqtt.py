"""MqttUplink: the uplink to a parent through an MQTT broker, which retains a report.

`Opened` means that the broker is reachable; that the parent is, its hello shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from submerge_client.uplink import Came, Hear, Opened, Parted, check_size
from submerge_client.uplink.broker import Broker, Publication, overhead
from submerge_client.uplink.line import BrokerConnection
from submerge_proto.wire import topics
from submerge_proto.wire.codec import Kind

DOWN: tuple[Kind, ...] = ("joined", "answer", "drilled", "question", "replied", "job")
"""Kinds of messages to one child."""


class MqttUplink:
    """An `Uplink` over MQTT; fleet, parent and node are in every topic, and are the client id."""

    def __init__(
        self,
        broker: Broker,
        *,
        fleet: str,
        parent: str,
        node: str,
        groups: Sequence[str],
        limit: int,
        first_wait_s: float = 1.0,
    ) -> None:
        self._fleet, self._parent, self._node, self._limit = fleet, parent, node, limit
        self._kinds: dict[str, Kind] = {
            **{topics.down(fleet, parent, node, kind): kind for kind in DOWN},
            topics.hello(fleet, parent): "watch",
            **{topics.model(fleet, parent, group): "watch" for group in groups},
        }
        self._state = topics.state(fleet, parent, node)
        self._hear: Hear = lambda _: None
        self._why: str | None = None
        self.counts = {"foreign": 0, "too_large": 0, "empty": 0}
        self._line = BrokerConnection(
            broker,
            # No slash: Mosquitto's pattern ACLs shut out names that have one.
            name=f"submerge:{fleet}:{parent}:{node}",
            topics=list(self._kinds),
            will=Publication(self._state, b"offline", True),
            opened=self._opened,
            parted=self._parted,
            came=self._came,
            first_wait_s=first_wait_s,
        )

    def open(self, hear: Hear) -> None:
        self._hear = hear
        self._line.open()

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Send a join or a report; the newest of its kind waits for the broker."""
        topic = topics.up(self._fleet, self._parent, self._node, kind, group)
        check_size(kind, data, self._limit - overhead(topic))
        if kind == "job":
            self._line.put_later(Publication(topic, data, retain=False))
            return
        # The broker retains the report of the running incarnation; a final waits under its own key.
        # What an aggregator passes on for several nodes does not replace each other either.
        key = (topic, data) if final or kind in ("drill", "reply") else topic
        self._line.put(key, Publication(topic, data, retain=kind == "report" and not final))

    def close(self) -> None:
        """Send what waits, publish "offline", and end."""
        self._line.close(Publication(self._state, b"offline", True))

    # On the line's thread:
    def _opened(self) -> None:
        self._line.put(self._state, Publication(self._state, b"online", True))
        self._why = None
        self._hear(Opened())

    def _parted(self, why: str) -> None:
        if why != self._why:
            self._why = why
            self._hear(Parted(why))

    def _came(self, topic: str, data: bytes) -> None:
        kind = self._kinds.get(topic)
        if kind is None:
            self.counts["foreign"] += 1
        elif len(data) > self._limit:
            self.counts["too_large"] += 1
        elif not data:
            self.counts["empty"] += 1  # a retained topic was cleared
        else:
            self._hear(Came(kind, data))

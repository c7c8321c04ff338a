"""OverMqtt: the way to a parent through an MQTT broker.

That it is open says that the broker is there, not the parent: a parent says so in its hello.
What is sent while the broker is out of reach waits, the newest of each kind and group; a
report stays with the broker, so that a parent that comes later finds it.
"""

from __future__ import annotations

from collections.abc import Sequence

from submerge_client.uplink import Came, Hear, Opened, Parted, check_size
from submerge_client.uplink.broker import Broker, Publication, overhead
from submerge_client.uplink.line import BrokerConnection
from submerge_client.uplink.tls import Tls
from submerge_proto.wire import topics
from submerge_proto.wire.codec import Kind


class MqttUplink:
    """An `Uplink` over MQTT.

    Parameters
    ----------
    host, port : str, int
        The broker's.
    fleet, parent, node : str
        They stand in every topic, and together they name this client to the broker, which
        bears one client of a name: a second process of this node chases this one off.
    groups : sequence of str
        Whose models it wants to hear of.
    limit : int
        Most bytes of a message on its way, topic and header included.
    username, password : str or None
    tls : Tls or None
        None: unprotected.
    first_wait_s : float
        Before the second try to connect; each further one waits twice as long, up to 60 s.

    Attributes
    ----------
    counts : dict of str to int
        What was heard and passed over: `foreign` topics, `too_large`, `empty`.

    Raises
    ------
    UsageError
        If a file of `tls` is of no use.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        fleet: str,
        parent: str,
        node: str,
        groups: Sequence[str],
        limit: int,
        username: str | None = None,
        password: str | None = None,
        tls: Tls | None = None,
        first_wait_s: float = 1.0,
    ) -> None:
        self._fleet, self._parent, self._node, self._limit = fleet, parent, node, limit
        self._kinds: dict[str, Kind] = {
            topics.down(fleet, parent, node, "joined"): "joined",
            topics.down(fleet, parent, node, "answer"): "answer",
            topics.hello(fleet, parent): "watch",
            **{topics.model(fleet, parent, group): "watch" for group in groups},
        }
        self._state = topics.state(fleet, parent, node)
        self._hear: Hear = lambda _: None
        self._why: str | None = None
        self.counts = {"foreign": 0, "too_large": 0, "empty": 0}
        self._line = BrokerConnection(
            Broker(host, port, username, password, tls),
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
        """Begin to connect."""
        self._hear = hear
        self._line.open()

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Send a join or a report, or keep it, if it is the newest, until there is a broker."""
        topic = topics.up(self._fleet, self._parent, self._node, kind, group)
        check_size(kind, data, self._limit - overhead(topic))
        # The broker keeps the running life's report; those of lives before it wait by themselves.
        key = (topic, data) if final else topic
        self._line.put(key, Publication(topic, data, retain=kind == "report" and not final))

    def close(self) -> None:
        """Let what waits go out, say "offline", and end."""
        self._line.close(Publication(self._state, b"offline", True))

    # -- on the line's thread ----------------------------------------------------

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
            self.counts["empty"] += 1  # somebody has cleared a retained topic
        else:
            self._hear(Came(kind, data))

"""OverMqtt: whether a node is well, as one retained message that always says how it is now.

A state needs no memory of what was told: said twice, it is the same. It is said again with each
connection, for a broker may have lost what it had. Whether somebody watches over the node at all
stands beside it: "online", and as last will "offline".
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from submerge.protocol.alarm_changes import diff, is_urgent
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.discovery import OFFLINE, ONLINE, configs, state
from submerge_client.config.links import UplinkConfig
from submerge_client.logs import say
from submerge_client.uplink.broker import Broker, Publication
from submerge_client.uplink.factory import password_of, tls_of
from submerge_client.uplink.line import BrokerConnection
from submerge_proto.wire import topics

AGAIN_S = 60.0
"""Between two messages of one alarm, at least, while nothing changes but its figures."""


class MqttAlarms:
    """Tells a broker, and through it Home Assistant.

    Parameters
    ----------
    link : UplinkConfig
        The broker, and the fleet that its topics are of.
    node, group : str
    discovery : str
        Below which topic Home Assistant looks; "" tells it nothing.
    kit : Path, optional
        The node's own.
    clock : callable
        Seconds, never set back.
    """

    def __init__(
        self,
        link: UplinkConfig,
        *,
        node: str,
        group: str,
        discovery: str,
        kit: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node, self._group, self._clock = node, group, clock
        self._topic = topics.alarm(link.fleet, node)
        self._there = topics.alarm_state(link.fleet, node)
        self._encode = msgspec.json.Encoder().encode
        self._configs = [
            Publication(topic, self._encode(config), retain=True)
            for topic, config in (
                configs(discovery, link.fleet, node, group) if discovery else {}
            ).items()
        ]
        # Or else a new connection could say what was so before.
        self._lock = threading.Lock()
        self._said: Publication | None = None
        self._known: tuple[Alarm, ...] = ()
        self._at = -math.inf
        self._why: str | None = None
        self._line = BrokerConnection(
            Broker(link.host, link.port, link.username, password_of(link), tls_of(link, kit)),
            name=f"submerge:{link.fleet}:alarm:{node}",
            topics=(),
            will=Publication(self._there, OFFLINE, retain=True),
            opened=self._opened,
            parted=self._parted,
            came=lambda *_: None,
        )
        self._line.open()

    def tell(self, alarms: tuple[Alarm, ...]) -> None:
        """Publish how it is; figures that changed no more than once a minute."""
        now = self._clock()
        if not is_urgent(diff(self._known, alarms)) and now - self._at < AGAIN_S:
            return
        self._known, self._at = alarms, now
        data = self._encode(state(self._node, self._group, alarms))
        said = Publication(self._topic, data, retain=True)
        with self._lock:
            if said != self._said:
                self._said = said
                self._line.put(self._topic, said)

    def close(self, patience_s: float) -> None:
        """Say that nobody watches any more."""
        self._line.close(Publication(self._there, OFFLINE, retain=True))

    def _opened(self) -> None:
        if self._why is not None:
            say("alarms told to the broker again")
        self._why = None
        for config in self._configs:
            self._line.put(config.topic, config)
        with self._lock:
            if self._said is not None:
                self._line.put(self._topic, self._said)
        # Last: what Home Assistant shows as there is then known.
        self._line.put(self._there, Publication(self._there, ONLINE, retain=True))

    def _parted(self, why: str) -> None:
        if why != self._why:
            self._why = why
            say("alarms not told to the broker, trying on", level=logging.WARNING, why=why)

"""MqttAlarms: the alarm state of a node as one retained message that is always up to date.

A state needs no journal. It is published with each connection: a broker may have lost it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from submerge import __version__
from submerge.protocol.alarm_changes import diff, is_urgent
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import facts, rounded, stamp
from submerge_client.config.links import UplinkConfig
from submerge_client.logs import say
from submerge_client.uplink.broker import Publication, broker_of
from submerge_client.uplink.line import BrokerConnection
from submerge_proto.wire import topics

ONLINE, OFFLINE = b"online", b"offline"  # Home Assistant's defaults for availability


def state(node: str, group: str, alarms: tuple[Alarm, ...]) -> dict[str, Any]:
    """Return the retained message: whether there is an alarm, and the facts of the newest one."""
    newest = alarms[0] if alarms else None
    is_open = newest is not None and newest.is_open
    message: dict[str, Any] = {
        "node": node,
        "group": group,
        "alarm": "ON" if is_open else "OFF",
        "score": rounded(newest.worst) if newest is not None and is_open else 0.0,
        "channel": newest.top[0][0] if newest is not None and is_open and newest.top else None,
    }
    if newest is not None:
        message |= {"at": stamp(newest.ended or newest.began), **facts(newest, group)}
    return message


def configs(prefix: str, fleet: str, node: str, group: str) -> dict[str, dict[str, Any]]:
    """Return the discovery messages by topic; they are published as retained."""
    state_topic = topics.alarm(fleet, node)
    device = f"submerge_{fleet}_{node}"
    shared: dict[str, Any] = {
        "state_topic": state_topic,
        "availability_topic": topics.alarm_state(fleet, node),
        "qos": 1,
        "device": {
            "identifiers": [device],
            "name": node,
            "manufacturer": "submerge",
            "model": group,
            "sw_version": __version__,
        },
        "origin": {"name": "submerge", "sw_version": __version__},
    }
    entities: dict[tuple[str, str], dict[str, Any]] = {
        ("binary_sensor", "alarm"): {
            "name": "Alarm",
            "device_class": "problem",
            "value_template": "{{ value_json.alarm }}",
            "json_attributes_topic": state_topic,
        },
        ("sensor", "score"): {
            "name": "Score over limit",
            "state_class": "measurement",
            "suggested_display_precision": 2,
            "icon": "mdi:chart-bell-curve",
            "value_template": "{{ value_json.score }}",
        },
        ("sensor", "channel"): {
            "name": "Top channel",
            "icon": "mdi:magnify",
            "value_template": "{{ value_json.channel or 'none' }}",
        },
    }
    return {
        topics.discovery(prefix, component, node, entity): {
            **shared,
            "unique_id": f"{device}_{entity}",
            **config,
        }
        for (component, entity), config in entities.items()
    }


AGAIN_S = 60.0  # the least time between two messages of one alarm while only its figures change


class MqttAlarms:
    """A sink that publishes to a broker; `discovery`: Home Assistant's prefix, "" for none."""

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
        self._availability = topics.alarm_state(link.fleet, node)
        self._encode = msgspec.json.Encoder().encode
        self._configs = [
            Publication(topic, self._encode(config), retain=True)
            for topic, config in (
                configs(discovery, link.fleet, node, group) if discovery else {}
            ).items()
        ]
        # Without it, a new connection could publish an older state.
        self._lock = threading.Lock()
        self._published: Publication | None = None
        self._known: tuple[Alarm, ...] = ()
        self._at = -math.inf
        self._why: str | None = None
        self._line = BrokerConnection(
            broker_of(link, kit),
            name=f"submerge:{link.fleet}:alarm:{node}",
            will=Publication(self._availability, OFFLINE, retain=True),
            opened=self._opened,
            parted=self._parted,
        )
        self._line.open()

    def update(self, alarms: tuple[Alarm, ...]) -> None:
        """Publish the state; if only figures changed, at most once a minute."""
        now = self._clock()
        if not is_urgent(diff(self._known, alarms)) and now - self._at < AGAIN_S:
            return
        self._known, self._at = alarms, now
        data = self._encode(state(self._node, self._group, alarms))
        publication = Publication(self._topic, data, retain=True)
        with self._lock:
            if publication != self._published:
                self._published = publication
                self._line.put(self._topic, publication)

    def close(self, patience_s: float) -> None:
        """Publish "offline" and end."""
        self._line.close(Publication(self._availability, OFFLINE, retain=True))

    def _opened(self) -> None:
        if self._why is not None:
            say("alarms reach the broker again")
        self._why = None
        for config in self._configs:
            self._line.put(config.topic, config)
        with self._lock:
            if self._published is not None:
                self._line.put(self._topic, self._published)
        # Last: Home Assistant shows entities as available once their state is there.
        online = Publication(self._availability, ONLINE, retain=True)
        self._line.put(self._availability, online)

    def _parted(self, why: str) -> None:
        if why != self._why:
            self._why = why
            say("alarms do not reach the broker, trying on", level="warning", why=why)

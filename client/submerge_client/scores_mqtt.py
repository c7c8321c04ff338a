"""Publisher: score lines to a broker, one message a row, for dashboards and alarms.

Flat JSON on `submerge/v1/{fleet}/score/{node}`, QoS 0: what a broker misses is gone, and
nothing piles up here. It has a connection of its own, so that scores can go elsewhere than
reports, and a broker that is slow holds up no report.
"""

from __future__ import annotations

import logging

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from submerge_client.links import UplinkConfig
from submerge_client.logs import say
from submerge_client.uplink.chosen import password_of, tls_of
from submerge_proto import topics

MOST_QUEUED = 1000
"""Lines that wait for a broker that is slow; more are left out."""


class Publisher:
    """Tells scores to a broker.

    Parameters
    ----------
    link : UplinkConfig
        The broker.
    node : str

    Attributes
    ----------
    left_out : int
        Lines that no broker took.
    """

    def __init__(self, link: UplinkConfig, node: str) -> None:
        self.left_out = 0
        self._topic = topics.score(link.fleet, node)
        self._away = False
        client = self._client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=f"submerge-score-{node}"
        )
        client.max_queued_messages_set(MOST_QUEUED)
        client.reconnect_delay_set(1, 60)
        if link.username is not None:
            client.username_pw_set(link.username, password_of(link))
        tls = tls_of(link)
        if tls is not None:
            client.tls_set_context(tls.context())
        client.connect_async(link.host, link.port)
        client.loop_start()

    def tell(self, lines: bytes) -> None:
        """Publish lines, if there is a broker."""
        if not self._client.is_connected():
            self.left_out += lines.count(b"\n")
            if not self._away:
                self._away = True
                say("scores not told: no broker", level=logging.WARNING)
            return
        if self._away:
            self._away = False
            say("scores told again", left_out=self.left_out)
        for line in lines.splitlines():
            self._client.publish(self._topic, line, qos=0)

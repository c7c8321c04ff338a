"""Publisher: score lines to a broker, one message a row, for dashboards and alarms.

Flat JSON on `submerge/v1/{fleet}/score/{node}`, QoS 1, not retained. It has a connection of
its own, so that scores can go elsewhere than reports, and a broker that is slow holds up no
report: what it does not take in time is left out, and counted.
"""

from __future__ import annotations

import logging
from pathlib import Path

from submerge_client.config.links import UplinkConfig
from submerge_client.logs import say
from submerge_client.uplink.broker import Broker, Publication
from submerge_client.uplink.factory import password_of, tls_of
from submerge_client.uplink.line import BrokerConnection
from submerge_proto.wire import topics

MOST_WAITING = 1000
"""Lines that wait for a broker that is slow; more are left out."""


class Publisher:
    """Tells scores to a broker.

    Parameters
    ----------
    link : UplinkConfig
        The broker.
    node : str
    kit : Path, optional
        The node's own.

    Attributes
    ----------
    left_out : int
        Lines that no broker took.
    """

    def __init__(self, link: UplinkConfig, node: str, kit: Path | None = None) -> None:
        self.left_out = 0
        self._topic = topics.score(link.fleet, node)
        self._why: str | None = None
        self._line = BrokerConnection(
            Broker(link.host, link.port, link.username, password_of(link), tls_of(link, kit)),
            name=f"submerge:{link.fleet}:score:{node}",
            topics=(),
            will=None,
            opened=self._opened,
            parted=self._parted,
            came=lambda *_: None,
        )
        self._line.open()

    def tell(self, lines: bytes) -> None:
        """Publish lines, if there is a broker that takes them."""
        for line in lines.splitlines():
            if self._line.is_open and self._line.waiting < MOST_WAITING:
                # Each is its own: none takes the place of another.
                self._line.put(object(), Publication(self._topic, line, retain=False))
            else:
                self.left_out += 1

    def _opened(self) -> None:
        if self._why is not None:
            say("scores told again", left_out=self.left_out)
        self._why = None

    def _parted(self, why: str) -> None:
        if why != self._why:
            self._why = why
            say("scores not told, trying on", level=logging.WARNING, why=why)

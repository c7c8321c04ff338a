"""Publisher: score lines to a broker, by a connection of its own: a slow one delays no report."""

from __future__ import annotations

from pathlib import Path

from submerge_client.config.links import UplinkConfig
from submerge_client.logs import say
from submerge_client.uplink.broker import Publication, broker_of
from submerge_client.uplink.line import BrokerConnection
from submerge_proto.wire import topics

MOST_WAITING = 1000  # most lines that wait for a slow broker; further ones are left out


class Publisher:
    def __init__(self, link: UplinkConfig, node: str, kit: Path | None = None) -> None:
        self.left_out = 0
        self._topic = topics.score(link.fleet, node)
        self._why: str | None = None
        self._line = BrokerConnection(
            broker_of(link, kit),
            name=f"submerge:{link.fleet}:score:{node}",
            opened=self._opened,
            parted=self._parted,
        )
        self._line.open()

    def publish(self, lines: bytes) -> None:
        """Publish lines, if a broker is connected and takes them."""
        for line in lines.splitlines():
            if self._line.is_open and self._line.waiting < MOST_WAITING:
                # Each line has a key of its own: none replaces another.
                self._line.put(object(), Publication(self._topic, line, retain=False))
            else:
                self.left_out += 1

    def _opened(self) -> None:
        if self._why is not None:
            say("scores reach the broker again", left_out=self.left_out)
        self._why = None

    def _parted(self, why: str) -> None:
        if why != self._why:
            self._why = why
            say("scores do not reach the broker, trying on", level="warning", why=why)

"""A client and its root in one process, from their configuration files: no thread, no port.

    root = OneRoot(root_file)
    agent = client_of(client_file, root, rows)
    agent.run()

The root is the machine that ships. It takes each message as it is sent, and answers at once; a
second passes on its clock with each.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Publish, Received, Send, Start
from submerge_aggregator import config as root_config
from submerge_client.agent import Agent
from submerge_client.checkpoint import CheckpointFile, RecordStore
from submerge_client.clock import now
from submerge_client.config import client_config
from submerge_client.sensors.gather import Lags
from submerge_client.uplink import Came, Opened
from submerge_proto.wire import codec


class OneRoot:
    """The root of a configuration file, as the uplink of one client after another."""

    def __init__(self, path: Path, **environ: str) -> None:
        config = root_config.load(path, environ)
        self.node = AggregatorNode(config.settings, config.plans, np.random.default_rng(0))
        self._messages = 0
        effects = self.node.step(Start({}), now())
        self._hello = [each for each in effects if isinstance(each, Publish)]
        self._hear: Any = None

    def open(self, hear: Any) -> None:
        """Connect a client."""
        self._hear = hear
        hear(Opened())
        for effect in self._hello:
            self._say(effect.message)

    def send(self, kind: str, group: str, data: bytes, *, final: bool = False) -> None:
        """Take a message, and answer it."""
        self._messages += 1
        time = now()
        later = time._replace(steady=time.steady + self._messages)
        for effect in self.node.step(Received(codec.decode(kind, data)), later):
            if isinstance(effect, Send | Publish):
                self._say(effect.message)

    def close(self) -> None:
        """Disconnect the client."""
        self._hear = None

    def _say(self, message: Any, kind: str | None = None) -> None:
        self._hear(Came(kind or codec.kind_of(message), codec.encode(message)))


class Rows:
    """A sensor that hands over rows by 50, and ends."""

    counts: ClassVar[dict[str, int]] = {}

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows

    def read(self, hand: Any, stop: Any) -> None:
        """Hand over all rows."""
        for first in range(0, len(self._rows), 50):
            hand(self._rows[first : first + 50])


def client_of(
    path: Path, uplink: Any, sensor: Rows, *, linger_s: float = 0.2, state: Path | None = None
) -> Agent:
    """Return the client of a configuration file, with another uplink and another sensor."""
    config = client_config.load(path, {})
    # It tries again at once, where it would let seconds pass.
    settings = replace(config.settings, patience_s=0.01)
    node = ClientNode(settings, config.built_schema, config.summaries, np.random.default_rng())
    return Agent(
        node,
        uplink=uplink,
        sensor=sensor,
        disk=RecordStore(CheckpointFile(state or path.with_suffix(".state"))),
        lags=Lags(config.schema.lags, len(config.schema.sensed)),
        scores=None,
        clock=now,
        gather_s=0.0,
        linger_s=linger_s,
    )

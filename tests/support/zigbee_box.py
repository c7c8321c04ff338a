"""VirtualBox: `submerge up` on messages of a broker, in virtual time and in one thread.

Messages go through the decoder and the grid that ship, rows through a real client and its root,
with the settings of `BoxConfig`. Nothing is written, nothing waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import (
    Alarmed,
    Event,
    Keep,
    Now,
    Publish,
    Reading,
    Received,
    Scored,
    Send,
    Start,
    Tick,
)
from submerge_client.config.sensors import MqttSensor
from submerge_client.sensors.grid import Grid
from submerge_client.sensors.mqtt import messages
from submerge_client.sensors.mqtt.messages import MessageDecoder
from submerge_client.sensors.tally import ProblemTally, no_log
from submerge_fleet.up.config import BoxConfig
from support.zigbee import Message

BEGAN = 1.75e9
"""The wall time at which virtual time begins."""


class VirtualBox:
    """One machine.

    Parameters
    ----------
    config : BoxConfig
        With an `mqtt` sensor.
    seed : int
    step_s : float
        Rows of so much time are read at once.
    """

    def __init__(self, config: BoxConfig, *, seed: int = 0, step_s: float = 60.0) -> None:
        sensor = config.sensor
        assert isinstance(sensor, MqttSensor)
        self.now, self._step_s, self._due = 0.0, step_s, step_s
        names = [channel.name for channel in config.schema.sensed]
        self.decoder = MessageDecoder(
            names,
            topics=sensor.topics,
            tally=ProblemTally(no_log, *messages.KINDS),
            include=sensor.include,
            exclude=sensor.exclude,
            states=sensor.states,
            steady=self._steady,
        )
        self.grid = Grid(
            len(names),
            period_s=sensor.period_s,
            max_age_s=sensor.held_s,
            lateness_s=sensor.lateness_s,
            missing=sensor.missing,
        )
        client, root = config.client, config.aggregator
        rng = np.random.default_rng
        self.client = ClientNode(
            client.settings, client.built_schema, client.summaries, rng((seed, 1))
        )
        self.root = AggregatorNode(root.settings, root.plans, rng((seed, 2)))
        self._nodes: dict[str, Any] = {config.node: self.client, config.root: self.root}
        self._disks: dict[str, dict[Any, Any]] = {name: {} for name in self._nodes}
        self._node = config.node
        self.alarms: dict[int, Alarm] = {}
        self.scored: list[Scored] = []
        self.rows = 0
        self._run(*((name, Start({})) for name in self._nodes))

    def hear(self, heard: Iterable[Message], until: float | None = None) -> None:
        """Take messages, in the order of time."""
        for message in heard:
            while message.time > self._due:
                self._read()
            self.now = message.time
            for reading in self.decoder.readings(
                message.topic, message.payload, retained=message.retained
            ):
                at = message.time if reading.time is None else reading.time
                self.grid.put(reading.channel, at, reading.value)
        while until is not None and until >= self._due:
            self._read()

    def _steady(self) -> float:
        return self.now

    def _read(self) -> None:
        self.now = self._due
        self._due += self._step_s
        rows = self.grid.rows(self.now)
        self.rows += len(rows)
        if len(rows):
            self._run((self._node, Reading(rows, self.grid.held)))
        for name, node in self._nodes.items():
            if node.wakes_at <= self.now:
                self._run((name, Tick()))

    def _run(self, *events: tuple[str, Event]) -> None:
        todo = deque(events)
        now = Now(self.now, BEGAN + self.now)
        while todo:
            name, event = todo.popleft()
            for effect in self._nodes[name].step(event, now):
                match effect:
                    case Keep():
                        disk = {} if effect.new_store else self._disks[name]
                        disk |= effect.records
                        self._disks[name] = {k: v for k, v in disk.items() if v is not None}
                    case Send():
                        todo.append((effect.to, Received(effect.message)))
                    case Publish():
                        todo.append((self._node, Received(effect.message)))
                    case Alarmed():
                        self.alarms |= {alarm.number: alarm for alarm in effect.alarms}
                    case _:
                        pass

"""VirtualBox: `submerge up` on messages of a broker, in virtual time and in one thread.

Messages go through the decoder and the grid that ship, rows through a real client and its root,
with the settings of `BoxConfig`. What nodes keep stays in memory, and nothing waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.machine import (
    Alarmed,
    Event,
    Flush,
    Keep,
    Note,
    Now,
    Publish,
    Reading,
    Received,
    Records,
    Scored,
    Send,
    Start,
    Tick,
)
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.sensors import MqttSensor
from submerge_client.sensors.gather import Gathered
from submerge_client.sensors.grid import Grid
from submerge_client.sensors.mqtt import messages
from submerge_client.sensors.mqtt.descriptions import is_description
from submerge_client.sensors.mqtt.messages import MessageDecoder
from submerge_client.sensors.mqtt.readings import Comings
from submerge_client.sensors.tally import ProblemTally, no_log
from submerge_operate.up.config import BoxConfig
from support.zigbee import BASE, DEVICES, Message

BEGAN = 1.75e9
"""The wall time at which virtual time begins."""

WORDS = ("state", "system_mode", "running_state", "contact", "occupancy")
"""Fields that are no numbers."""

HOUSEKEEPING = ("battery", "linkquality", "energy")
"""Fields that no cause of the household moves; the voltage of a battery is one as well."""


def channels(*, everything: bool = False, without: Sequence[str] = ()) -> list[str]:
    """Return the channels of the household: what is measured, or every number.

    without : devices to leave out
    """
    return [
        f"{device.name}/{field}"
        for device in DEVICES
        for field, unit in device.fields
        if device.name not in without and field not in WORDS
        if everything or (field not in HOUSEKEEPING and unit != "mV")
    ]


def box_config(names: Sequence[str]) -> BoxConfig:
    """Return the configuration of a box with these channels, and defaults for the rest."""
    units = {f"{each.name}/{field}": unit for each in DEVICES for field, unit in each.fields}
    sensor = MqttSensor(url="mqtt://127.0.0.1", insecure=True, topics=(f"{BASE}/+",))
    return BoxConfig(
        node="box",
        sensor=sensor,
        schema=SchemaConfig(
            channels=tuple(ChannelConfig(name=each, unit=units[each] or "") for each in names),
            scaling="units",
        ),
    )


def named(alarm: Alarm) -> str:
    """Return the channel that an alarm named first, or ""."""
    return next((channel for channel, _ in alarm.first or alarm.top), "")


class VirtualSensor:
    """The MQTT sensor of a configuration, without a broker.

    Attributes
    ----------
    now : float
        Seconds on the virtual clock.
    remarks : list of (time, Note)
        What it says of devices that come and go.
    retained : dict of str to Message
        Descriptions, which a broker says again to who comes later.
    """

    def __init__(self, config: BoxConfig) -> None:
        sensor = config.sensor
        assert isinstance(sensor, MqttSensor)
        names = [channel.name for channel in config.schema.sensed]
        self.now, self.period_s = 0.0, sensor.period_s
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
        self.retained = dict[str, Message]()
        self._comings, self.remarks = Comings(names), list[tuple[float, Note]]()
        self._remark_at = 0.0

    def hear(self, message: Message) -> None:
        """Take a message."""
        self.now = message.time
        if is_description(message.topic):
            self.retained[message.topic] = message
            self.decoder.describe(message.topic, message.payload)
            return
        for reading in self.decoder.readings(
            message.topic, message.payload, retained=message.retained
        ):
            at = message.time if reading.time is None else reading.time
            self.grid.put(reading.channel, at, reading.value)

    def rows(self, now: float) -> Gathered:
        """Return the rows that are due."""
        self.now = now
        rows = self.grid.rows(now)
        if now >= self._remark_at:
            self._remark_at = now + 60.0
            heard = self.decoder.heard.fields
            remarks = self._comings.remarks(heard, self.grid.absent, now)
            self.remarks += [(now, remark) for remark in remarks]
        return Gathered(rows, self.grid.held)

    def _steady(self) -> float:
        return self.now


class VirtualBox:
    """One machine.

    Parameters
    ----------
    config : BoxConfig
        With an `mqtt` sensor.
    seed : int
    step_s : float
        Rows of so much time are read at once.
    before : VirtualBox, optional
        The same machine with fewer channels, which has ended: its records and its time go on.

    Attributes
    ----------
    rows, scored : int
        That were read, those before as well; that were scored.
    alarms : dict of int to Alarm
        All that were ever raised, by number.
    """

    def __init__(
        self,
        config: BoxConfig,
        *,
        seed: int = 0,
        step_s: float = 60.0,
        before: VirtualBox | None = None,
    ) -> None:
        self.sensor = VirtualSensor(config)
        now = 0.0 if before is None else before._due - step_s
        self._step_s, self._due = step_s, now + step_s
        client, root, rng = config.client, config.aggregator, np.random.default_rng
        self.client = ClientNode(
            client.settings, client.built_schema, client.summaries, rng((seed, 1))
        )
        self.root = AggregatorNode(root.settings, root.plans, rng((seed, 2)))
        self._name = config.node
        self._nodes: dict[str, Any] = {config.node: self.client, config.root: self.root}
        self.alarms: dict[int, Alarm] = {}
        self.rows, self.scored = 0 if before is None else before.rows, 0
        for message in () if before is None else before.sensor.retained.values():
            self.sensor.hear(message)
        self._kept: dict[str, Records] = {name: {} for name in self._nodes}
        if before is not None:
            before._run(now, (config.node, Flush()), (config.node, Tick()))
            self.alarms, self._kept = before.alarms, before._kept
        self._run(now, *((name, Start(dict(self._kept[name]))) for name in self._nodes))

    def hear(self, heard: Iterable[Message], until: float) -> None:
        """Take messages, in the order of time, and all rows until a time."""
        for message in heard:
            while message.time > self._due:
                self._read()
            self.sensor.hear(message)
        while until >= self._due:
            self._read()

    def raised(self, since: float = 0.0) -> list[Alarm]:
        """Return the alarms by scores since a time that are more than provisional, oldest first."""
        promised = (a for a in self.alarms.values() if not a.provisional and a.cause != "silent")
        return sorted((a for a in promised if a.began >= BEGAN + since), key=lambda a: a.began)

    def _read(self) -> None:
        now = self._due
        self._due += self._step_s
        rows, held = self.sensor.rows(now)
        self.rows += len(rows)
        if len(rows):
            self._run(now, (self._name, Reading(rows, held)))
        awake = [name for name, node in self._nodes.items() if node.wakes_at <= now]
        self._run(now, *((name, Tick()) for name in awake))

    def _run(self, now: float, *events: tuple[str, Event]) -> None:
        """Let nodes take events, and perform their effects."""
        todo = deque(events)
        while todo:
            name, event = todo.popleft()
            for effect in self._nodes[name].step(event, Now(now, BEGAN + now)):
                match effect:
                    case Keep():
                        kept = {} if effect.new_store else self._kept[name]
                        kept = {**kept, **effect.records}
                        self._kept[name] = {k: v for k, v in kept.items() if v is not None}
                    case Send():
                        todo.append((effect.to, Received(effect.message)))
                    case Publish():
                        todo.append((self._name, Received(effect.message)))
                    case Scored():
                        self.scored += len(effect.block)
                    case Alarmed():
                        self.alarms |= {alarm.number: alarm for alarm in effect.alarms}
                    case _:
                        pass

"""The demo's fleet as files: its nodes, their connections, a configuration each. The files are as a
person would write them: `submerge aggregator --config root.toml` starts the same root by hand.
Intervals are short: two weeks pass in minutes.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from submerge import Schema, UsageError
from submerge.protocol.alarm_status import MOST_ALARMS, REMEMBERED
from submerge_client.config.links import address_of
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sizes import ALARM, MQTT_LIMIT, Linear, size_of_model, size_of_report
from submerge_client.config.tomlfile import quoted, schema_lines
from submerge_lab.plants.room import SNAPSHOT_S

ROOT, GROUP = "root", "room"

CHILDREN = 4
"""Clients of one aggregator."""

LOOPBACK = "127.0.0.1"

FIRST_ROWS = 128
"""Rows in the first model, about: each client reports once it has its part of them."""

REPORT_EVERY_S = 1.0
"""Of clients, as a rule. Aggregators report a little faster, so that little waits there."""

AT_MOST = "1 false per week"
"""The alarm limit of each client."""

ADVANCED = "[advanced]\npatience_s = 1.0\ncap_s = 2.0\n"

Role = Literal["client", "aggregator", "root", "broker"]


@dataclass(frozen=True, slots=True)
class SiteMember:
    """A node of the fleet: its name, its role, and its parent's name."""

    name: str
    role: Role
    parent: str | None


class Wire(Protocol):
    """How nodes are connected, as settings."""

    @property
    def name(self) -> str:
        """Its name in reports."""

    def listen(self, node: str) -> str:
        """Return the section that lets children connect to a node."""

    def to(self, parent: str) -> str:
        """Return the settings of the connection to a parent."""


@dataclass(frozen=True, slots=True)
class GrpcWire:
    """gRPC on loopback, a port for each aggregator."""

    ports: Mapping[str, int]

    @property
    def name(self) -> str:
        """Its name in reports."""
        return "gRPC on loopback"

    def listen(self, node: str) -> str:
        """Return the section that lets children connect to a node."""
        return f'[listen.grpc]\naddress = "{LOOPBACK}:{self.ports[node]}"\ninsecure = true\n'

    def to(self, parent: str) -> str:
        """Return the settings of the connection to a parent."""
        return f'url = "grpc://{LOOPBACK}:{self.ports[parent]}"\ninsecure = true\n'


@dataclass(frozen=True, slots=True)
class MqttWire:
    """One MQTT broker for all; `own`: the demo starts this broker."""

    host: str
    port: int
    fleet: str
    own: bool

    @property
    def name(self) -> str:
        """Its name in reports."""
        broker = "aMQTT on loopback" if self.own else f"the broker at {self.host}:{self.port}"
        return f"MQTT, {broker}"

    def listen(self, node: str) -> str:
        """Return the section that lets children connect to a node."""
        return f"[listen.mqtt]\n{self.to(node)}"

    def to(self, parent: str) -> str:
        """Return the settings of the connection to a parent."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        url = json.dumps(f"mqtt://{host}:{self.port}")
        return f"url = {url}\ninsecure = true\nfleet = {json.dumps(self.fleet)}\n"


def members(clients: int) -> tuple[SiteMember, ...]:
    """Return the whole fleet, root first: four clients to an aggregator."""
    aggregators = [f"aggregator-{i + 1}" for i in range(-(-clients // CHILDREN))]
    return (
        SiteMember(ROOT, "root", None),
        *(SiteMember(name, "aggregator", ROOT) for name in aggregators),
        *(
            SiteMember(f"client-{i + 1}", "client", aggregators[i // CHILDREN])
            for i in range(clients)
        ),
    )


def free_ports(nodes: Iterable[str]) -> dict[str, int]:
    """Return a port for each node that was free a moment ago."""
    ports = {}
    with ExitStack() as stack:  # hold all ports until each node has its own
        for node in nodes:
            held = stack.enter_context(socket.socket())
            held.bind((LOOPBACK, 0))
            ports[node] = held.getsockname()[1]
    return ports


@dataclass(frozen=True, slots=True)
class Site:
    """The fleet in a folder.

    folder : Absolute: a node may be started in another folder.
    row_s : Seconds of the room's time between two rows of a client.
    settle_s : Seconds of the room's time that a client watches before it uses alarm limits.
    page : Where people look at the root's page: clients show their readings then, and score lines
        blame few channels. Empty: nowhere.
    """

    folder: Path
    wire: Wire
    schema: Schema
    rank: int
    oversample: int
    row_s: float = SNAPSHOT_S
    settle_s: float = 86400.0
    report_every_s: float = REPORT_EVERY_S
    page: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The channels."""
        return self.schema.names

    def config(self, member: SiteMember) -> Path:
        """Return where a node's configuration is."""
        return self.folder / f"{member.name}.toml"

    def store(self, member: SiteMember) -> Path:
        """Return where an aggregator has its store, or a client its checkpoint."""
        return self.folder / f"{member.name}.{'state' if member.role == 'client' else 'db'}"

    def write(self, fleet: Iterable[SiteMember]) -> None:
        """Write the configuration of each node."""
        for member in fleet:
            self.config(member).write_text(self.text(member), encoding="utf-8")

    def text(self, member: SiteMember) -> str:
        """Return a node's configuration."""
        return self._client(member) if member.role == "client" else self._aggregator(member)

    def _client(self, member: SiteMember) -> str:
        blamed = 3 if self.page else len(self.names)
        shares = "share_values = true\n" if self.page else ""
        return (
            f"node = {json.dumps(member.name)}\n"
            f"group = {json.dumps(GROUP)}\n"
            f"parent = {json.dumps(member.parent)}\n"
            f"state = {quoted(str(self.store(member)))}\n"
            'gaps = "fill"\n'
            f"{shares}"
            'log = "debug"\n\n'
            f"[uplink]\n{self.wire.to(str(member.parent))}\n"
            f"[summary]\n{self._summary}\n"
            f"[timing]\nreport_every_s = {self.report_every_s}\ncheckpoint_every_s = 1.0\n"
            # The feed waits for the score of each row.
            f"gather_s = 0.0\n{ADVANCED}\n"
            '[sensor]\nkind = "ndjson"\n\n'
            f'[scores]\nto = "stdout"\ncontributions = {blamed}\n\n'
            f"{self._alarms}\n"
            f"{self._schema_at('schema')}"
        )

    @property
    def _alarms(self) -> str:
        return (
            f'[alarms]\nndjson = "-"\nat_most = {json.dumps(AT_MOST)}\n'
            f'settle = "{self.settle_s:.0f}s"\nperiod_s = {self.row_s!r}\n'
        )

    def _aggregator(self, member: SiteMember) -> str:
        parent = schema = page = ""
        onward = round(0.75 * self.report_every_s, 3)
        if member.parent is None:
            # Other aggregators get the schema from the root.
            page = f'[page]\naddress = "{self.page}"\n\n' if self.page else ""
            schema = f"\n{self._schema_at(f'groups.{GROUP}.schema')}"
        else:
            parent = (
                f"[parent]\nname = {json.dumps(member.parent)}\n{self.wire.to(member.parent)}\n"
            )
        return (
            f"node = {json.dumps(member.name)}\n"
            f"store = {quoted(str(self.store(member)))}\n\n"
            f"{self.wire.listen(member.name)}\n"
            f"{parent}"
            '[status]\naddress = ""\n\n'
            f"{page}"
            f"[timing]\nreport_every_s = {onward}\nmodel_every_s = {onward}\n{ADVANCED}\n"
            f"[groups.{GROUP}.summary]\n{self._summary}"
            f"{schema}"
        )

    @property
    def _summary(self) -> str:
        return f"rank = {self.rank}\noversample = {self.oversample}\n"

    def _schema_at(self, section: str) -> str:
        schema = self.schema
        text = f"[{section}]\n{schema_lines(SchemaConfig.of(schema))}"
        if schema.linear:
            return text
        spec = schema.features.spec()
        gamma = float.fromhex(str(spec["gamma"]))
        text += f'\n[{section}.features]\nkernel = "{spec["kernel"]}"\ngamma = {gamma!r}\n'
        return text + f"features = {spec['features']}\n"


REACH_S = 3.0
"""Seconds to connect to a given broker."""

QUIET_S = 0.5
"""Seconds without another retained message after which there is none."""

Wired = Callable[[Sequence[SiteMember]], Wire]


@contextmanager
def open_wire(broker: str | None, *, mqtt: bool) -> Iterator[Wired]:
    """Yield a function that connects the fleet's members."""
    if not mqtt:
        yield _over_grpc
        return
    if broker is None:
        own = MqttWire(LOOPBACK, free_ports(["broker"])["broker"], "demo", own=True)
        yield lambda _: own
        return
    host, port = _check_broker(broker)
    # Another demo, or a real fleet, may use the same broker.
    wire = MqttWire(host, port, f"demo-{os.getpid()}-{time.time_ns() % 10**6}", own=False)
    try:
        yield lambda _: wire
    finally:
        clear(wire)


def check_sizes(site: Site) -> None:
    """Refuse a fleet whose messages are larger than its connection takes."""
    if not isinstance(site.wire, MqttWire):
        return
    schema, kept = site.schema, site.rank + site.oversample
    linear = Linear(schema.width, min(kept, schema.width)) if not schema.linear else None
    columns = min(kept, schema.dim)
    # Alarms of an aggregator's clients go up, nine of each; a model goes down, with its schema.
    up = size_of_report(schema.dim, columns, merged=True, linear=linear)
    up -= (MOST_ALARMS - CHILDREN * (1 + REMEMBERED)) * ALARM
    down = size_of_model(schema.dim, columns, len(schema.canonical), linear=linear)
    size = max(up, down)
    if size > MQTT_LIMIT:
        raise UsageError(
            f"expected messages of at most {MQTT_LIMIT} bytes over MQTT, got up to {size}:"
            " lower --features or --rank, or leave --mqtt out"
        )


def clear(wire: MqttWire) -> None:
    """Delete a fleet's retained messages from a broker."""
    import paho.mqtt.client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    last = time.monotonic()

    def wipe(client: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        nonlocal last
        if message.retain and message.payload:
            last = time.monotonic()
            client.publish(message.topic, b"", qos=1, retain=True)

    def subscribe(client: mqtt.Client, *_: object) -> None:
        client.subscribe(f"submerge/v1/{wire.fleet}/#", qos=1)

    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.on_message, client.on_connect = wipe, subscribe
    try:
        client.connect(wire.host, wire.port)
    except OSError:
        return  # the broker is gone
    while time.monotonic() - last < QUIET_S:
        client.loop(0.05)
    client.disconnect()


def _over_grpc(members: Sequence[SiteMember]) -> Wire:
    return GrpcWire(free_ports(member.name for member in members if member.role != "client"))


def _check_broker(broker: str) -> tuple[str, int]:
    """Return host and port of a broker, which has to answer."""
    address = address_of(f"mqtt://{broker}", ("mqtt",))
    try:
        socket.create_connection((address.host, address.port), REACH_S).close()
    except OSError as error:
        raise UsageError(
            f"expected an MQTT broker at {broker}, got {error}: start one, or use --mqtt alone"
        ) from error
    return address.host, address.port

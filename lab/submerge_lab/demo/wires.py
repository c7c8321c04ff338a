"""How the demo's nodes are connected, and the clean-up of a broker after them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from submerge import UsageError
from submerge.protocol.alarm_status import MOST_ALARMS, REMEMBERED
from submerge_client.config.links import address_of
from submerge_client.config.sizes import ALARM, MQTT_LIMIT, Linear, size_of_model, size_of_report
from submerge_lab.demo.site import (
    CHILDREN,
    LOOPBACK,
    GrpcWire,
    MqttWire,
    Site,
    SiteMember,
    Wire,
    free_ports,
)

REACH_S = 3.0
"""Seconds to connect to a given broker."""

QUIET_S = 0.5
"""Seconds without another retained message after which there is none."""

Wired = Callable[[Sequence[SiteMember]], Wire]


@contextmanager
def open_wire(broker: str | None, *, mqtt: bool) -> Iterator[Wired]:
    """Yield a function that connects the fleet's members.

    broker : host:port of a running MQTT broker; None with `mqtt`: the demo starts one.
    mqtt : False: gRPC.

    Raises
    ------
    UsageError
        If that broker cannot be reached.
    """
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
    """Refuse a fleet whose messages are larger than its connection takes.

    Raises
    ------
    UsageError
        With the sizes, and the demo's options to change.
    """
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

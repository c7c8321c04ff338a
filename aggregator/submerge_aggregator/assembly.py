"""serve(): an aggregator from its configuration, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import numpy as np

from submerge.aggregator_node import AggregatorNode
from submerge.steps import Now
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.desk import Desk
from submerge_aggregator.downlink import Downlink
from submerge_aggregator.server import Server
from submerge_aggregator.store import Store
from submerge_client import clock
from submerge_client.logs import remark
from submerge_client.sizes import GRPC_LIMIT, MQTT_LIMIT
from submerge_client.uplink.chosen import chosen, password_of, tls_of
from submerge_client.uplink.tls import Tls


def serve(config: AggregatorConfig) -> None:
    """Run an aggregator until SIGTERM or SIGINT.

    Raises
    ------
    UsageError
        If a place to listen is taken, or the store is not what it was.
    """
    asyncio.run(_served(config))


def server_of(config: AggregatorConfig, now: Callable[[], Now] = clock.now) -> Server:
    """Return an aggregator that has not started yet."""
    settings, plans = config.settings, config.plans

    def made() -> AggregatorNode:
        # Each machine draws names and waits that no other does.
        return AggregatorNode(settings, plans, np.random.default_rng())

    parent, uplink = config.parent, None
    if parent is not None:
        uplink = chosen(parent, parent=parent.name, node=config.node, groups=tuple(plans))
    coarse = parent is not None and parent.columns == "i8"
    desk = Desk(made, Store(config.store), now, coarse=coarse)
    return Server(desk, downlinks=_downlinks(config), uplink=uplink, clock=now)


async def _served(config: AggregatorConfig) -> None:
    from submerge_aggregator.doors import Doors  # with all that HTTP needs

    # The store's lock comes first: it keeps a second process off the operator's socket.
    server = server_of(config)
    doors = Doors(server, config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    await doors.start()
    try:
        await server.run()
    finally:
        await doors.stop()


def _downlinks(config: AggregatorConfig) -> list[Downlink]:
    """The ways down that are configured; what another kind needs is not loaded."""
    downlinks: list[Downlink] = []
    grpc, mqtt = config.listen.grpc, config.listen.mqtt
    if grpc is not None:
        from submerge_aggregator.downlink.over_grpc import OverGrpc

        tls = None if grpc.cert is None else Tls(grpc.ca, grpc.cert, grpc.key)
        downlinks.append(OverGrpc(grpc.address, limit=GRPC_LIMIT, tls=tls))
    if mqtt is not None:
        from submerge_aggregator.downlink.over_mqtt import OverMqtt

        downlinks.append(
            OverMqtt(
                mqtt.host,
                mqtt.port,
                fleet=mqtt.fleet,
                parent=config.node,
                limit=MQTT_LIMIT,
                username=mqtt.username,
                password=password_of(mqtt),
                tls=tls_of(mqtt),
                note=remark,
            )
        )
    return downlinks

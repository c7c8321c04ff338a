"""run(): a client and its root in one process, until a signal ends it, or its sensor does.

The client runs on a thread of its own, the root on this one's event loop. They talk as over a
network, in memory. The client ends first: its last report is acknowledged before the root stops.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Now
from submerge_aggregator.assembly import server_of
from submerge_aggregator.http.endpoints import Endpoints
from submerge_aggregator.server import Server
from submerge_client.agent import Agent
from submerge_client.assembly import build_agent
from submerge_fleet.up.config import BoxConfig
from submerge_fleet.up.said import Line, line_of
from submerge_proto.implementation import check_compiled

Ask = Callable[[Callable[[AggregatorNode, Now], Any]], Awaitable[Any]]
"""Asks the root's machine."""

EVERY_S = 10.0
"""Between two lines on how it is."""

FIRST_S = 5.0
"""Until the first of them."""


def run(config: BoxConfig, tell: Callable[[str], None]) -> int:
    """Run until SIGTERM or SIGINT, or until the sensor ends; return the exit status.

    tell : takes a line a minute

    Raises
    ------
    UsageError
        If a file is taken or damaged, or an extra is missing.
    """
    check_compiled()
    config.folder.mkdir(parents=True, exist_ok=True)
    return asyncio.run(_run(config, tell))


async def _run(config: BoxConfig, tell: Callable[[str], None]) -> int:
    # The store's lock comes first: it keeps a second process away from both parts.
    server = server_of(config.aggregator, inside=True)
    endpoints, agent = Endpoints(server, config.aggregator), build_agent(config.client)
    await endpoints.start()
    serving = asyncio.create_task(server.run())
    try:
        asked = asyncio.create_task(server.ask(lambda *_: None))
        await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
        return 1 if serving.done() else await _read(config, agent, server, tell)
    finally:
        server.stop()
        await serving
        await endpoints.stop()


async def _read(
    config: BoxConfig, agent: Agent, server: Server, tell: Callable[[str], None]
) -> int:
    """Let the client read until it ends; return its exit status."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.stop)
    reading = _ClientThread(agent, partial(loop.call_soon_threadsafe, over.set))
    telling = asyncio.create_task(_tell(config, agent, server.ask, tell))
    await over.wait()
    telling.cancel()
    line = await server.ask(lambda node, now: line_of(node, now, config.group, config.node))
    tell(line.text(agent.rows))
    return reading.status


class _ClientThread(threading.Thread):
    """The thread of the client.

    status : the exit status of its agent; 1 if it failed
    """

    def __init__(self, agent: Agent, over: Callable[[], object]) -> None:
        super().__init__(name="client", daemon=True)
        self._agent, self._over = agent, over
        self.status = 1
        self.start()

    def run(self) -> None:
        try:
            self.status = self._agent.run()
        finally:
            self._over()


async def _tell(config: BoxConfig, agent: Agent, ask: Ask, tell: Callable[[str], None]) -> None:
    """Say how it is, again and again."""
    wait = FIRST_S
    while True:
        await asyncio.sleep(wait)
        wait = EVERY_S
        line: Line = await ask(lambda node, now: line_of(node, now, config.group, config.node))
        tell(line.text(agent.rows))

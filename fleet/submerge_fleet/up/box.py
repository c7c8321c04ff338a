"""run(): a client and its root in one process, until a signal ends it, or its sensor does.

The client runs on a thread of its own, the root on this one's event loop. They talk as over a
network, in memory. The client ends first: its last report is acknowledged before the root stops.

Nothing outlives a run: files are closed, threads have ended, and signals are as before. The same
process may run again, with another configuration.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from submerge_aggregator.assembly import server_of
from submerge_aggregator.http.endpoints import Endpoints
from submerge_aggregator.limits import allocator
from submerge_client.agent import Agent
from submerge_client.assembly import build_agent
from submerge_client.memory.lazy_import import UNUSED, deferred
from submerge_fleet.up.box_state import has_started
from submerge_fleet.up.config import BoxConfig
from submerge_fleet.up.folder import make_folder
from submerge_fleet.up.telling import Telling
from submerge_proto.implementation import check_compiled

LATE = UNUSED - {"asyncio"}
"""Modules that a machine on its own has no use for; the root's event loop is asyncio's."""


def run(config: BoxConfig, tell: Callable[[str], None], *, as_json: bool = False) -> int:
    """Run until SIGTERM or SIGINT, or until the sensor ends; return the exit status.

    tell : takes a line a minute
    as_json : each line is an object of JSON

    Raises
    ------
    UsageError
        If a file is taken or damaged, or an extra is missing.
    """
    check_compiled()
    make_folder(config.folder)
    return asyncio.run(_run(config, tell, as_json=as_json))


async def _run(config: BoxConfig, tell: Callable[[str], None], *, as_json: bool) -> int:
    # The store's lock comes first: it keeps a second process away from both parts.
    bereft = config.client.state.exists() and not config.aggregator.store.exists()
    with deferred(LATE):
        server = server_of(config.aggregator, inside=True)
    try:
        with deferred(LATE):
            agent = build_agent(config.client)
        endpoints = Endpoints(server, config.aggregator)
        await endpoints.start()
    except BaseException:
        server.worker.close()
        raise
    async with _trimming():
        serving = asyncio.create_task(server.run())
        try:
            asked = asyncio.create_task(server.ask(lambda *_: None))
            await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                return 1  # with its error, below
            telling = Telling(*(config, agent, server.ask, tell), as_json=as_json, bereft=bereft)
            return await _read(agent, serving, telling)
        finally:
            server.stop()
            await serving
            await endpoints.stop()


async def _read(agent: Agent, serving: asyncio.Task[None], telling: Telling) -> int:
    """Let the client read until it ends; return its exit status."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, agent.stop)
    # Without its root the client would read on, and learn what no root gets.
    serving.add_done_callback(lambda _: agent.stop())
    reading = _ClientThread(agent, partial(loop.call_soon_threadsafe, over.set))
    lines = asyncio.create_task(telling.run())
    try:
        await over.wait()
    finally:
        lines.cancel()
        reading.join()
        for number in signals:
            loop.remove_signal_handler(number)
    if reading.error is not None:
        raise reading.error
    if not serving.done() and has_started(agent.node):
        await telling.write("end")
    return reading.status


@asynccontextmanager
async def _trimming() -> AsyncIterator[None]:
    """Return free pages to the kernel now and then."""
    trimming = asyncio.create_task(allocator.keep_trimmed())
    try:
        yield
    finally:
        trimming.cancel()


class _ClientThread(threading.Thread):
    """The thread of the client.

    status : the exit status of its agent
    error : what it failed with
    """

    def __init__(self, agent: Agent, over: Callable[[], object]) -> None:
        super().__init__(name="client", daemon=True)
        self._agent, self._over = agent, over
        self.status = 1
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.status = self._agent.run()
        except BaseException as error:
            self.error = error
        finally:
            self._over()

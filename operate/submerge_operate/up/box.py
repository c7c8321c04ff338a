"""run(): a client and its root in one process, until a signal ends it, or its sensor does.

The client runs on a thread of its own, the root on this one's event loop. The client ends first:
its last report is acknowledged before the root stops. Nothing outlives a run: a machine that gets
channels begins again in the same process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial

from submerge_aggregator import limits
from submerge_aggregator.assembly import server_of
from submerge_aggregator.http.endpoints import Endpoints
from submerge_client.agent import Agent
from submerge_client.assembly import build_agent, check_outside
from submerge_client.command import signal_actions
from submerge_client.memory import UNUSED, deferred
from submerge_operate.up import newcomers
from submerge_operate.up.config import BoxConfig
from submerge_operate.up.folder import check_addresses, check_name, new_folder
from submerge_operate.up.line import Telling, has_started, page_line
from submerge_operate.up.newcomers import EVERY_S, Looking, Pace, newcomers_of
from submerge_proto.implementation import check_compiled

LATE = UNUSED - {"asyncio"}
"""Modules that a machine on its own has no use for; the root's event loop is asyncio's."""


def run(config: BoxConfig, tell: Callable[[str], None], *, as_json: bool = False) -> int:
    """Run until a signal ends it, or the sensor ends; return the exit status."""
    # `config` is as it was written; accepted channels join it here.
    check_compiled()
    with deferred(LATE):
        # A refusal leaves nothing behind: what can be checked is checked before the store is made.
        check_outside(config.client)
        check_addresses(config.aggregator)
    pace = Pace()
    with new_folder(config.folder):
        check_name(config.client.state, config.node)
        while True:
            accepted = newcomers.read(config.folder / newcomers.ACCEPTED)
            now = config.with_channels(each.channel for each in accepted)
            status = asyncio.run(_run(now, tell, pace, as_json=as_json))
            if status is not None:
                return status


async def _run(
    config: BoxConfig, tell: Callable[[str], None], pace: Pace, *, as_json: bool
) -> int | None:
    """Run once; return the exit status, or None to begin again with more channels."""
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
    trimming = asyncio.create_task(limits.keep_trimmed())
    serving = asyncio.create_task(server.run())
    try:
        asked = asyncio.create_task(server.ask(lambda *_: None))
        await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            return 1  # with its error, below
        if endpoints.page is not None:
            tell(page_line(endpoints.page, time.time(), as_json=as_json))
        telling = Telling(*(config, agent, server.ask, tell), as_json=as_json, bereft=bereft)
        return await _read(config, agent, serving, telling, pace)
    finally:
        trimming.cancel()
        server.stop()
        await serving
        await endpoints.stop()


async def _read(
    config: BoxConfig, agent: Agent, serving: asyncio.Task[None], telling: Telling, pace: Pace
) -> int | None:
    """Let the client read until it ends; return its exit status, or None to begin again."""
    loop, over, ends = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def end() -> None:
        ends.set()
        agent.stop()

    signals = signal_actions(end)
    for number, act in signals.items():
        loop.add_signal_handler(number, act)
    # Without its root the client would read on, and learn what no root gets.
    serving.add_done_callback(lambda _: agent.stop())
    reading = _ClientThread(agent, partial(loop.call_soon_threadsafe, over.set))
    looking = Looking(
        config.folder,
        lambda: newcomers_of(agent.sensor),
        discover=config.discover,
        now=loop.time(),
        pace=pace,
    )
    lines = asyncio.create_task(telling.run())
    looks = asyncio.create_task(_look(looking, agent))
    try:
        await over.wait()
    finally:
        lines.cancel()
        looks.cancel()
        reading.join()
        for number in signals:
            loop.remove_signal_handler(number)
    if reading.error is not None:
        raise reading.error
    # A signal may come while the client ends in order to begin again: then it does not.
    if looking.grows and not reading.status and not ends.is_set():
        return None
    if not serving.done() and has_started(agent.node):
        await telling.write("end")
    return reading.status


async def _look(looking: Looking, agent: Agent) -> None:
    while not looking.grows:
        await asyncio.sleep(EVERY_S)
        looking.look(asyncio.get_running_loop().time())
    agent.stop()


class _ClientThread(threading.Thread):
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

"""MemoryJobs: real servers and agents in one process, over memory, for tests of jobs.

The tree is {"root": {"hall": {"a": rows, "b": rows}, "c": rows}}: an aggregator is a mapping.
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock
from uuid import uuid4

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.local_run import run_here
from submerge.jobs.machine import JobProgress, JobTimes
from submerge.protocol.machine import Now
from submerge_aggregator.assembly import server_of
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.server import Server
from submerge_client.agent import Agent
from submerge_client.assembly import build_agent
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.tomlfile import decoded
from support.patience import PATIENCE_S, until
from support.programs import free_port

GROUP = "room"
CHANNELS = ["x", "y", "z"]
TIMES = JobTimes(0.2, 0.5)
FAST = {"report_every_s": 0.1}
SOON = {"patience_s": 0.3, "cap_s": 0.5}


class StayingSensor:
    """Hands over rows, and stays until the client ends."""

    counts: ClassVar[dict[str, int]] = {}

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows

    def read(self, hand: Any, stop: threading.Event) -> None:
        hand(self._rows)
        stop.wait()


class ListBoard:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def opened(self, job: Job, wall: float) -> None:
        self.heard.append(("opened", job))

    def progressed(self, progress: JobProgress, wall: float) -> None:
        self.heard.append(("progressed", progress))

    def ended(self, outcome: JobOutcome, wall: float) -> None:
        self.heard.append(("ended", outcome))


class MemoryJobs:
    """The fleet; `clients` has what their configurations say besides."""

    def __init__(
        self,
        folder: Path,
        tree: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,
        advanced: Mapping[str, Any] | None = None,
        **clients: Any,
    ) -> None:
        self._schema = {"channels": CHANNELS, "scaling": "none"} | dict(schema or {})
        self._advanced = dict(advanced or {})
        self._folder, self._id, self._more = folder, uuid4().hex[:8], clients
        self.board = ListBoard()
        self.servers: dict[str, Server] = {}
        self.agents: dict[str, Agent] = {}
        self.tree = tree
        self._loop = asyncio.new_event_loop()
        self._running: dict[str, Any] = {}
        self._threads = [threading.Thread(target=self._loop.run_forever, daemon=True)]
        self._threads[0].start()
        self._seat("root", tree["root"], None)
        rows = self._all(tree)
        until(lambda: self.readings() == rows, lambda: f"{rows} readings at the root")

    def name(self, node: str) -> str:
        """Return a node's name, which is no other test's."""
        return f"{node}-{self._id}"

    def _all(self, below: Any) -> int:
        return len(below) if not isinstance(below, Mapping) else sum(map(self._all, below.values()))

    def _seat(self, node: str, below: Any, parent: str | None) -> None:
        if isinstance(below, Mapping):
            self.serve(node, parent)
            for name, rows in below.items():
                self._seat(name, rows, node)
        else:
            self.begin(node, below, str(parent))

    def serve(self, node: str, parent: str | None = None) -> None:
        """Start an aggregator."""
        table: dict[str, Any] = {
            "node": self.name(node),
            "store": str(self._folder / f"{node}.db"),
            "groups": {GROUP: {"summary": {"rank": 2}}},
            # A configuration has a way for others, too.
            "listen": {"grpc": {"address": f"127.0.0.1:{free_port()}", "insecure": True}},
            "status": {"address": ""},
            "timing": FAST | {"model_every_s": 0.1},
            "advanced": SOON,
        }
        table["advanced"] = table["advanced"] | self._advanced
        if parent is None:
            table["groups"][GROUP]["schema"] = self._schema
        else:
            table["parent"] = {
                "name": self.name(parent),
                "url": f"memory://{self.name(parent)}",
            }

        async def start() -> Server:
            server = server_of(decoded(table, AggregatorConfig), inside=True)
            server.jobs._times = TIMES
            if parent is None:
                server.jobs.effects.board = self.board
            self._running[node] = asyncio.create_task(server.run())
            while not server.ready and not self._running[node].done():
                await asyncio.sleep(0.001)
            return server

        self.servers[node] = self.does(start())

    def ends(self, node: str) -> None:
        """Have an aggregator end."""

        async def end() -> None:
            self.servers[node].stop()
            self.servers[node].stop()  # without its parent
            await self._running[node]

        self.does(end())

    def begin(self, node: str, rows: np.ndarray, parent: str) -> None:
        """Start a client."""
        table = {
            "node": self.name(node),
            "group": GROUP,
            "parent": self.name(parent),
            "state": str(self._folder / f"{node}.state"),
            "uplink": {"url": f"memory://{self.name(parent)}"},
            "schema": self._schema,
            "sensor": {"kind": "ndjson"},
            "summary": {"rank": 2},
            "alarms": {"at_most": "off"},
            "timing": FAST,
            "privacy": {"rows": 1},
            "advanced": SOON,
            **self._more,
        }
        sensor = StayingSensor(rows)
        with mock.patch("submerge_client.assembly.open_sensor", return_value=sensor):
            agent = build_agent(decoded(table, ClientConfig), stdout=io.BytesIO())
        agent._linger_s = 0.0
        self.agents[node] = agent
        thread = threading.Thread(target=agent.run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def does(self, work: Any) -> Any:
        """Run something on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def call(self, what: Callable[..., Any], *arguments: Any) -> Any:
        """Call something on the loop."""

        async def called() -> Any:
            return what(*arguments)

        return self.does(called())

    def asked(self, question: Callable[[AggregatorNode, Now], Any], node: str = "root") -> Any:
        """Ask an aggregator's machine."""
        return self.does(self.servers[node].ask(question))

    def readings(self) -> int:
        """Return what the root counts."""

        def count(node: AggregatorNode, _: Now) -> int:
            ledger = node.ledger(GROUP)
            rows = () if ledger is None else ledger.rows.values()
            return sum(row.report.counts.learnt for row in rows)

        return int(self.asked(count))

    def job(self, kind: str = "kmeans", **fields: Any) -> Job:
        """Return a job for the group."""
        schema = self.asked(lambda node, _: node.ledger(GROUP).schema)  # type: ignore[union-attr]
        known = {"id": "job-1", "group": GROUP, "width": schema.width, "open_s": 20.0}
        known |= {"fingerprint": schema.fingerprint, "round_s": 20.0, "job_s": 200.0}
        settings = {"clusters": 2, "seed": 3} if kind == "kmeans" else {}
        return Job(kind=kind, **{"settings": settings, **known, **fields})

    def open(self, job: Job) -> None:
        """Open a job at the root."""
        self.does(self.servers["root"].jobs.open(job))

    def ended(self, job: str = "job-1") -> JobOutcome:
        """Wait for the end of a job."""

        def found() -> list[JobOutcome]:
            heard = list(self.board.heard)
            return [what for kind, what in heard if kind == "ended" and what.job.id == job]

        until(found, lambda: f"the end of {job}: {self.board.heard}")
        return found()[0]

    def here(self, job: Job, *without: str) -> Mapping[str, np.ndarray]:
        """Return the answer in one process, over all but some clients."""

        def parts(below: Mapping[str, Any]) -> dict[str, Any]:
            kept = {n: each for n, each in below.items() if n not in without}
            return {
                self.name(n): parts(each) if isinstance(each, Mapping) else each
                for n, each in kept.items()
            }

        return run_here(job.kind, job.settings, parts(self.tree["root"]))

    def close(self) -> None:
        """End all."""
        for agent in self.agents.values():
            agent.stop()
        for thread in self._threads[1:]:
            thread.join(PATIENCE_S)
        for node in reversed(list(self.servers)):
            if not self._running[node].done():
                self.ends(node)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads[0].join()
        self._loop.close()

"""A house: a root at work in this process, without a network, whose doors are knocked on.

    with House(tmp_path) as house:
        house.hears("c", rows)
        house.asks("GET", "/nodes").json

The desk, its store and its thread are the ones that ship; time passes when the test says so.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.pca.subspace import Subspace
from submerge.protocol.machine import Now, Tick
from submerge.protocol.messages import Answer, Counts, Incarnation, Join, Report, Stamp
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Schema
from submerge_aggregator.config import history_path
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.history.recorder import HistoryRecorder
from submerge_aggregator.http import admin as control
from submerge_aggregator.http import metrics
from submerge_aggregator.jobs.board import JobBoard, jobs_path
from submerge_aggregator.notify.notifier import AlarmNotifier
from submerge_aggregator.operators.access import OperatorAccess
from submerge_aggregator.operators.identify import at_socket
from submerge_aggregator.server import Server
from submerge_aggregator.storage import LastBackup
from submerge_aggregator.worker import CommitWorker
from submerge_proto.wire import codec
from support.faulty import FaultyStore
from support.nodes import EPOCH, GROUP, new_incarnation
from support.patience import PATIENCE_S

SCHEMA = Schema(tuple(Channel(f"mote-{i}", "°C") for i in range(6)))
RANK, OVERSAMPLE = 2, 2


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Time:
    """Both clocks, in a test's hands."""

    def __init__(self) -> None:
        self.steady = 100.0

    def __call__(self) -> Now:
        return Now(self.steady, EPOCH + self.steady)


class House:
    """One root; `parent` makes it an aggregator that nobody has answered yet.

    notifier : makes what has people told of alarms
    history_bytes : 0 for no history

    Attributes
    ----------
    server : Server
    time : Time
    store : Path
    disk : FaultyStore
        The store itself, which a test may have fail.
    seq : int
        Of the newest report.
    """

    def __init__(
        self,
        folder: Path,
        *,
        schema: Schema = SCHEMA,
        groups: tuple[str, ...] = (GROUP,),
        parent: str | None = None,
        robust: bool = False,
        notifier: Callable[[Time], AlarmNotifier] | None = None,
        history_bytes: int = 0,
    ) -> None:
        self.time, self.store = Time(), folder / "root.db"
        kept = history_path(self.store) if history_bytes else None
        self.history = HistoryRecorder(kept, history_bytes)
        self._notifier = None if notifier is None else notifier(self.time)
        summaries = Subspaces(RANK, oversample=OVERSAMPLE)
        plan = GroupPlan(summaries, None if parent else schema, robust=robust)
        plans = dict.fromkeys(groups, plan)
        settings = AggregatorSettings("root", parent)

        def made() -> AggregatorNode:
            return AggregatorNode(settings, plans, np.random.default_rng(0))

        self.disk = FaultyStore(self.store)
        self._worker = CommitWorker(made, self.disk, self.time)
        self.seq = 0

    def __enter__(self) -> House:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.does(self._begin())
        return self

    def __exit__(self, *_: object) -> None:
        self.does(self._finish())
        self.does(settled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def does(self, work: Any) -> Any:
        """Have the event loop do something, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def server_here(self) -> Server:
        """Return the server, not started, for the loop that runs here; in place of `with`."""
        return Server(
            self._worker,
            downlinks=(),
            uplink=None,
            clock=self.time,
            notifier=self._notifier,
            history=self.history,
            last_backup=LastBackup(self.store),
            board=JobBoard(jobs_path(self.store)),
        )

    def lets_go(self) -> None:
        """Close what `server_here` has left open."""
        self._worker.close()

    async def _begin(self) -> None:
        self.server = self.server_here()
        api = control.api(self.server)
        self.control = OperatorAccess(api, at_socket, self.server.order_log)
        self.status = metrics.app(self.server)
        self._run = asyncio.create_task(self.server.run())
        while not self.server.ready and not self._run.done():
            await asyncio.sleep(0.001)

    async def _finish(self) -> None:
        self.server.stop()
        await self._run

    def ends(self) -> None:
        """Have the aggregator end, and keep its doors."""
        self.does(self._finish())

    # -- children

    def hears(
        self,
        node: str,
        rows: np.ndarray,
        *,
        incarnation: Incarnation | None = None,
        **reported: Any,
    ) -> Answer:
        """Take in a client's report of rows; return the answer."""
        me = self.does(self.server.ask(lambda machine, _: machine.incarnation))
        self.seq += 1
        group, schema = reported.pop("group", GROUP), reported.pop("schema", SCHEMA)
        stamp = Stamp(
            node, group, new_incarnation(1) if incarnation is None else incarnation, self.seq
        )
        fields: dict[str, Any] = {
            "final": False,
            "pinned": me,
            "fence": b"",
            "fingerprint": schema.fingerprint,
            "summary": Subspace.of(rows, schema, rank=RANK + OVERSAMPLE),
            "moments": None,
            "counts": Counts(len(rows), 0, 0),
            "as_of": self.time().wall,
            "synced": True,
            "version": 0,
            "lifetime": len(rows),
        }
        return self.posts("report", Report(stamp, **fields | reported))

    def joins(self, node: str, fence: bytes = b"") -> Any:
        return self.posts("join", Join(Stamp(node, GROUP, new_incarnation(1), 0), fence, (), b""))

    def posts(self, kind: Any, message: Any) -> Any:
        """Hand a letter in; return the message that answers it."""
        data = message if isinstance(message, bytes) else codec.encode(message)
        answered: Future[Any] = Future()

        def answer(kind: Any, data: bytes) -> None:
            answered.set_result(codec.decode(kind, data))

        def refuse(why: str, _: object) -> None:
            answered.set_result(why)

        inbound = Inbound(kind, data, None, False, answer, refuse)
        self._loop.call_soon_threadsafe(self.server.take, inbound)
        return answered.result(PATIENCE_S)

    def learns(self, schema: Schema) -> None:
        """Go over to another schema, as if the fleet had settled it."""

        def settle(machine: AggregatorNode, _: Now) -> None:
            machine._groups[GROUP].learn_schema(schema.canonical, 0.0)

        self.does(self.server.ask(settle))

    def passes(self, seconds: float) -> None:
        """Let time pass, and the machine notice."""
        self.time.steady += seconds
        self.does(self.server.ask(lambda *_: None, Tick()))

    # -- those who look on

    def asks(self, method: str, path: str, body: bytes = b"") -> Response:
        """Knock on the operator's door."""
        return self.does(called(self.control, method, path, body))

    def watches(self, path: str, method: str = "GET", **headers: str) -> Response:
        """Look at the status pages."""
        return self.does(called(self.status, method, path, **headers))


async def settled() -> None:
    """Let everything else that an event loop has under way end: what is closed is closed then."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    # A connection is closed one turn after it was told to, one with TLS some turns later.
    for _ in range(5):
        await asyncio.sleep(0)


async def called(
    app: Callable[..., Any], method: str, path: str, body: bytes = b"", **headers: str
) -> Response:
    """Call an ASGI app as a server would."""
    where, _, query = path.partition("?")
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(where),
        "raw_path": where.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", b"here"), *((k.encode(), v.encode()) for k, v in headers.items())],
        "client": ("test", 1),
        "server": ("here", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    begin, *rest = sent
    return Response(
        begin["status"],
        {key.decode().lower(): value.decode() for key, value in begin["headers"]},
        b"".join(part.get("body", b"") for part in rest),
    )

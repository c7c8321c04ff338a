"""The server: too many messages of one sender are refused unread, and how it ends."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from submerge.protocol.machine import Flush
from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.batch import Asked
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.limits import SHARES, MessageBudget, RateLimit
from submerge_aggregator.refusals import Refusals
from submerge_aggregator.server import Server
from submerge_client import logs
from submerge_client.uplink import Opened, Parted
from support.patience import PATIENCE_S


class AdminClient:
    """A server that commits no batches; what it lets in waits."""

    def __init__(self) -> None:
        pace, self.refusals = RateLimit(1.0, 2), Refusals()
        self.reported: list[tuple[str, str]] = []
        self.server = Server(
            SimpleNamespace(refusals=self.refusals),  # type: ignore[arg-type]
            downlinks=(),
            uplink=None,
            clock=lambda: SimpleNamespace(steady=100.0),  # type: ignore[arg-type,return-value]
            admits=lambda who, size: pace.takes(who, 100.0, size),
        )

    def hears(self, node: str | None, peer: str = "") -> bool:
        """Whether an unreadable message is let in."""
        before = len(self.server._inbox)
        self.server.take(
            Inbound("report", b"\xff", node, False, lambda *_: None, self._refuse, peer)
        )
        return len(self.server._inbox) > before

    def _refuse(self, *why: str) -> None:
        self.reported.append(why)  # type: ignore[arg-type]


def letter(node: str, admin: AdminClient, done: list[str]) -> Inbound:
    """Four bytes of a node, which says when it no longer waits."""
    return Inbound(
        "report",
        bytes(4),
        node,
        False,
        lambda *_: None,
        admin._refuse,
        done=lambda: done.append(node),
    )


@pytest.fixture
def admin():
    return AdminClient()


def test_too_much_is_refused_before_it_is_read(admin):
    """It gets a refusal, is counted, and not decoded; the other children go on."""
    heard = [admin.hears("wild") for _ in range(5)]

    assert [True, True, False, False, False] == heard
    assert [("too many messages: wait, then send the newest", "throttled")] * 3 == admin.reported
    assert 3 == admin.refusals.counts["throttled"]
    assert admin.hears("c")


def test_without_names_each_connection_counts(admin):
    """A name in the bytes alone proves nothing."""
    heard = [admin.hears(None, "ipv4:10.0.0.1:4711") for _ in range(3)]

    assert [True, True, False] == heard
    assert admin.hears(None, "ipv4:10.0.0.1:4712")


def test_bytes_that_wait_are_bounded_and_one_that_floods_leaves_room(admin):
    """What has no room is refused at once as busy, and its transport may go on."""
    admin.server.budget = MessageBudget(8 * SHARES)
    admin.server._admits = lambda *_: True
    done: list[str] = []

    for _ in range(5):
        admin.server.take(letter("wild", admin, done))
    admin.server.take(letter("c", admin, done))

    assert ["wild", "wild", "c"] == [item.who for item in admin.server._inbox]
    assert [("no room now, or no longer serving: ask again", "busy")] * 3 == admin.reported
    assert ["wild"] * 3 == done
    assert 3 == admin.refusals.counts["dropped"]
    assert 12 == admin.server.budget.used


# -- its end -----------------------------------------------------------------------------------


class Away:
    """An aggregator whose broker has hung up, as a worker and an uplink; its clock stands still.

    The broker lets it in again after its last report was due (`returns`), or never. All that it
    holds is reported as soon as the way is open.
    """

    def __init__(self, *, returns: bool) -> None:
        self.refusals, self.credentials, self.wakes_at = Refusals(), None, 100.0
        self.admission = AdmissionControl()
        self.store = SimpleNamespace(copies=SimpleNamespace(turn=nullcontext()))
        self.node = SimpleNamespace(unreported=True, incarnation="i", settled=True)
        self.node.settings = SimpleNamespace(node="a", parent="root")
        self._returns = returns
        self.server = Server(
            self,  # type: ignore[arg-type]
            downlinks=(),
            uplink=self,  # type: ignore[arg-type]
            clock=lambda: SimpleNamespace(steady=100.0),  # type: ignore[arg-type,return-value]
        )

    def start(self) -> list[object]:
        return []

    def commit_batch(self, items):
        for item in items:
            if isinstance(item, Asked) and item.event == Flush() and self._returns:
                # Not in the batch that is due: the connection is tried again a little later.
                self._loop.call_soon_threadsafe(self._loop.call_later, 0.01, self._return)
            self.node.unreported &= not isinstance(item, Opened)
        return []

    def open(self, hear):
        self._hear, self._loop = hear, asyncio.get_running_loop()
        self._loop.call_soon(self.server._put, Parted("hung up"))

    def _return(self) -> None:
        self.server._put(Opened())

    def close(self) -> None:
        """Close the store, and the way up."""

    async def runs(self, *, stops: int) -> None:
        """Run until the broker is away, then until the end."""
        run = asyncio.create_task(self.server.run())
        while not self.server.parted and not run.done():
            await asyncio.sleep(0)
        for _ in range(stops):
            self.server.stop()
        await asyncio.wait_for(run, PATIENCE_S)


@pytest.fixture
def log():
    """What is logged, as lines of JSON."""
    lines = io.StringIO()
    logs.begin("info", as_json=True, stream=lines)
    yield lines
    logs.log.handlers.clear()


def ended(log):
    """The last line of an aggregator."""
    (line,) = (
        each for each in map(json.loads, log.getvalue().splitlines()) if "ended" in each["what"]
    )
    return line["level"], line.get("unreported")


def test_a_broker_that_has_just_hung_up_is_waited_for_at_the_end(log):
    """Otherwise the root lacks what the aggregator holds until that one is started again."""
    away = Away(returns=True)
    asyncio.run(away.runs(stops=1))

    assert not away.node.unreported
    assert ("info", None) == ended(log)


def test_asked_to_end_twice_it_waits_for_no_parent_and_says_so(log):
    """Its store has the rest."""
    asyncio.run(Away(returns=False).runs(stops=2))

    assert ("warning", True) == ended(log)

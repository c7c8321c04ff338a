"""What comes of jobs is checked, bounded, and takes nothing from reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from submerge.jobs.machine import JobPiece, JobPieceTaken
from submerge.protocol.messages import Incarnation, Stamp
from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.jobs.runtime import JobInbox, JobRuntime
from submerge_aggregator.limits import SHARES, MessageBudget, RateLimit
from submerge_aggregator.refusals import Refusals
from submerge_aggregator.server import Server
from submerge_proto.wire import jobs

STAMP = Stamp("c", "room", Incarnation(1, 2), 3)


def piece(*, up: bool = True, node: str = "c", size: int = 8) -> bytes:
    stamp = STAMP._replace(node=node)
    return jobs.encode(JobPiece(stamp, "job-1", up, bytes(16), int(up), 0, 1, bytes(size)))


def taken(*, up: bool) -> bytes:
    return jobs.encode(JobPieceTaken(STAMP, "job-1", up, bytes(16), b"\1"))


class Desk:
    """An inbox, and what became of what was put into it."""

    def __init__(self, limit: int = 1 << 20, burst: int = 1000) -> None:
        self.pace, self.refusals = RateLimit(1.0, burst), Refusals()
        self.admission = AdmissionControl()
        self.said: list[Any] = []
        self.inbox = JobInbox(
            MessageBudget(limit),
            lambda who, size: self.pace.takes(who, 0.0, size),
            self.admission,
            self.refusals,
            lambda: self.said.append("stirred"),
        )

    def take(self, data: bytes, node: str | None = "c", *, open_: bool = True) -> int:
        """Put a message in; return how many wait."""
        inbound = Inbound(
            *("job", data, node, False),
            lambda kind, answer: self.said.append((kind, answer)),
            lambda _, kind: self.said.append(kind),
            done=lambda: self.said.append("done"),
        )
        self.inbox.take(inbound, open_=open_)
        return len(self.inbox)

    @property
    def counts(self) -> dict[str, int]:
        return {reason: n for reason, n in self.refusals.counts.items() if n}


@pytest.mark.parametrize("data", [piece(), taken(up=False)])
@pytest.mark.parametrize("node", ["c", None])
def test_what_a_child_may_send_waits_and_is_confirmed(data, node):
    """A piece of its share, and what it has of an ask; without TLS the message names its sender."""
    desk = Desk()

    assert 1 == desk.take(data, node)
    assert ["done", "stirred", ("job", b"")] == desk.said
    heard = desk.inbox.pop()
    assert ("c", False) == (heard.sender, heard.from_parent)
    assert 0 == desk.inbox.budget.used
    assert {} == desk.counts


@pytest.mark.parametrize(
    ("data", "node", "reason", "kind"),
    [
        (b"\xff", "c", "malformed", "foreign"),
        (piece(node="d"), "c", "spoofed", "denied"),
        (piece(up=False), "c", "denied", "denied"),
        (taken(up=True), "c", "denied", "denied"),
    ],
)
def test_what_it_may_not_send_is_counted(data, node, reason, kind):
    """Nothing waits, and nothing stirs."""
    desk = Desk()

    assert 0 == desk.take(data, node)
    assert {reason: 1} == desk.counts
    assert ["done", kind] == desk.said


def test_a_banned_node_takes_no_part():
    """From the moment at which the machine has banned it."""
    desk = Desk()
    desk.admission.set_banned({"room": frozenset({"c"})})

    assert 0 == desk.take(piece())
    assert {"denied": 1} == desk.counts


def test_too_many_and_too_much_are_refused():
    """A rate for each child, a budget for all, and nothing while no part is there to take it."""
    few, small = Desk(burst=2), Desk(limit=8000 * SHARES)
    for _ in range(3):
        few.take(piece())
    for _ in range(3):
        small.take(piece(size=4000))

    assert (2, {"throttled": 1}) == (len(few.inbox), few.counts)
    assert (1, {"dropped": 2}) == (len(small.inbox), small.counts)
    assert 0 == Desk().take(piece(), open_=False)


def test_a_piece_costs_less_of_the_rate_than_other_messages():
    """64 KiB are two tokens, where a report of that size takes nine."""
    desk = Desk(8 << 20, burst=4)

    assert [1, 2, 2] == [desk.take(piece(size=64 << 10)) for _ in range(3)]


def test_the_parents_messages_are_known_by_their_way():
    """What names another node, or could only come from below, is counted."""
    desk = Desk()
    desk.inbox.take_of_parent(piece(up=False), "hall", "c")
    heard = desk.inbox.pop()
    assert ("hall", True) == (heard.sender, heard.from_parent)
    for data in (piece(up=False, node="d"), piece(up=True), taken(up=False), b"\xff"):
        desk.inbox.take_of_parent(data, "hall", "c")

    assert 0 == len(desk.inbox)
    assert {"foreign_topic": 3, "malformed": 1} == desk.counts


def test_a_flood_of_a_job_leaves_a_child_its_reports():
    """Neither their rate nor their room is touched by it."""
    pace, refusals = RateLimit(1.0, 2), Refusals()
    server = Server(
        SimpleNamespace(refusals=refusals),  # type: ignore[arg-type]
        downlinks=(),
        uplink=None,
        clock=lambda: SimpleNamespace(steady=100.0),  # type: ignore[arg-type,return-value]
        admits=lambda who, size: pace.takes(who, 100.0, size),
        jobs=JobRuntime(),
    )
    before = server.budget.used
    for _ in range(100):
        server.take(Inbound("job", piece(), "c", False, lambda *_: None, lambda *_: None))
    used = server.budget.used
    server.take(Inbound("report", b"r", "c", False, lambda *_: None, lambda *_: None))

    assert before == used
    assert 1 == len(server._inbox)
    assert 0 == refusals.counts["throttled"]

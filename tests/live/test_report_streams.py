"""Reports over gRPC on a stream that stays open: as strict as calls, and never worse than these."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from submerge.protocol.messages import Answer, Incarnation, Reason, Stamp
from submerge_aggregator.downlink import PeerIdentity, message_calls, over_grpc
from submerge_aggregator.downlink.message_calls import ReportStreams
from submerge_aggregator.refusals import Refusals
from submerge_client.uplink import SendRefused, Slowed
from submerge_client.uplink import over_grpc as up
from submerge_client.uplink.over_grpc import GrpcUplink
from submerge_proto.wire import codec
from support.patience import until
from support.ways import Ear, Host

pytestmark = pytest.mark.slow

LIMIT = 1000


class Refuses:
    """Who may watch: all, until `why` is set."""

    revision, why = 0, None

    def objection_to_watch(self, _: PeerIdentity, name: str, group: str) -> str | None:
        return self.why and f"{self.why}: {name} of {group}"


class Link:
    """A child and its parent.

    `report` sends one and returns what arrived; `answer` is an honest answer to it.
    """

    def __init__(self, downlink: Any) -> None:
        self.downlink, self.host, self.ear = downlink, Host(downlink), Ear()
        self.uplink = GrpcUplink(
            f"127.0.0.1:{downlink.port}", node="c", groups=("g",), limit=10 * LIMIT
        )
        self.uplink.open(self.ear)

    @property
    def streams(self) -> ReportStreams:
        return self.downlink.calls.streams

    def report(self, data: bytes, seq: int) -> None:
        """Report, and have the answer."""
        self.uplink.send("report", "g", data)
        self.answer(data, seq)

    def answer(self, data: bytes, seq: int) -> None:
        answer = answered(seq)
        self.host.call(self.host.letter(data).answer, "answer", answer)
        self.ear.came(answer)

    def close(self) -> None:
        self.uplink.close()
        self.host.close()


def answered(seq: int) -> bytes:
    """Return an answer, as a worker makes it."""
    return codec.encode(Answer(Stamp("c", "g", Incarnation(1, 1), seq), Reason.ACK, newest=seq))


@pytest.fixture
def linked() -> Iterator[Any]:
    """Makes links."""
    links: list[Link] = []

    def make(kind: Any = over_grpc.GrpcDownlink, **how: Any) -> Link:
        links.append(Link(kind("127.0.0.1:0", limit=LIMIT, **how)))
        return links[-1]

    yield make
    for link in links:
        link.close()


def test_reports_go_on_one_stream_with_an_answer_each(linked):
    """The second one sets up no call."""
    link = linked()
    link.report(b"one", 1)
    until(lambda: len(link.streams) == 1)
    (stream,) = link.streams._open
    link.report(b"two", 2)
    link.report(b"three", 3)

    assert [stream] == list(link.streams._open)
    assert ("c", "g") == (stream.node, stream.group)
    assert 0 == link.uplink.failures


def test_without_a_place_each_report_is_answered_all_the_same(linked, monkeypatch):
    """Its stream ends after the answer; what waited on it goes on the next one."""
    monkeypatch.setattr(ReportStreams, "keep", lambda *_: None)
    link = linked()
    link.report(b"one", 1)
    for seq in (2, 3, 4):
        link.uplink.send("report", "g", b"%d" % seq, final=True)
    for seq in (2, 3, 4):
        link.answer(b"%d" % seq, seq)

    assert 0 == len(link.streams)
    assert 0 == link.uplink.failures


def test_a_child_may_report_by_calls(linked):
    """The method without a stream stays, for clients in other languages."""
    link = linked()
    with grpc.insecure_channel(f"127.0.0.1:{link.downlink.port}") as channel:
        call = channel.unary_unary(f"/{over_grpc.SERVICE}/Report").future(b"old", timeout=20)
        link.host.call(link.host.letter(b"old").answer, "answer", b"yes")

        assert b"yes" == call.result()


@pytest.mark.parametrize(
    ("kind", "heard"), [("throttled", Slowed), ("denied", SendRefused), ("foreign", SendRefused)]
)
def test_a_refusal_on_a_stream_is_that_of_a_call(linked, kind, heard):
    """The child hears it, and its next report is answered."""
    link = linked()
    link.report(b"one", 1)
    link.uplink.send("report", "g", b"two")
    link.host.call(link.host.letter(b"two").refuse, "so it is", kind)
    assert "so it is" in link.ear.until(lambda each: isinstance(each, heard)).why

    link.report(b"three", 3)


def test_what_is_too_large_on_a_stream_is_refused_before_it_is_read(linked):
    """gRPC ends the stream by the first bytes; the next report is answered on another."""
    refused = Refusals()
    link = linked(refusals=refused)
    link.report(b"one", 1)
    link.uplink.send("report", "g", bytes(LIMIT + 1))
    assert "RESOURCE_EXHAUSTED" in link.ear.until(lambda each: isinstance(each, SendRefused)).why
    until(lambda: not len(link.streams))

    link.report(b"two", 2)
    assert link.host.letters.empty()


def test_a_node_that_is_refused_by_now_loses_its_stream(linked, monkeypatch):
    """Revoked, or banned: it is cut while it waits, counted, and its next report is a new call."""
    monkeypatch.setattr(over_grpc, "LOOK_S", 0.02)
    refused, admission = Refusals(), Refuses()
    link = linked(refusals=refused, admission=admission)
    link.report(b"one", 1)
    until(lambda: len(link.streams) == 1)
    admission.why, admission.revision = "revoked", 1
    until(lambda: not len(link.streams))

    until(lambda: refused.counts["denied"] >= 1)
    until(lambda: link.uplink._reports["g"]._open is None)
    link.report(b"two", 2)


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("reason", [Reason.DENIED, Reason.BANNED])
def test_a_node_that_is_answered_so_loses_its_place(linked, reason, before):
    """At its first report or a later one; the stream ends in order, and counts no longer."""
    link = linked()
    for seq in range(before):
        link.report(b"allowed", seq)
    until(lambda: len(link.streams) == before)
    link.uplink.send("report", "g", b"refused")
    refusal = codec.encode(Answer(Stamp("c", "g", Incarnation(1, 1), 9), reason))
    link.host.call(link.host.letter(b"refused").answer, "answer", refusal)
    link.ear.came(refusal)
    until(lambda: link.uplink._reports["g"]._open is None)

    assert 0 == link.downlink.reading[0]
    assert 0 == link.uplink.failures
    link.report(b"allowed again", 10)


def test_a_stream_on_which_nothing_comes_gives_its_place_back(linked, monkeypatch):
    """It ends in order; the next report begins another."""
    monkeypatch.setattr(over_grpc, "LOOK_S", 0.02)
    link = linked()
    link.report(b"one", 1)
    until(lambda: len(link.streams) == 1)
    monkeypatch.setattr(message_calls, "IDLE_S", 0.0)
    until(lambda: not len(link.streams))
    monkeypatch.undo()

    link.report(b"two", 2)
    assert 0 == link.uplink.failures


def test_a_child_that_ends_leaves_no_stream_behind(linked):
    """Nor does it count as one that sends too much."""
    refused = Refusals()
    link = linked(refusals=refused)
    link.report(b"one", 1)
    until(lambda: len(link.streams) == 1)
    link.uplink.close()
    until(lambda: not len(link.streams))

    assert 0 == sum(refused.counts.values())


def test_a_parent_that_closes_waits_for_no_stream(linked):
    """Streams that wait are ended at once, and the child hears nothing of a refusal."""
    link = linked()
    link.report(b"one", 1)
    until(lambda: len(link.streams) == 1)
    began = time.monotonic()
    link.host.close()

    assert time.monotonic() - began < over_grpc.GRACE_S
    assert [] == [each for each in link.ear.heard if isinstance(each, SendRefused)]


def test_a_stream_without_an_answer_is_given_up(linked, monkeypatch):
    """The next report goes on another stream, and does not wait for the one before."""
    monkeypatch.setattr(up, "CALL_S", 0.05)
    link = linked()
    link.report(b"one", 1)
    link.uplink.send("report", "g", b"two")
    link.host.letter(b"two")
    until(lambda: not link.uplink._reports["g"]._open or _overdue(link))

    link.report(b"three", 3)


def _overdue(link: Link) -> bool:
    return link.uplink._reports["g"]._open.is_overdue(0.05)


class AnswersTwice(over_grpc.GrpcDownlink):
    """A parent that answers the first report of a stream twice."""

    def _handlers(self) -> dict[str, Any]:
        async def twice(_: Any, context: Any) -> None:
            await context.read()
            await context.write(answered(1))
            await context.write(answered(1))
            await context.read()

        handlers = {"Reports": grpc.stream_stream_rpc_method_handler(twice)}
        return super()._handlers() | handlers


def test_a_parent_that_answers_what_nobody_asked_ends_no_thread(linked):
    """The stream is given up, and it is counted."""
    link = linked(AnswersTwice)
    link.uplink.send("report", "g", b"one")
    link.ear.came(answered(1))
    until(lambda: link.uplink.failures == 1)

    until(lambda: link.uplink._reports["g"]._open is None)

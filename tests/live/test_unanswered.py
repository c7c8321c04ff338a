"""Calls over gRPC that nobody answers, or not now."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
import pytest

from submerge_aggregator.downlink import message_calls, over_grpc
from submerge_aggregator.downlink.readings import ReadingLimits
from submerge_aggregator.refusals import Refusals
from submerge_client.uplink import SendRefused, Slowed
from submerge_client.uplink.over_grpc import SERVICE, GrpcUplink
from support.patience import PATIENCE_S, until
from support.ways import Ear, Host


@pytest.mark.slow
def test_a_letter_that_nobody_answers_is_given_up(monkeypatch):
    """Its caller hears "not now", whatever its own patience; nothing of it stays behind."""
    monkeypatch.setattr(message_calls, "ANSWER_S", 0.05)
    monkeypatch.setattr(over_grpc, "LOOK_S", 0.02)
    downlink = over_grpc.GrpcDownlink("127.0.0.1:0", limit=1000)
    host = Host(downlink)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{downlink.port}") as channel:
            call = channel.unary_unary(f"/{SERVICE}/Report").future(b"any", timeout=PATIENCE_S)
            letter = host.letter(b"any")

            assert grpc.StatusCode.UNAVAILABLE is call.code()
        # Too late, and no mistake.
        host.call(letter.answer, "answer", b"sorry")
        until(lambda: not downlink.calls._unanswered)
    finally:
        host.close()


@pytest.mark.slow
def test_a_child_that_says_too_much_hears_that_it_should_wait():
    """It is slowed, and not refused: no person has to look."""
    downlink = over_grpc.GrpcDownlink("127.0.0.1:0", limit=1000)
    host, ear = Host(downlink), Ear()
    target = f"127.0.0.1:{downlink.port}"
    uplink = GrpcUplink(target, node="c", groups=("g",), limit=1000)
    try:
        uplink.open(ear)
        uplink.send("report", "g", b"again")
        host.call(host.letter(b"again").refuse, "too many messages", "throttled")

        assert Slowed("too many messages") == ear.until(lambda heard: isinstance(heard, Slowed))
        assert [] == [heard for heard in ear.heard if isinstance(heard, SendRefused)]
    finally:
        uplink.close()
        host.close()


@pytest.mark.slow
def test_a_child_that_opens_streams_without_end_is_told_to_wait():
    """Each costs what a message costs; the way counts as closed, and is tried again."""
    refused = Refusals()
    downlink = over_grpc.GrpcDownlink(
        "127.0.0.1:0", limit=1000, refusals=refused, admits=lambda *_: False
    )
    host, ear = Host(downlink), Ear()
    target = f"127.0.0.1:{downlink.port}"
    uplink = GrpcUplink(target, node="c", groups=("g",), limit=1000)
    try:
        uplink.open(ear)

        assert "UNAVAILABLE: too many watches: wait" == ear.parted().why
        assert refused.counts["throttled"] >= 1
    finally:
        uplink.close()
        host.close()


BESIDE = "/grpc.health.v1.Health/Watch"


@pytest.mark.slow
@pytest.mark.parametrize("method", [f"/{SERVICE}/Watch", BESIDE])
def test_a_stream_is_not_asked_for_in_many_words(method):
    """What asks for one is held as long as it is open: more than a name or two is refused."""
    refused = Refusals()
    downlink = over_grpc.GrpcDownlink("127.0.0.1:0", limit=100_000, refusals=refused)
    host = Host(downlink)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{downlink.port}") as channel:
            padded = b"\xc2\x3e\xd0\x0f" + bytes(2000)  # a field that nobody knows
            stream = channel.unary_stream(method)(padded, timeout=PATIENCE_S)

            assert grpc.StatusCode.RESOURCE_EXHAUSTED is stream.code()
        assert 1 == refused.counts["oversize"]
    finally:
        host.close()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["Join", "Report", "Reports", "Watch"])
def test_calls_that_say_nothing_are_few_and_are_given_up(method, monkeypatch):
    """Who begins them without end is told to wait, and each of his ends; others are heard."""
    monkeypatch.setattr(message_calls, "READ_S", 0.5)
    monkeypatch.setattr(ReadingLimits, "calls_each", 3)
    refused = Refusals()
    downlink = over_grpc.GrpcDownlink("127.0.0.1:0", limit=1000, refusals=refused)
    host, quiet = Host(downlink), threading.Event()
    local = [("grpc.use_local_subchannel_pool", 1)]
    target = f"127.0.0.1:{downlink.port}"

    def silent() -> Iterator[bytes]:
        quiet.wait(PATIENCE_S)
        yield from ()

    try:
        with (
            grpc.insecure_channel(target, local) as channel,
            grpc.insecure_channel(target, local) as other,
        ):
            begin = channel.stream_stream(f"/{SERVICE}/{method}")
            calls = [begin(silent(), timeout=PATIENCE_S) for _ in range(5)]
            heard = other.unary_unary(f"/{SERVICE}/Report").future(b"any", timeout=PATIENCE_S)
            host.call(host.letter(b"any").answer, "answer", b"yes")

            assert b"yes" == heard.result()
            codes = sorted(call.code().name for call in calls)
            assert ["DEADLINE_EXCEEDED"] * 3 + ["UNAVAILABLE"] * 2 == codes
            until(lambda: not len(downlink.calls.readings), lambda: "an end of all")
        assert (2, 3) == (refused.counts["throttled"], refused.counts["malformed"])
    finally:
        quiet.set()
        host.close()

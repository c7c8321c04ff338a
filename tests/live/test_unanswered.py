"""Calls over gRPC that nobody answers, or not now."""

from __future__ import annotations

import grpc
import pytest

from submerge_aggregator.downlink import over_grpc
from submerge_aggregator.refusals import Refusals
from submerge_client.uplink import Refused, Slowed
from submerge_client.uplink.over_grpc import SERVICE, OverGrpc
from support.ways import WITHIN_S, Ear, Host


@pytest.mark.slow
def test_a_letter_that_nobody_answers_is_given_up(monkeypatch):
    """Its caller hears "not now", whatever its own patience; nothing of it stays behind."""
    monkeypatch.setattr(over_grpc, "ANSWER_S", 0.05)
    monkeypatch.setattr(over_grpc, "LOOK_S", 0.02)
    downlink = over_grpc.OverGrpc("127.0.0.1:0", limit=1000)
    host = Host(downlink)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{downlink.port}") as channel:
            call = channel.unary_unary(f"/{SERVICE}/Report").future(b"any", timeout=WITHIN_S)
            letter = host.letter(b"any")

            assert grpc.StatusCode.UNAVAILABLE is call.code()
        # Too late, and no mistake.
        host.call(letter.answer, "answer", b"sorry")
        assert not downlink._unanswered
    finally:
        host.close()


@pytest.mark.slow
def test_a_child_that_says_too_much_hears_that_it_should_wait():
    """It is slowed, and not refused: no person has to look."""
    downlink = over_grpc.OverGrpc("127.0.0.1:0", limit=1000)
    host, ear = Host(downlink), Ear()
    target = f"127.0.0.1:{downlink.port}"
    uplink = OverGrpc(target, node="c", groups=("g",), limit=1000)
    try:
        uplink.open(ear)
        uplink.send("report", "g", b"again")
        host.call(host.letter(b"again").refuse, "too many messages", "throttled")

        assert Slowed("too many messages") == ear.until(lambda heard: isinstance(heard, Slowed))
        assert [] == [heard for heard in ear.heard if isinstance(heard, Refused)]
    finally:
        uplink.close()
        host.close()


@pytest.mark.slow
def test_a_child_that_opens_streams_without_end_is_told_to_wait():
    """Each costs what a message costs; the way counts as closed, and is tried again."""
    refused = Refusals()
    downlink = over_grpc.OverGrpc(
        "127.0.0.1:0", limit=1000, refusals=refused, admits=lambda _: False
    )
    host, ear = Host(downlink), Ear()
    target = f"127.0.0.1:{downlink.port}"
    uplink = OverGrpc(target, node="c", groups=("g",), limit=1000)
    try:
        uplink.open(ear)

        assert "UNAVAILABLE: too many watches: wait" == ear.parted().why
        assert refused.counts["throttled"] >= 1
    finally:
        uplink.close()
        host.close()

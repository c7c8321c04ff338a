"""Calls over gRPC that nobody answers."""

from __future__ import annotations

import grpc
import pytest

from submerge_aggregator.downlink import over_grpc
from submerge_client.uplink.over_grpc import SERVICE
from support.ways import WITHIN_S, Host


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

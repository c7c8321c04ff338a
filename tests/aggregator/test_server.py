"""The server's border: too many messages of one sender are refused unread."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from submerge_aggregator.downlink import Inbound
from submerge_aggregator.rate_limit import RateLimit
from submerge_aggregator.refusals import Refusals
from submerge_aggregator.server import Server


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

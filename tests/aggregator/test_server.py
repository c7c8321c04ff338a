"""The server's border: too many messages of one sender are refused unread."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from submerge_aggregator.downlink import Inbound
from submerge_aggregator.limits.budget import SHARES, MessageBudget
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

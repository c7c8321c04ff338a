"""A root under floods holds its memory under compose's limit, and honest reports are all taken.

The root is a process as it ships, with mutual TLS and the default limits; each flood is another
process, with one kit or sixteen. benchmarks/floods.md has latencies; nothing here asserts a time.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from submerge_aggregator.downlink.over_grpc import OPTIONS
from submerge_client.uplink.over_grpc import OPTIONS as CHILDREN
from support.besieged import Besieged, HonestChild, end, waited_for
from support.certified import LOOPBACK
from support.floods import Target
from support.http2 import PING, Closed, frame
from support.patience import PATIENCE_S, until
from support.programs import Programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc"),
]

COMPOSE = Path(__file__).parents[2] / "docker-compose.yml"
MOST = int(re.findall(r"mem_limit: (\d+)m", COMPOSE.read_text())[0]) << 20
"""Compose's limit for an aggregator, in bytes. A cgroup counts less: no shared pages of files."""

LONG_S = 6.0
"""How long a flood lasts at least: its peak comes within the first seconds."""

TRIMS = """
from submerge_aggregator import limits
from submerge_operate.cli import main

limits.TRIM_EVERY_S = 10.0
main()
"""
"""A root that gives memory back every ten seconds, long after a peak; half a minute is usual."""

FLOODS = [
    *[("garbage", 64, 1, ("oversize",)), ("garbage", 64, 64, ("oversize",))],
    *[("many_calls", 16, 16, ("oversize",)), ("fitting", 16, 16, ("throttled", "dropped"))],
    *[("slow", 16, 16, ("throttled", "oversize")), ("unread", 16, 16, ("throttled", "oversize"))],
    *[("headers_only", 16, 16, ("throttled", "malformed")), ("half_headers", 500, 1, ())],
    *[("idle", 2000, 1, ()), ("no_handshake", 2000, 1, ()), ("pings", 16, 1, ())],
    *[("settings", 16, 1, ()), ("resets", 16, 1, ("oversize",))],
    *[("watches", 16, 1, ("throttled",)), ("stalled_streams", 64, 64, ("name",))],
    *[("http_silent", 1000, 1, ()), ("http_slow", 1000, 1, ()), ("http_body", 32, 1, ())],
]
GATED = {"fitting", "unread", "idle", "http_slow"}
"""Messages, calls, connections and requests: `make soak` has all floods."""


@pytest.fixture
def programs() -> Iterator[Programs]:
    """A folder for programs."""
    with Programs() as programs:
        yield programs


@pytest.fixture
def root(programs) -> Besieged:
    """A root with the limits that it has by default."""
    return Besieged(programs, command=(sys.executable, "-c", TRIMS))


@pytest.mark.parametrize(
    ("flood", "connections", "kits", "reasons"),
    [
        pytest.param(
            *each,
            id="-".join(map(str, each[:3])),
            marks=() if each[0] in GATED else pytest.mark.soak,
        )
        for each in FLOODS
    ],
)
def test_a_flood_takes_no_more_than_compose_allows(root, flood, connections, kits, reasons):
    """No honest report is lost, what is refused is counted, and the memory is given back."""
    with HonestChild(root) as child:
        waited_for(child, 5)
        before = root.resident
        root.forget_peak()
        flooding = root.flood(flood, connections, kits)
        try:
            time.sleep(LONG_S)
            waited_for(child, 5)
        finally:
            end(flooding)
        waited_for(child, 5)
        if reasons:
            until(lambda: sum(root.refused().get(reason, 0) for reason in reasons))
        # Half of what was taken, within two rounds of the allocator's.
        half = before + (root.peak - before) // 2 + (16 << 20)
        until(lambda: root.resident <= half, lambda: f"{half} bytes, {root.resident} are held")

    assert root.peak < MOST
    assert 0 == child.lost
    # The child's stream counts until the root has seen that it is gone.
    until(lambda: 0 == root.metrics()["submerge_unanswered_bytes"])


def test_a_peer_that_pings_without_end_is_hung_up_on(root):
    """Each ping is answered at once, which costs the root more than the peer."""
    target = Target(LOOPBACK, root.port, [root.fleet.kit("wild")])

    async def pinged() -> None:
        connection, _ = await target.connection()
        with suppress(Closed):
            while True:
                await connection.write(frame(PING, 0, 0, bytes(8)) * 10)
                await asyncio.sleep(0.01)
        await connection.close()

    asyncio.run(asyncio.wait_for(pinged(), PATIENCE_S))


def test_keepalive_of_children_is_far_from_what_counts_as_a_flood():
    """Two pings of a child are twice as far apart as two that the root takes."""
    theirs, ours = dict(CHILDREN), dict(OPTIONS)

    assert (
        theirs["grpc.keepalive_time_ms"] >= 2 * ours["grpc.http2.min_ping_interval_without_data_ms"]
    )
    assert ours["grpc.http2.max_ping_strikes"] > 0


def test_connections_over_the_limit_are_closed_and_those_before_go_on(programs):
    """A newcomer gets in as soon as there is room again."""
    root = Besieged(programs, "max_connections = 3")
    with HonestChild(root) as child:
        target = Target(LOOPBACK, root.port, [root.fleet.kit("wild")])

        async def crowded() -> None:
            opened = [(await target.connection())[0] for _ in range(2)]
            with suppress(OSError):
                connection, _ = await target.connection()
                while not connection.closed:
                    await asyncio.sleep(0.01)
                await connection.close()
            for each in opened:
                await each.close()

        asyncio.run(asyncio.wait_for(crowded(), PATIENCE_S))
        waited_for(child, 2)

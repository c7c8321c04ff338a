"""`submerge alarms --follow` by a real socket: whoever restarts, each event is told once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http.endpoints import Endpoints
from submerge_client.config.tomlfile import decoded
from support.alarmed import alarm, message
from support.following import following
from support.house import House
from support.patience import PATIENCE_S, until
from support.programs import DETACHED


@contextmanager
def rollup(folder: Path) -> Iterator[House]:
    """A root on this store, whose operator's socket is open."""
    table = {
        "node": "root",
        "store": str(folder / "root.db"),
        "listen": {"grpc": {"insecure": True}},
        "groups": {"room": {"summary": {"rank": 1}, "schema": {"channels": ["a", "b"]}}},
        "status": {"address": ""},
    }
    with House(folder) as house:

        async def opened() -> Endpoints:
            endpoints = Endpoints(house.server, decoded(table, AggregatorConfig))
            await endpoints.start()
            return endpoints

        endpoints = house.does(opened())
        yield house
        house.does(endpoints.stop())


@pytest.mark.slow
def test_a_follower_outlives_an_aggregator_that_restarts(tmp_path):
    """It says so once, tells nothing twice and misses nothing; Ctrl-C is no failure."""
    with ExitStack() as stack:
        house = stack.enter_context(rollup(tmp_path))
        message(house, "c", alarm())
        with following(house.store) as (follower, reported, said):
            until(lambda: len(reported) == 1, lambda: f"a start, got {reported} {said}")
            seq = house.seq
            stack.close()
            until(lambda: bool(said), lambda: "a word that nobody answers")
            with rollup(tmp_path) as house:
                house.seq = seq
                message(house, "c", alarm("c", 2), alarm(ended=60.0))
                until(
                    lambda: len(reported) == 3, lambda: f"an end and a start, got {reported} {said}"
                )
                follower.send_signal(signal.SIGINT)
                assert 0 == follower.wait(PATIENCE_S)

    assert [("start", "c-1"), ("start", "c-2"), ("end", "c-1")] == [
        (each["event"], each["id"]) for each in reported
    ]
    assert 1 == len(said)
    assert b"no aggregator answers on" in said[0]


@pytest.mark.slow
def test_ctrl_c_ends_a_follower_that_was_started_with_sigint_ignored(tmp_path):
    """A script's `&` hands that down; with status 0, as ever."""
    with rollup(tmp_path) as house:
        message(house, "c", alarm())
        with following(house.store, before=DETACHED) as (follower, reported, said):
            until(lambda: len(reported) == 1, lambda: f"a start, got {reported} {said}")
            follower.send_signal(signal.SIGINT)

            assert 0 == follower.wait(PATIENCE_S)

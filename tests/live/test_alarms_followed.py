"""`submerge alarms --follow` by a real socket: whoever restarts, each event is told once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http.endpoints import Endpoints
from submerge_client.config.decoding import decoded
from support.alarmed import alarm, message
from support.house import House
from support.programs import SUBMERGE, until


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


@contextmanager
def following(store: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[Any], list[bytes]]]:
    """A follower at that store, the events that it tells, and what else it says."""
    reported: list[Any] = []
    said: list[bytes] = []
    with subprocess.Popen(
        [SUBMERGE, "alarms", "--follow", "--json", "--store", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    ) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        pipes = (map(json.loads, follower.stdout), reported), (follower.stderr, said)
        readers = [threading.Thread(target=into.extend, args=(pipe,)) for pipe, into in pipes]
        for reader in readers:
            reader.start()
        try:
            yield follower, reported, said
        finally:
            follower.kill()
            for reader in readers:
                reader.join(20.0)


@pytest.mark.slow
def test_a_follower_outlives_an_aggregator_that_restarts(tmp_path):
    """It says so once, tells nothing twice and misses nothing; Ctrl-C is no failure."""
    with ExitStack() as stack:
        house = stack.enter_context(rollup(tmp_path))
        message(house, "c", alarm())
        with following(house.store) as (follower, reported, said):
            until(lambda: len(reported) == 1, lambda: f"a start, got {reported} {said}")
            seq = house._seq
            stack.close()
            until(lambda: bool(said), lambda: "a word that nobody answers")
            with rollup(tmp_path) as house:
                house._seq = seq
                message(house, "c", alarm("c", 2), alarm(ended=60.0))
                until(
                    lambda: len(reported) == 3, lambda: f"an end and a start, got {reported} {said}"
                )
                follower.send_signal(signal.SIGINT)
                assert 0 == follower.wait(20.0)

    assert [("start", "c-1"), ("start", "c-2"), ("end", "c-1")] == [
        (each["event"], each["id"]) for each in reported
    ]
    assert 1 == len(said)
    assert b"no aggregator answers on" in said[0]

"""Processes die as by a power cut, and every acknowledged reading is counted exactly once.

The short form of `benchmarks/kills.py`, and what its judge would notice.
"""

from __future__ import annotations

import signal
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from submerge import Schema, Subspace
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.protocol.machine import Key
from submerge.protocol.messages import Counts
from submerge_aggregator.store import Store
from submerge_proto.kept import records
from support.kills import OverGrpc, OverMqtt, Result, run
from support.kills.feeding import Fed, channels
from support.kills.judging import ClientIncarnation, judge
from support.kills.plan import CLIENTS, plan
from support.nodes import GROUP, new_incarnation, report
from support.programs import SUBMERGE, Line, Programs, free_port

pytestmark = pytest.mark.slow

SEED = 12
"""Of the plans; which moments they meet differs from run to run."""


def checked(result: Result) -> None:
    """Print the figures: pytest shows them with -rP, and when something is wrong."""
    print(result.text())  # noqa: T201
    assert [] == result.findings.missing
    assert [] == result.findings.twice
    assert [] == result.findings.other
    assert all(death.recovered_s is None or death.recovered_s < 30 for death in result.deaths)


def test_ten_kills_over_grpc_lose_nothing_that_was_acknowledged():
    """Clients and aggregators, at random and where it hurts."""
    checked(run(OverGrpc.on_free_ports(), seed=SEED, kills=10))


def test_ten_kills_over_mosquitto_lose_nothing_that_was_acknowledged(mosquitto):
    """The same, with a broker that keeps what was said last."""
    checked(run(OverMqtt(mosquitto.port), seed=SEED + 1, kills=10))


# -- what the judge would notice ---------------------------------------------------------


class Told:
    """A program whose log says that so many readings of its life were acknowledged."""

    def __init__(self, readings: int) -> None:
        self.lines = [Line(0.0, "acknowledged", "debug", {"readings": readings, "lost": 0})]

    def said(self, what: str) -> list[Line]:
        return [line for line in self.lines if line.what == what]


LIVES = 2
SCHEMA = Schema.anonymous(len(channels(LIVES)))


def rows(ids: range, number: int) -> np.ndarray:
    """Readings of one life of a client."""
    incarnations = [[each, each * each % 4093, *np.eye(LIVES)[number]] for each in ids]
    return np.array(incarnations, dtype=float)


def seen(*blocks: np.ndarray) -> dict[str, Any]:
    """What a report says that has seen these readings."""
    block = np.vstack(blocks)
    summary = Subspace.of(block, SCHEMA, rank=2)
    return {"counts": Counts(len(block)), "summary": summary, "fingerprint": SCHEMA.fingerprint}


def row(node: str, number: int, reported: dict[str, Any], fence: bytes = b"") -> dict[Key, Any]:
    """The record of a report."""
    said = report(node, new_incarnation(number), pinned=new_incarnation(9), fence=fence, **reported)
    incarnation = map(str, said.stamp.incarnation)
    return {("row", GROUP, node, *incarnation): Row(said, b"", 0.0)}


def sealed(node: str, reported: dict[str, Any]) -> dict[Key, Any]:
    """The record of lives that are over."""
    folded = Sealed(reported["summary"], None, reported["counts"], 0.0)
    return {("sealed", GROUP, node, SCHEMA.fingerprint): folded}


def stored(path: Path, kept: dict[Key, Any]) -> Path:
    """A store with these records."""
    with closing(Store(path)) as store:
        store.write({key: records.pack(key, record) for key, record in kept.items()})
    return path


FIRST, SECOND = range(1, 400), range(400, 900)
"""What two lives of n1 read, the first of which died when 300 were acknowledged."""


@pytest.mark.parametrize(
    ("over", "second", "above", "expected"),
    [
        pytest.param(300, SECOND, 300, "", id="all is well"),
        pytest.param(310, SECOND, 310, "", id="more than was acknowledged"),
        pytest.param(299, SECOND, 299, "300 were acknowledged, 299 are held", id="one lost"),
        pytest.param(300, SECOND, 299, "of north the root holds 799", id="lost at the root"),
        pytest.param(300, SECOND, 301, "of north the root holds 801", id="twice at the root"),
        pytest.param(600, SECOND, 600, "it read 399 at most", id="a life twice"),
        pytest.param(300, range(401, 901), 300, "n1 is held as", id="not what it read first"),
    ],
)
def test_the_judge_notices_a_single_reading(tmp_path, over, second, above, expected):
    """`over` readings of a life that is over, `second` of the next; `above` of the first above."""
    first, newest = np.vstack([rows(FIRST, 0)] * 2), rows(second, 1)
    kept = {
        "north": sealed("n1", seen(first[:over])) | row("n1", 2, seen(newest)),
        "root": row("north", 3, seen(first[:above], newest), fence=b"f" * 16),
    }
    stores = {node: stored(tmp_path / node, several) for node, several in kept.items()}
    incarnations = [
        ClientIncarnation(Fed("n1", 0, Told(300), list(FIRST))),
        ClientIncarnation(Fed("n1", 1, Told(500), list(SECOND))),
    ]
    found = judge(stores, incarnations, LIVES).all

    assert bool(expected) == bool(found)
    assert expected in "\n".join(found)


def test_a_plan_is_told_by_its_seed():
    """The same kills again; as many as were asked for; clients and aggregators in equal parts."""
    plans = plan(7, 200)
    struck = [each.victim in CLIENTS for each in plans]

    assert plans == plan(7, 200)
    assert 200 == sum(each.kills for each in plans)
    assert abs(2 * sum(struck) - len(struck)) <= 8


AGGREGATOR = """
node = "root"
store = "{folder}/root.db"
[listen.grpc]
address = "127.0.0.1:{port}"
insecure = true
[status]
address = ""
[groups.g.schema]
channels = ["a", "b"]
scaling = "none"
[groups.g.summary]
rank = 1
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_an_aggregator_ends_by_each_signal_and_without_its_store(number):
    """In order with status 0; a store that was renamed is one line, and status 2.

    A socket that was cleaned away comes back.
    """
    with Programs() as programs:
        text = AGGREGATOR.format(folder=programs.folder, port=free_port())
        config, store = programs.file("root.toml", text), programs.folder / "root.db"
        first = programs.start("aggregator", "--config", config)
        first.until("serving")
        first.signal(number)
        assert 0 == first.ended(), first.log
        assert first.said("ended")

        second = programs.start("aggregator", "--config", config)
        second.until("serving")
        socket = Path(f"{store}.sock")
        socket.unlink()
        second.until("socket made again: it was removed")
        command = [SUBMERGE, "nodes", "list", "--store", store]
        assert 0 == subprocess.run(command, check=False).returncode
        store.rename(programs.folder / "away.db")  # nobody reports, and nobody asks
        assert 2 == second.ended(), second.log
        (line,) = [line.what for line in second.lines if not line.level]
        assert f"expected the store {store} in its place while it is open, got no file" in line

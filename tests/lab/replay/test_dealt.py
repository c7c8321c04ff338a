"""Rows that a replay deals to a node: each is learnt once, whenever the fleet settles a gamma."""

from __future__ import annotations

import json
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import Channel, Schema
from submerge.aggregator.group import GroupPlan
from submerge.features import RandomFourier
from submerge.protocol.machine import Reading
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge_client.sensors import gather
from submerge_lab.replay import dealt as replay_dealt
from submerge_lab.replay.dealt import BLOCK, Dealt, ReplayNode
from submerge_lab.replay.into import IntoResult
from support.commands import shell
from support.nodes import GROUP, Table

AHEAD = gather.AHEAD // gather.BLOCK
"""Most blocks that wait for the node."""

OPEN = Schema((Channel("a"), Channel("b"), Channel("c")), features=RandomFourier(features=16))
SUMMARIES = Subspaces(2, oversample=1)
SETTLES = 150


class Feed:
    """A sensor's rows on their way to its node, a few blocks ahead of it, as in an agent.

    Time passes, and the fleet settles what it can, before the node comes to block `settles_at`;
    and whenever the sensor waits. It stands in for the event that stops a sensor as well.
    """

    def __init__(self, table: Table, *, settles_at: int) -> None:
        self._table, self._settles_at = table, settles_at
        self._ahead: deque[np.ndarray] = deque()
        self._taken = 0

    def hand(self, rows: np.ndarray) -> None:
        self._ahead.append(rows)
        while len(self._ahead) > AHEAD:
            self._take()

    def wait(self, seconds: float) -> bool:
        while self._ahead:
            self._take()
        self._table.passes(max(seconds, 60.0))
        return False

    def is_set(self) -> bool:
        return False

    def _take(self) -> None:
        if self._taken == self._settles_at:
            self._table.passes(3000)
        self._taken += 1
        self._table.step("replay", Reading(self._ahead.popleft()))
        self._table.run()


def fed(n: int, *, settles_at: int, scaling_rows: int = SETTLES) -> Table:
    """A root whose gamma is open, after a replay of n rows into it."""
    table = Table(SUMMARIES, OPEN)
    table.root("r", plans={GROUP: GroupPlan(SUMMARIES, OPEN)}, scaling_rows=scaling_rows)
    sensor = Dealt(np.random.default_rng(0).standard_normal((n, 3)), 0.0)
    reported = ClientSettings("replay", GROUP, "r", alarms=None)  # as `replay --into`
    host = table.client("replay", under="r")
    host.make = lambda rng: ReplayNode(reported, OPEN, SUMMARIES, rng, sensor)
    table.restarts("replay")
    feed = Feed(table, settles_at=settles_at)
    sensor.read(feed.hand, feed)
    feed.wait(3000)
    return table


@pytest.mark.parametrize("settles_at", [3, 4, 7, 9, 10])
def test_each_row_is_learnt_once_wherever_gamma_is_settled(settles_at):
    """Blocks that were on their way to be measured are not learnt as well."""
    table = fed(10 * BLOCK + 5, settles_at=settles_at)

    ledger = table.hosts["r"].ledger
    assert ledger.schema.features.settled
    assert 10 * BLOCK + 5 == ledger.counts().learnt
    assert 10 * BLOCK + 5 == ledger.summary().features.weight
    current = table.hosts["replay"].node.current
    assert 10 * BLOCK + 5 == current.delivered - current.counts.lost


@given(
    n=st.integers(SETTLES, 12 * BLOCK),
    settles_at=st.integers(0, 24),
    ahead=st.integers(0, 6),
)
@settings(max_examples=30, deadline=None)
def test_neither_lengths_nor_delays_change_that(n, settles_at, ahead):
    """However many rows there are, and however far the node is behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "AHEAD", ahead)
        table = fed(n, settles_at=settles_at)

    assert n == table.hosts["r"].ledger.counts().learnt


def test_no_more_is_measured_than_gamma_needs():
    """Once it is there, the rest of the rows goes by at once."""
    table = fed(100 * BLOCK, settles_at=5)

    measured = [report.moments.count for report in table.reports("replay") if report.moments]
    assert 5 * BLOCK == max(measured)


def test_without_a_gamma_nothing_is_learnt(monkeypatch):
    """Rows that are too few to settle it by have only measured."""
    monkeypatch.setattr(replay_dealt, "SETTLE_S", 0.0)
    table = fed(4 * BLOCK, settles_at=2, scaling_rows=10**6)

    assert not table.hosts["replay"].node.learns
    assert None is table.hosts["r"].ledger.summary()
    assert 4 * BLOCK == table.hosts["r"].ledger.counts().learnt


# -- what a shell sees -------------------------------------------------------------


@pytest.fixture
def replay(monkeypatch, capsys, tmp_path):
    """Run the command against a fleet that acknowledges so many of 200 rows."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).standard_normal((200, 3)))
    submerge = shell(monkeypatch, capsys)

    def run(acknowledged: int):
        reported = IntoResult(200, acknowledged, 0, 0, 900, 1.0, ("replay-1", "replay-2"))
        monkeypatch.setattr("submerge_lab.replay.into.replay_into", lambda *_, **__: reported)
        link = ("--into", "grpc://localhost", "--insecure", "--group", "rows")
        return submerge("replay", tmp_path / "rows.npy", *link, "--json")

    return run


def test_a_replay_is_done_when_every_row_is_acknowledged(replay):
    """Exit status 0, and figures."""
    ran = replay(200)

    assert (0, 200, "") == (ran.status, json.loads(ran.out)["acknowledged"], ran.err)


@pytest.mark.parametrize(
    ("acknowledged", "words"),
    [
        (199, "199 of 200 rows were acknowledged, in 1 s: is the aggregator of that name there"),
        (201, "some were learnt twice; let the fleet forget replay-1, replay-2"),
    ],
)
def test_fewer_rows_have_failed_and_so_have_more(replay, acknowledged, words):
    """Exit status 1 and one line: a row that counts twice is as wrong as one that is lost."""
    ran = replay(acknowledged)

    assert (1, "") == (ran.status, ran.out)
    assert 1 == ran.err.count("\n")
    assert words in ran.err

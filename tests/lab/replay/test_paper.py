"""`submerge replay --paper`: its blocks, and a rank that moves."""

from __future__ import annotations

import numpy as np
import pytest

from submerge_client.datasets import read
from submerge_lab.replay.run import replay as run
from submerge_lab.replay.settings import PAPER, ReplaySettings
from support.commands import shell
from support.data import shared
from support.strategies import rows_of


@pytest.fixture
def falling(tmp_path):
    """Rows whose last singular values are small: the paper's rule shrinks the rank."""
    path = tmp_path / "falling.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.standard_normal((630, 20)) * np.arange(1, 21) ** -2.0 + 5)
    return path


def moments(path, **more):
    """Rows and rank after each block of the paper's algorithm."""
    _, curves = run(read([path]), ReplaySettings(**PAPER, **more), watch=True)
    return [(moment.rows, moment.rank) for moment in curves.leaves[0].moments]


def test_the_papers_block_is_fifty_rows_unless_another_is_asked_for(replay, falling):
    """Blocks of 50, the last 30 of 630 rows left out; of 20, the last 10."""
    fifty = replay(falling, "--paper")
    twenty = replay(falling, "--paper", "--block", 20)

    assert (600, 620) == (fifty["rows"], twenty["rows"])


def test_fewer_rows_than_the_papers_block_are_refused(monkeypatch, capsys, tmp_path):
    """One line, which does not name an option that was not given."""
    np.save(tmp_path / "short.npy", rows_of("noise", 49, 30, seed=0))
    status, _, err = shell(monkeypatch, capsys)("replay", tmp_path / "short.npy", "--paper")

    assert status == 2
    assert "--paper needs at least one block of 50 rows, got 49 rows" in err


def test_light_has_the_papers_rank(replay):
    """Rank 9, which misses more than rank 10, which it had at first."""
    found = replay(shared("motes/light.dat.gz"), "--paper")

    assert 9 == found["rank"]
    assert np.isclose(7.64e5, found["error"], rtol=1e-2)


def test_a_hold_off_lets_the_rank_move_later(falling):
    """Three blocks between changes at least, where there was one; the way down is the same."""
    at_once, held = (
        np.array([rank for _, rank in moments(falling, block=20, hold_off=hold)]) for hold in (0, 2)
    )

    moved = np.flatnonzero(np.diff(held))
    assert len(moved) > 1
    assert np.diff(moved).min() >= 3
    assert np.diff(np.flatnonzero(np.diff(at_once))).min() == 1
    assert at_once[-1] <= held[-1]

"""`submerge replay`: error over time, hold-off, and the bounds of an adaptive rank."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from submerge import SAPCA
from submerge_lab.replay.over_time import ErrorOverTime
from support.commands import shell
from support.data import shared
from support.strategies import rows_of


@pytest.fixture
def falling(tmp_path) -> Path:
    """Rows whose last singular values are small: the paper's rule shrinks the rank."""
    path = tmp_path / "falling.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.standard_normal((630, 20)) * np.arange(1, 21) ** -2.0 + 5)
    return path


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("factor", [1.0, 0.99])
def test_the_error_from_the_running_sum_is_that_of_all_rows(center, factor):
    """||Y - Y U U'||^2 over the weights, block after block, whatever is far from zero."""
    X = rows_of("decaying", 130, 9, seed=1) + 1e4
    engine = SAPCA(3, center=center, forgetting_factor=factor, exact="never", block_size=20)
    record = ErrorOverTime(9, forgetting_factor=factor, center=center)
    for start in range(0, len(X), 20):
        record.add(X[start : start + 20])
        shown = engine.partial_fit(X[start : start + 20]).shown
        record.note(shown)

        off = X[: start + 20] - shown.mean
        missed = np.sum((off - off @ shown.basis @ shown.basis.T) ** 2, axis=1)
        weights = factor ** np.arange(len(off) - 1, -1, -1.0)
        # Without centering, energies are 1e10 times what is missed, and so is their rounding.
        assert np.isclose(
            np.average(missed, weights=weights), record.noted.errors[-1], rtol=1e-8, atol=1e-6
        )


@pytest.mark.parametrize("options", [(), ("--center", "none"), ("--forgetting-factor", 0.99)])
def test_the_last_error_over_time_is_the_replays_own(replay, falling, options):
    """The same rows, the same subspace; there is an error for each block."""
    found = replay(falling, "--exact", "never", "--block", 50, "--over-time", *options)
    over_time = found["over_time"]

    assert np.isclose(found["error"], over_time["errors"][-1], rtol=1e-8)
    assert [*range(50, 650, 50), 630] == over_time["rows"]
    assert found["rank"] == over_time["ranks"][-1]
    assert "over_time" not in replay(falling)


def test_the_papers_block_is_fifty_rows_unless_another_is_asked_for(replay, falling):
    """Blocks of 50, the last 30 of 630 rows left out; with --block 40 the last 30 as well."""
    fifty = replay(falling, "--paper", "--over-time")
    forty = replay(falling, "--paper", "--block", 40, "--over-time")

    assert (600, 50) == (fifty["rows"], fifty["over_time"]["rows"][0])
    assert (600, 40) == (forty["rows"], forty["over_time"]["rows"][0])


def test_fewer_rows_than_the_papers_block_are_refused(monkeypatch, capsys, tmp_path):
    """One line, which does not name an option that was not given."""
    np.save(tmp_path / "short.npy", rows_of("noise", 49, 30, seed=0))
    status, _, err = shell(monkeypatch, capsys)("replay", tmp_path / "short.npy", "--paper")

    assert status == 2
    assert "--paper needs at least one block of 50 rows, got 49 rows" in err


def test_light_has_the_papers_rank_and_its_bounds(replay):
    """At rank 9 SAPCA is what SPCA is; rank 10, which it had at first, misses less."""
    found = replay(shared("motes/light.dat.gz"), "--paper", "--bounds")
    low, high = found["bounds"]["lo"], found["bounds"]["hi"]

    assert (9, 9, 10) == (found["rank"], low["rank"], high["rank"])
    assert np.isclose(found["error"], low["error"], rtol=1e-2)
    assert low["error"] > high["error"]
    assert np.isclose(6.820e5, high["error"], rtol=1e-4)


def test_an_adaptive_rank_lies_between_its_bounds(replay, falling):
    """Once the rank has fallen, and on its way: never above lo, never below hi."""
    found = replay(falling, "--paper", "--rank", 10, "--bounds", "--over-time")
    curves = [each["over_time"]["errors"] for each in found["bounds"].values()]
    low, high = (np.array(each) for each in curves)
    errors = np.array(found["over_time"]["errors"])

    assert found["bounds"]["lo"]["rank"] < found["bounds"]["hi"]["rank"] == 10
    assert np.all(errors <= low * 1.01)
    assert np.all(errors >= high * 0.99)


def test_a_hold_off_lets_the_rank_move_later(replay, falling):
    """Three blocks between changes at least, where there was one; the way down is the same."""
    at_once, held = (
        replay(falling, "--paper", "--block", 20, "--over-time", *options)["over_time"]["ranks"]
        for options in ((), ("--hold-off", 2))
    )

    moved = np.flatnonzero(np.diff(held))
    assert len(moved) > 1
    assert np.diff(moved).min() >= 3
    assert np.diff(np.flatnonzero(np.diff(at_once))).min() == 1
    assert at_once[-1] <= held[-1]


def test_bounds_are_printed_for_people(monkeypatch, capsys, falling):
    """A line for each, with its rank."""
    status, out, _ = shell(monkeypatch, capsys)("replay", falling, "--paper", "--bounds")

    assert status == 0
    assert "fixed lo     rank " in out
    assert "fixed hi     rank 10, the largest: error " in out


@pytest.mark.slow
def test_the_picture_has_the_bounds(monkeypatch, capsys, falling, tmp_path):
    """With errors over time they are curves, without them lines: two pictures."""
    submerge = shell(monkeypatch, capsys)
    pictures = []
    for number, options in enumerate([(), ("--over-time",)]):
        path = tmp_path / f"{number}.png"
        options = ("--paper", "--bounds", "--plot", path, *options)
        status, _, err = submerge("replay", falling, *options)
        assert status == 0, err
        pictures.append(path.read_bytes())

    assert all(each.startswith(b"\x89PNG") for each in pictures)
    assert pictures[0] != pictures[1]

"""A job over a fleet without failures is the job in one process."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import UsageError
from submerge.jobs.local_run import run_here
from submerge.jobs.roster import names
from support.job_table import JobTable, job


def clouds(n: int, seed: int = 0) -> np.ndarray:
    """Rows in two clouds in the plane, far apart."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) + 9.0 * rng.integers(2, size=n)[:, None]


def fleet() -> dict[str, object]:
    """Three levels, with one client right below the root."""
    parts = np.split(clouds(300), [20, 90, 100, 240])
    a, b, c, d, e = parts
    return {"hall": {"a": a, "deep": {"b": b, "c": c}}, "gate": {"d": d}, "e": e}


def same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> bool:
    """Whether arrays are equal to the bit."""
    return left.keys() == right.keys() and all(
        left[name].tobytes() == right[name].tobytes() for name in left
    )


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("moments", {"held_out": 0.3}), ("kmeans", {"clusters": 3, "held_out": 0.2, "seed": 5})],
)
def test_a_fleet_has_the_answer_of_one_process_to_the_bit(kind, settings):
    """Three levels, payloads in many pieces; everyone stays, and everyone hears of the end."""
    table = JobTable(fleet())

    outcome = table.run(job(kind, settings=settings, piece_bytes=256))

    assert same(run_here(kind, settings, fleet()), outcome.answer)
    assert frozenset("abcde") == names(outcome.stayed)
    assert ({}, {}, "", 1) == (outcome.left, outcome.declined, outcome.failure, outcome.attempts)
    assert {"root", "hall", "deep", "gate", *"abcde"} == {name for name, _ in table.outcomes}
    assert all(same(outcome.answer, each.answer) for _, each in table.outcomes)


def test_nothing_is_held_when_a_job_is_over():
    """No role has a job, a byte of one, or anything to wake up for."""
    table = JobTable(fleet())
    table.run(job())

    assert {()} == {role.jobs for role in table.roles.values()}
    assert {0} == {role.held_bytes for role in table.roles.values()}
    assert {np.inf} == {role.wakes_at for role in table.roles.values()}
    assert {} == table.kept


def test_the_tree_changes_rounding_and_nothing_else():
    """Flat, or in three levels: the same centers to the last digits."""
    flat = dict(zip("abcde", np.split(clouds(300), [20, 90, 100, 240]), strict=True))
    settings = {"clusters": 2}

    tree = run_here("kmeans", settings, fleet())
    for name, array in run_here("kmeans", settings, flat).items():
        np.testing.assert_allclose(array, tree[name], rtol=1e-12, atol=1e-12)


def test_moments_are_those_of_all_rows():
    """The slow twin is NumPy's, on the stack."""
    parts = fleet()
    rows = clouds(300)

    answer = run_here("moments", {}, parts)

    np.testing.assert_allclose(rows.mean(axis=0), answer["mean"])
    np.testing.assert_allclose(rows.var(axis=0), answer["variance"])
    assert 300 == answer["count"][0]


def test_rows_that_are_held_out_are_measured_and_not_learnt():
    """Centers do not see them; their number is about the share, the same in each run."""
    answer = run_here("kmeans", {"clusters": 2, "held_out": 0.25}, {"a": clouds(400)})
    count, cost = answer["held_out"]

    assert 400 == answer["counts"].sum() + count
    assert 60 < count < 140
    assert 1.0 < cost / count < 3.0  # two channels of variance 1


@pytest.mark.parametrize(
    ("kind", "settings", "parts", "says"),
    [
        ("pca", {}, {"a": clouds(3)}, "one of kmeans"),
        ("kmeans", {}, {"a": clouds(3)}, "needs the setting clusters"),
        ("kmeans", {"clusters": 2, "colour": 1}, {"a": clouds(3)}, "colour"),
        ("kmeans", {"clusters": 9}, {"a": clouds(3)}, "at most the 0 of five rows"),
        ("moments", {}, {"a": clouds(0)}, "one row or more"),
        ("moments", {}, {"a": clouds(3), "b": {"a": clouds(3)}}, "a twice"),
        ("moments", {}, {"a": clouds(3), "b": np.ones((1, 3))}, "one width"),
        ("moments", {"held_out": 2}, {"a": clouds(3)}, "held_out"),
        ("moments", {"seed": "x"}, {"a": clouds(3)}, "seed"),
        ("moments", {}, {}, "one participant or more, got none"),
        ("moments", {}, {"gate": {}}, "one participant or more, got none"),
        ("moments", {}, clouds(3), "parts are rows by node, as .*, got ndarray"),
        ("moments", {}, {"a": [["on", 1], ["off", 2]]}, "rows of a are a table of numbers"),
        ("moments", {}, {"a": [1.0, 2.0]}, r"must have shape \(n, width\), got \(2,\)"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_reason(kind, settings, parts, says):
    """One line that says what to change."""
    with pytest.raises(UsageError, match=says):
        run_here(kind, settings, parts)


def test_rows_may_be_lists():
    """They are what their array is."""
    rows = clouds(12)

    listed = run_here("moments", {}, {"a": rows.tolist()})
    assert same(run_here("moments", {}, {"a": rows}), listed)

"""Points: the smallest keys of all, the law they follow, and what a parent refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import PeerError
from submerge.features import Gaussian, Landmarks, Polynomial
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca import points
from submerge.jobs.kinds.kpca.points import PointChoice
from submerge.jobs.points import draws, draws_at, node_id
from support import kernels, oracle_kpca


def test_a_number_of_a_stream_is_found_without_those_before_it():
    """A parent checks a row of a million without drawing a million numbers."""
    rows = np.array([0, 1, 3, 4, 5, 77, 4099], dtype=np.uint64)

    np.testing.assert_array_equal(
        draws(7, "pump-1", "points 1", 4100)[rows.astype(int)],
        draws_at(7, "pump-1", "points 1", rows),
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_points_follow_the_law_of_their_scores(seed):
    """The first of all is drawn in proportion to the scores: chi-square over four rows."""
    scores, counts = np.array([1.0, 2.0, 3.0, 6.0]), np.zeros(4)
    for trial in range(2000):
        keys = PointChoice(2000 * seed + trial, 1, 1, 1).keys(scores, node_id("pump-1"))
        counts[np.argmin(keys)] += 1

    expected = 2000 * scores / scores.sum()
    # The 99.9 % quantile of chi-square with three degrees of freedom.
    assert ((counts - expected) ** 2 / expected).sum() < 16.27


def test_rows_of_two_nodes_and_two_choices_have_their_own_numbers():
    """Equal rows have other keys elsewhere, and in the next choice."""
    ones = np.ones(50)
    keys = {
        (node, stage): tuple(PointChoice(3, stage, 5, 5).keys(ones, node_id(node)).tolist())
        for node in ("a", "b")
        for stage in (1, 2)
    }

    assert 4 == len(set(keys.values()))


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(5)), st.integers(1, 4), st.integers(1, 12))
def test_the_smallest_keys_do_not_depend_on_the_tree(order, cut, size):
    """They are those that a sort of all finds."""
    rng = np.random.default_rng(4)
    parts = {name: rng.random((9, 2)) for name in "abcde"}
    scores = {name: rows[:, 0] for name, rows in parts.items()}
    choice, offers = PointChoice(8, 1, size, size), {}
    for name in parts:
        keys = choice.keys(scores[name], node_id(name))
        offers[name] = keys[choice.smallest(keys, 100)]
    mixed = [offers["abcde"[i]] for i in order]
    halves = [points.merged_keys(some, size) for some in (mixed[:cut], mixed[cut:])]

    found = points.merged_keys(halves, size)

    all_keys = {name: choice.keys(scores[name], node_id(name)) for name in parts}
    twin = [all_keys[name][i] for name, i in oracle_kpca.smallest(parts, scores, 1, size, 8)]
    np.testing.assert_array_equal(twin, found)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Polynomial(4, 0.2), Polynomial(2, 0.2, 1.0)])
def test_residuals_are_those_of_least_squares(kernel):
    """Never negative, and 0 for the points themselves."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    P = X[:6]

    found = points.residuals(X, Landmarks(kernel, P))

    twin = kernels.off_span(kernel(P, P), kernel(X, P), np.diag(kernel(X, X)))
    np.testing.assert_allclose(twin, found, atol=1e-8 * twin.max())
    assert (found >= 0).all()
    assert (found[:6] == 0).all()


def test_what_one_node_may_supply_depends_on_how_many_there_are():
    """A quarter; where two nodes share, each must supply half."""
    assert [50, 100, 200] == [points.limit_of(200, 0.25, nodes) for nodes in (8, 2, 1)]
    assert 1 == points.limit_of(3, 0.0, 1000)


# -- what a parent refuses -------------------------------------------------------------------


KERNEL = Gaussian(0.5)
CHOICE = PointChoice(5, 1, 8, 4)


def supplied(name: str = "pump-1", seed: int = 0) -> tuple[dict, float]:
    """Return what a node honestly supplies, and the largest key that was taken."""
    rows = np.random.default_rng(seed).standard_normal((40, 2)).astype(np.float32).astype(float)
    keys = CHOICE.keys(points.own_squares(rows, KERNEL), node_id(name))
    order = CHOICE.smallest(keys, 100)
    return dict(points.rows_up(node_id(name), rows, order)), float(keys[order[-1]])


def check(up: dict, largest: float) -> None:
    points.check_rows(up, 2, CHOICE)
    scores = points.own_squares(up["points"].astype(np.float64), KERNEL)
    points.check_chosen(up, CHOICE, scores, 1e-8 * scores, largest)


def test_honest_points_of_several_nodes_pass():
    """Also merged, in any order."""
    (one, a), (other, b) = supplied("pump-1"), supplied("pump-2", 1)
    merged = points.merged_rows([one, other])

    check(dict(merged), max(a, b))
    for name, array in points.merged_rows([other, one]).items():
        np.testing.assert_array_equal(merged[name], array)


def test_a_row_whose_key_is_larger_than_what_was_taken_is_refused():
    """No node pushes in a row that the draw has not chosen."""
    up, largest = supplied()

    with pytest.raises(PeerError, match="not one that its key would choose"):
        check(up, largest * 0.5)


def test_a_row_under_another_nodes_name_has_another_key():
    """The numbers u are those of the node that is named."""
    up, largest = supplied()
    up["nodes"] = np.array([node_id("pump-9")], dtype=np.uint64)

    with pytest.raises(PeerError, match="not one that its key would choose"):
        check(up, largest)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda up: up | {"rows": up["rows"][[0, 0, 2, 3]]}, "a point once"),
        (lambda up: up | {"supplied": up["supplied"] + np.uint64(1)}, "supplies at most 4"),
        (lambda up: {n: np.concatenate([a, a]) for n, a in up.items()}, "by node"),
        (lambda up: up | {"points": up["points"].astype(np.float64)}, "expected float32"),
    ],
    ids=["twice", "miscounted", "one node in two", "float64"],
)
def test_points_of_another_form_are_refused(change, why):
    """Each with its reason."""
    up, largest = supplied()

    with pytest.raises(PeerError, match=why):
        check(change(up), largest)


@pytest.mark.parametrize("keys", [[2.0, 1.0], [0.0], [-1.0], [1.0] * 9, [np.inf]])
def test_keys_of_another_form_are_refused(keys):
    """They are positive, ascending and no more than the points."""
    down = PhaseDown("keys-1", {"limit": np.full(1, 4.0)})

    with pytest.raises(PeerError):
        points.check_keys({"keys": np.array(keys)}, 8, down, 2)


def test_keys_are_of_as_many_rows_as_its_clients_may_offer():
    """Else one node's small keys would leave no room for those of others."""
    down, keys = PhaseDown("keys-1", {"limit": np.full(1, 4.0)}), {"keys": np.full(5, 1e-3)}

    points.check_keys(keys, 8, down, 2)
    with pytest.raises(PeerError, match="at most 4"):
        points.check_keys(keys, 8, down, 1)

"""The kind k-means: its rounds against one machine with all rows, and its sample against a sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import PeerError
from submerge.jobs.kind import JobAnswer, PhaseDown
from submerge.jobs.kinds.kmeans import KMeansJob, distance_counts
from submerge.jobs.local_run import run_here, split_here
from submerge.jobs.points import JobPoints, split
from submerge.jobs.row_groups import near_groups

SEED_PHASE = PhaseDown("seed", {})

MEASURED = {"counts": [1.0, 1], "cost": [1.0], "held_out": [1.0, 2.0]}
MEASURED["distances"] = distance_counts(np.array([2.0]))


def clouds(n: int, seed: int = 0) -> np.ndarray:
    """Rows in four clouds in the plane, far apart."""
    rng = np.random.default_rng(seed)
    corners = np.array([[0.0, 0], [0, 12], [12, 0], [12, 12]])
    return corners[rng.integers(4, size=n)] + rng.standard_normal((n, 2))


def pooled_kmeans(
    rows: np.ndarray, centers: np.ndarray, steps: int, tolerance: float
) -> tuple[np.ndarray, float]:
    """Lloyd's algorithm on one machine, row by row: the slow twin of the rounds."""
    before = np.inf
    for _ in range(steps):
        square = [[float(((x - c) ** 2).sum()) for c in centers] for x in rows]
        labels = [each.index(min(each)) for each in square]
        cost = sum(map(min, square))
        for c in set(labels):
            mine = [x for x, label in zip(rows, labels, strict=True) if label == c]
            centers = centers.copy()
            centers[c] = np.mean(mine, axis=0)
        if not before - cost > tolerance * cost:
            break
        before = cost
    last = sum(min(float(((x - c) ** 2).sum()) for c in centers) for x in rows)
    return centers, last


def first_round(kind: KMeansJob, parts: dict[str, np.ndarray]) -> tuple[object, PhaseDown]:
    """Return the root's state and the first centers."""
    ups = [
        kind.contribute(None, SEED_PHASE, JobPoints(rows, rows[:0]), name)[1]
        for name, rows in sorted(parts.items())
    ]
    return kind.next(kind.first()[0], SEED_PHASE, kind.merge(SEED_PHASE, ups))


@pytest.mark.parametrize("cuts", [[], [80], [80, 160]])
def test_rounds_move_centers_as_one_machine_would(cuts):
    """From the same first centers, to the last digits: no part has few rows of a cluster."""
    parts = dict(zip("abcde", np.split(clouds(240), cuts), strict=False))
    kind = KMeansJob({"clusters": 4, "steps": 7}, 2)

    _, down = first_round(kind, parts)
    expected, cost = pooled_kmeans(clouds(240), down.arrays["centers"], 7, 1e-4)
    answer = run_here("kmeans", {"clusters": 4, "steps": 7}, parts)

    np.testing.assert_allclose(expected, answer["centers"], rtol=1e-12)
    np.testing.assert_allclose(cost, answer["cost"][0], rtol=1e-12)
    assert 240 == answer["counts"].sum()


@pytest.mark.parametrize("sorted_by_cloud", [False, True])
def test_clusters_of_all_rows_are_found(sorted_by_cloud):
    """Mixed, or a cloud a node, which no node could find alone."""
    rows = clouds(400)
    if sorted_by_cloud:
        rows = rows[np.lexsort((rows[:, 1] > 6, rows[:, 0] > 6))]
    parts = dict(zip("abcd", np.array_split(rows, 4), strict=True))

    centers = run_here("kmeans", {"clusters": 4}, parts)["centers"]

    order = np.lexsort((np.round(centers[:, 1]), np.round(centers[:, 0])))
    np.testing.assert_allclose([[0, 0], [0, 12], [12, 0], [12, 12]], centers[order], atol=0.5)


def keyed(kind: KMeansJob, rows: np.ndarray, names: str) -> list[dict[str, np.ndarray]]:
    """Return the samples of some nodes."""
    parts = zip(names, np.array_split(rows, len(names)), strict=True)
    return [
        kind.contribute(None, SEED_PHASE, JobPoints(part, part[:0]), name)[1]
        for name, part in parts
    ]


@pytest.mark.slow
@settings(max_examples=30)
@given(st.permutations(range(6)), st.integers(1, 5))
def test_a_sample_is_the_same_whatever_the_tree(order, cut):
    """The smallest keys of all, as a sort of all finds them."""
    kind = KMeansJob({"clusters": 3, "sample": 5}, 2)
    ups = keyed(kind, clouds(60), "abcdef")
    mixed = [ups[i] for i in order]

    halves = [kind.merge(SEED_PHASE, mixed[:cut]), kind.merge(SEED_PHASE, mixed[cut:])]
    sample = kind.merge(SEED_PHASE, halves)

    keys = sorted(key for up in ups for key in up["keys"])
    np.testing.assert_array_equal(keys[:6], sample["keys"])
    np.testing.assert_array_equal(kind.merge(SEED_PHASE, ups)["points"], sample["points"])


@pytest.mark.slow
def test_a_sample_stands_for_all_rows():
    """On average over seeds its weights add up to the rows: what was left out is made up for."""
    totals = []
    for seed in range(150):
        kind = KMeansJob({"clusters": 4, "sample": 8, "seed": seed}, 2)
        sample = kind.merge(SEED_PHASE, keyed(kind, clouds(240), "abcdef"))
        weights, threshold = sample["weights"][:-1], sample["keys"][-1]
        totals.append(float((weights / -np.expm1(-weights * threshold)).sum()))

    # The mean of 150 estimates with a deviation of a tenth or so: five of its own deviations.
    error = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - 240) < 5 * error
    assert error < 10


def test_empty_nodes_and_repeated_rows_do_no_harm():
    """A node without rows, and one whose rows are all the same."""
    parts = {"a": clouds(50), "b": np.empty((0, 2)), "c": np.full((20, 2), 12.0)}

    assert 70 == run_here("kmeans", {"clusters": 4}, parts)["counts"].sum()


def test_a_contribution_is_the_same_each_time():
    """Bytes and all: so a repeated one is no second one."""
    kind = KMeansJob({"clusters": 4, "seed": 3}, 2)
    one, other = (
        kind.contribute(None, SEED_PHASE, JobPoints(clouds(90), clouds(0)), "pump-1")[1]
        for _ in range(2)
    )

    assert {n: a.tobytes() for n, a in one.items()} == {n: a.tobytes() for n, a in other.items()}


def test_rows_are_held_out_by_their_order_groups_as_a_whole():
    """Whatever the share and the seed; eight stay; rows with gaps, or too large, do not."""
    rows, order = clouds(80), np.random.default_rng(1).random(80)
    numbers = near_groups(rows)
    groups = {frozenset(map(tuple, rows[numbers == i])) for i in range(numbers.max() + 1)}
    for share in (0.0, 0.05, 0.3, 0.31, 0.9):
        for seed in (0, 1):
            points = split(rows, {"held_out": share, "seed": seed}, order)
            for part, labels in (
                (points.rows, points.groups),
                (points.held_out, points.groups_out),
            ):
                mine = {frozenset(map(tuple, part[labels == i])) for i in {*labels.tolist()}}
                assert mine <= groups
            assert 80 * share - 9 <= len(points.held_out) <= 80 * share + 1e-6
            assert len(points.rows) >= 8
    bad = rows.copy()
    bad[5, 0], bad[7, 1] = np.nan, 1e200

    kept = split(bad, {"held_out": 0.3}, order)
    assert 78 == len(kept.rows) + len(kept.held_out)


@pytest.mark.parametrize(
    ("phase", "up"),
    [
        ("lloyd", {"counts": [1.0, -1], "sums": np.ones((2, 2)), "cost": [1.0]}),
        ("lloyd", {"counts": [1.0], "sums": np.ones((2, 2)), "cost": [1.0]}),
        ("lloyd", {"counts": [1.0, 1], "sums": np.full((2, 2), 1e101), "cost": [1.0]}),
        ("lloyd", {"counts": [1.0, 1], "sums": np.ones((2, 2))}),
        ("measure", {**MEASURED, "held_out": [1.0, -2.0]}),
        ("measure", {**MEASURED, "held_out": [2.0, 2.0]}),
        ("measure", {**MEASURED, "distances": 2.0 * MEASURED["distances"]}),
        ("measure", {**MEASURED, "distances": MEASURED["distances"][1:]}),
        ("seed", {"keys": [2.0, 1.0], "weights": [1.0, 1], "points": np.ones((2, 2))}),
        ("seed", {"keys": [1.0, 2.0], "weights": [1.0, 0], "points": np.ones((2, 2))}),
        ("seed", {"keys": [1.0, 2.0], "weights": [1.0, 1], "points": np.ones((2, 3))}),
        ("seed", {"keys": [0.5], "weights": [1.0, 1], "points": np.ones((2, 2))}),
        ("seed", {}),
    ],
)
def test_what_no_child_sends_is_refused(phase, up):
    """Before it is merged with anything."""
    with pytest.raises(PeerError):
        KMeansJob({"clusters": 2}, 2).check_up(
            PhaseDown(phase, {}), {name: np.array(value) for name, value in up.items()}
        )


def test_what_no_root_sends_is_refused():
    """Another phase, or centers of another shape."""
    kind = KMeansJob({"clusters": 2}, 2)
    for down in (PhaseDown("open", {}), PhaseDown("lloyd", {"centers": np.ones((2, 3))})):
        with pytest.raises(PeerError):
            kind.check_down(down)


def test_an_answer_comes_after_the_last_step():
    """steps = 1: seed, one step, measure."""
    kind = KMeansJob({"clusters": 2, "steps": 1}, 2)
    points, phases = JobPoints(clouds(20), clouds(0)), []
    state, down = kind.first()
    while True:
        phases.append(down.phase)
        result = kind.next(state, down, kind.contribute(None, down, points, "a")[1])
        if isinstance(result, JobAnswer):
            break
        state, down = result

    assert ["seed", "lloyd", "measure"] == phases


def test_what_a_child_sends_is_accepted():
    """The other side of what is refused."""
    kind = KMeansJob({"clusters": 2}, 2)
    up = {name: np.array(value) for name, value in MEASURED.items()}

    assert kind.check_up(PhaseDown("measure", {}), up) is None


@given(st.integers(0, 12), st.integers(1, 6), st.sampled_from([0.0, 0.5, 0.9]), st.integers(0, 99))
def test_no_row_of_a_participant_is_in_what_it_sends(n, clusters, held_out, seed):
    """However few rows it has: no center of its own, and no sum, is one of them."""
    rows = np.random.default_rng(seed).standard_normal((n, 2))
    settings = {"clusters": clusters, "seed": seed, "held_out": held_out}
    kind = KMeansJob(settings, 2)
    points = split_here("pump-1", rows, settings)
    _, seeds = kind.contribute(None, PhaseDown("seed", {}), points, "pump-1")
    centers = np.random.default_rng(seed + 1).standard_normal((clusters, 2))
    _, sums = kind.contribute(None, PhaseDown("lloyd", {"centers": centers}), points, "pump-1")
    own = {tuple(row) for row in rows}

    assert not own & {tuple(point) for point in seeds["points"]}
    assert not own & {tuple(row) for row in sums["sums"]}


@given(st.integers(0, 12), st.sampled_from([0.0, 0.5, 0.9]), st.integers(0, 99))
def test_a_single_row_is_not_learnt_from(n, held_out, seed):
    """It is held out, so that all rows are still counted."""
    rows = np.random.default_rng(seed).standard_normal((n, 2))
    points = split_here("pump-1", rows, {"seed": seed, "held_out": held_out})

    assert 1 != len(points.rows)
    assert n == len(points.rows) + len(points.held_out)

"""kpca with clusters: k-means of the scores of all rows, against one machine with all of them."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import PeerError
from submerge.errors import UsageError
from submerge.features import Gaussian
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca.answer import map_of
from submerge.jobs.kinds.kpca.job import KernelPcaJob
from submerge.jobs.local_run import run_here, split_here
from submerge.jobs.membership import ClusterMembership
from support import clusters, kernels
from support.job_table import JobTable, job

SETTINGS = {"components": 6, "points": 60, "gamma": 0.3, "clusters": 4, "held_out": 0.2}


def servers(n: int = 400) -> dict[str, np.ndarray]:
    """Rows of four clouds in space, on five servers, sizes by a power law."""
    rng = np.random.default_rng(3)
    rows = 5.0 * rng.standard_normal((4, 3))[rng.integers(4, size=n)] + rng.standard_normal((n, 3))
    parts = kernels.power_law(rows.astype(np.float32).astype(np.float64), 5, rng)
    return {f"server-{i}": part for i, part in enumerate(parts)}


def scores(answer: dict, rows: np.ndarray) -> np.ndarray:
    return (map_of(answer).lift(rows) - answer["mean"]) @ answer["axes"]


def distances(answer: dict, rows: np.ndarray) -> np.ndarray:
    """Squared distances (n, k) to the centers, one by one."""
    found = scores(answer, rows)
    return np.array(
        [[((row - center) ** 2).sum() for center in answer["centers"]] for row in found]
    )


@pytest.mark.parametrize("kind", ["kpca", "nystrom"])
def test_centers_are_the_means_of_the_scores_that_are_nearest(kind):
    """One machine that projects all rows agrees but for groups of rows at the borders."""
    parts = servers()
    answer = run_here(kind, SETTINGS, parts)
    points = [split_here(name, rows, SETTINGS) for name, rows in parts.items()]
    learnt = np.concatenate([each.rows for each in points])
    held_out = np.concatenate([each.held_out for each in points])
    squares = distances(answer, learnt)
    nearest = squares.argmin(axis=1)
    means = [scores(answer, learnt)[nearest == c].mean(axis=0) for c in range(4)]

    np.testing.assert_allclose(means, answer["centers"], atol=0.04)
    assert np.abs(np.bincount(nearest, minlength=4) - answer["cluster_counts"]).max() <= 10
    best = [squares.min(axis=1).sum(), distances(answer, held_out).min(axis=1).sum()]
    assert 1.0 - 1e-9 <= answer["cost"][0] / best[0] < 1.06
    assert 1.0 - 1e-9 <= answer["held_out"][1] / best[1] < 1.06
    assert [len(learnt), len(held_out)] == [answer["cluster_counts"].sum(), answer["held_out"][0]]


def test_clusters_are_those_of_the_whole_kernel_matrix():
    """Kernel k-means by its definition, on all rows at once, puts 98 % of them in the same ones."""
    parts = servers()
    rows = np.concatenate([*parts.values()])
    answer = run_here("kpca", {**SETTINGS, "held_out": 0.0}, parts)
    whole = clusters.kernel_kmeans(Gaussian(0.3)(rows, rows), 4, seed=0)

    assert clusters.accuracy(whole, distances(answer, rows).argmin(axis=1)) >= 0.98


def test_the_rest_of_the_answer_is_that_without_clusters():
    parts = servers()
    alone = run_here("kpca", {**SETTINGS, "clusters": 0}, parts)
    answer = run_here("kpca", SETTINGS, parts)

    assert answer.keys() - alone.keys() == {
        *("centers", "cluster_counts", "cost", "held_out", "distance_levels", "distance_limits")
    }
    assert all(alone[name].tobytes() == answer[name].tobytes() for name in alone)


def test_directions_that_rows_do_not_have_score_0():
    """Five points have five directions at most, and eight are asked for."""
    near = {f"n{i}": np.repeat(np.eye(3), 6, axis=0) + i % 2 for i in range(4)}
    answer = run_here("kpca", {"components": 8, "clusters": 2, "gamma": 0.5}, near)

    assert (2, 8) == answer["centers"].shape
    assert answer["axes"].shape[1] < 8
    assert not answer["centers"][:, answer["axes"].shape[1] :].any()
    rows = np.concatenate([*near.values()])
    kept = ClusterMembership.of(job("kpca", width=3), answer).assign(rows)
    padded = np.pad(scores(answer, rows), ((0, 0), (0, 8 - answer["axes"].shape[1])))
    by_hand = np.linalg.norm(padded[:, None] - answer["centers"], axis=2)
    np.testing.assert_allclose(by_hand.min(axis=1), kept.distances, atol=1e-7)


@pytest.mark.parametrize("kind", ["kpca", "nystrom"])
def test_a_row_is_in_the_cluster_that_the_job_counted_it_in(kind):
    """What clients keep adds up to the answer's counts, but for rows of a group across a border."""
    settings = {**SETTINGS, "held_out": 0.0, "keep": True}
    parts = servers()
    answer = run_here(kind, settings, parts)
    kept = ClusterMembership.of(job(kind, width=3), answer).assign(
        np.concatenate([*parts.values()])
    )

    assert np.abs(np.bincount(kept.numbers) - answer["cluster_counts"]).max() <= 20
    assert 1.0 - 1e-9 <= answer["cost"][0] / np.square(kept.distances).sum() < 1.06


def test_clusters_are_kept_where_there_are_any():
    with pytest.raises(UsageError, match="add clusters"):
        KernelPcaJob({"components": 2, "keep": True}, 3)


def test_over_the_machine_the_answer_has_the_same_bytes():
    parts = {name: rows[:, :2].copy() for name, rows in servers(150).items()}
    tree = {"hall": {n: parts[n] for n in ("server-0", "server-1")}, "server-4": parts["server-4"]}
    settings = {**SETTINGS, "clusters": 2}

    outcome = JobTable(tree, share_points=50).run(job("kpca", settings=settings))

    expected = run_here("kpca", settings, tree, share_points=50)
    assert outcome.answer is not None, outcome.failure
    assert all(expected[name].tobytes() == outcome.answer[name].tobytes() for name in expected)


@pytest.mark.parametrize(
    ("settings", "phase", "shapes"),
    [
        ({**SETTINGS, "clusters": 0}, "kmeans-seed", {"axes": (9, 6), "mean": (9,)}),
        (SETTINGS, "kmeans-seed", {"axes": (9, 5), "mean": (9,)}),
        (SETTINGS, "kmeans-seed", {"axes": (9, 6), "mean": (8,)}),
        (SETTINGS, "kmeans-lloyd", {"centers": (4, 5)}),
        (SETTINGS, "kmeans-other", {"centers": (4, 6)}),
    ],
)
def test_what_no_root_asks_is_refused(settings, phase, shapes):
    """Phases of k-means where none was ordered, and arrays of another form."""
    arrays = {name: np.ones(shape) for name, shape in shapes.items()}

    with pytest.raises(PeerError):
        KernelPcaJob(settings, 3).check_down(PhaseDown(phase, arrays))


def test_what_k_means_refuses_is_refused():
    """More rows than so many participants hold."""
    up = {"counts": np.full(4, 1e9), "sums": np.zeros((4, 6)), "cost": np.zeros(1)}
    down = PhaseDown("kmeans-lloyd", {"centers": np.zeros((4, 6))})

    with pytest.raises(PeerError):
        KernelPcaJob(SETTINGS, 3).check_up(down, up, 5)
    KernelPcaJob(SETTINGS, 3).check_up(down, {**up, "counts": np.full(4, 9.0)}, 5)

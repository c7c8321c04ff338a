"""To which cluster a row belongs: against a loop over rows, and what is refused of an answer."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import PeerError
from submerge.errors import ShapeError, UsageError
from submerge.jobs.job import Job
from submerge.jobs.kinds import cluster_scores
from submerge.jobs.local_run import run_here
from submerge.jobs.membership import MOST_BYTES, NO_CLUSTER, ClusterMembership
from support import clusters
from support.job_table import job

X, TRUTH = clusters.rings(300, seed=0)
SETTINGS = {
    "kmeans": {"clusters": 3, "held_out": 0.5},
    "cluster": {"clusters": 2, "held_out": 0.5, "features": 64},
    "kpca": {"components": 3, "clusters": 2, "held_out": 0.5, "points": 40, "keep": True},
    "nystrom": {"components": 3, "clusters": 2, "held_out": 0.5, "points": 40, "keep": True},
}


@pytest.fixture(scope="module")
def answers() -> dict[str, dict]:
    """An answer of each kind that has clusters."""
    return {kind: dict(run_here(kind, given, {"a": X})) for kind, given in SETTINGS.items()}


def of(kind: str) -> Job:
    """The job of an answer."""
    return job(kind, settings=SETTINGS[kind])


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_row_belongs_to_the_nearest_center(kind, answers):
    """Number and distance, row by row, of rows or of their scores."""
    kept = ClusterMembership.of(of(kind), answers[kind])
    places = X if kept.scores is None else kept.scores(X)

    by_row = [
        min((float(np.linalg.norm(x - c)), i) for i, c in enumerate(kept.centers)) for x in places
    ]
    found = kept.assign(X)

    assert [i for _, i in by_row] == found.numbers.tolist()
    np.testing.assert_allclose([d for d, _ in by_row], found.distances, atol=1e-7)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_block_is_its_rows(kind, answers):
    """One row at a time, or all of them: the same numbers."""
    kept = ClusterMembership.of(of(kind), answers[kind])

    one_by_one = [int(kept.assign(X[i : i + 1]).numbers[0]) for i in range(50)]

    assert one_by_one == kept.assign(X[:50]).numbers.tolist()


@pytest.mark.parametrize("kind", SETTINGS)
def test_rows_with_gaps_have_no_cluster(kind, answers):
    """NaN, a gap that was filled, and a number that is none; the other rows have theirs."""
    kept = ClusterMembership.of(of(kind), answers[kind])
    rows, gaps = X[:4].copy(), np.zeros((4, 2), dtype=bool)
    rows[0, 0], rows[1, 1], gaps[2, 0] = np.nan, 1e200, True

    found = kept.assign(rows, gaps)

    assert [NO_CLUSTER] * 3 == found.numbers[:3].tolist()
    assert np.isnan(found.distances[:3]).all()
    assert [0.0] * 3 == found.over[:3].tolist()
    assert kept.assign(X).numbers[3] == found.numbers[3]


@pytest.mark.parametrize("kind", SETTINGS)
def test_few_normal_rows_exceed_a_limit(kind, answers):
    """Of new rows 5 % exceed the limit of 95 %, or thereabouts."""
    kept = ClusterMembership.of(of(kind), answers[kind])
    fresh = clusters.rings(1000, seed=7)[0]

    over = kept.assign(fresh).over

    # 300 rows held out: the share beyond their 95 % is .05 with a deviation of .013.
    assert 0.0 < (over >= 0.95).mean() < 0.1
    assert {0.0, 0.95, 0.99} >= set(over.tolist())


def test_a_row_far_from_all_exceeds_every_limit(answers):
    """Its cluster is the nearest one, and its distance says that it is none of it."""
    kept = ClusterMembership.of(of("kmeans"), answers["kmeans"])

    assert 0.99 == kept.assign(np.array([[50.0, 50.0]])).over[0]


def test_without_rows_held_out_there_are_no_limits():
    """Nothing is over."""
    given = {"clusters": 2}
    kept = ClusterMembership.of(job(settings=given), run_here("kmeans", given, {"a": X}))

    assert 0 == len(kept.limits)
    assert not kept.assign(X * 100).over.any()


def test_other_kinds_and_widths_are_refused(answers):
    """A job without clusters; rows of another width."""
    with pytest.raises(UsageError, match="have clusters"):
        ClusterMembership.of(job("moments"), answers["kmeans"])
    with pytest.raises(ShapeError):
        ClusterMembership.of(of("kmeans"), answers["kmeans"]).assign(np.ones((2, 3)))


def test_an_answer_that_is_too_large_is_refused():
    """Memory is bounded, whoever sends it."""
    k = MOST_BYTES // 16 + 1
    answer = {"centers": np.ones((k, 2))} | dict.fromkeys(
        ("distance_levels", "distance_limits"), np.empty(0)
    )

    with pytest.raises(PeerError, match="up to"):
        ClusterMembership.of(of("kmeans"), answer)
    assert ClusterMembership.of(of("kmeans"), {**answer, "centers": np.ones((k - 1, 2))}).nbytes


def numbers_of(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.uint64)


SPEC = '{"features":64,"gamma":"0x1.0p+0","kernel":"gaussian","kind":"orthogonal","seed":0}'

HOSTILE = [
    ("kmeans", "centers", None),
    ("kmeans", "centers", np.ones((0, 2))),
    ("kmeans", "centers", np.ones((2, 3))),
    ("kmeans", "centers", np.ones(())),
    ("kmeans", "centers", np.full((2, 2), 1e101)),
    ("kmeans", "distance_levels", np.array([0.99, 0.95])),
    ("kmeans", "distance_levels", np.array([0.95, 2.0])),
    ("kmeans", "distance_levels", np.array([0.95])),
    ("kmeans", "distance_limits", np.array([-1.0, 1.0])),
    ("cluster", "map", None),
    ("cluster", "map", np.ones(4)),
    ("cluster", "map", np.ones(2000, dtype=np.uint64)),
    ("cluster", "map", np.full(4, 999, dtype=np.uint64)),
    ("cluster", "map", numbers_of("[1, 2]")),
    ("cluster", "map", numbers_of("{")),
    ("cluster", "map", numbers_of("[" * 1000)),
    ("cluster", "map", numbers_of('{"kind": "identity"}')),
    ("cluster", "map", numbers_of(SPEC.replace('"0x1.0p+0"', "null"))),
    ("cluster", "map", numbers_of(SPEC.replace("64", "65536"))),
    ("cluster", "mean", np.ones(64)),
    ("cluster", "mean", np.ones(3)),
    ("cluster", "basis", np.ones((64, 1), dtype=np.float32)),
    ("cluster", "basis", np.ones(64, dtype=np.float32)),
    ("cluster", "basis", np.ones((64, 0), dtype=np.float32)),
    ("cluster", "centers", np.ones((2, 2))),
    ("kpca", "centers", None),
    ("kpca", "centers", np.ones(())),
    ("kpca", "centers", np.ones((2, 2))),
    ("kpca", "points", np.ones((), dtype=np.float32)),
    ("kpca", "points", np.ones((40, 3), dtype=np.float32)),
    ("kpca", "points", np.ones((39, 2), dtype=np.float32)),
    ("kpca", "points", np.full((40, 2), np.inf, dtype=np.float32)),
    ("kpca", "points", np.ones((400, 2), dtype=np.float32)),
    ("kpca", "kernel", np.full(4, 9.0)),
    ("kpca", "kernel", np.ones(3)),
    ("kpca", "kernel", np.array([3.0, 1e90, 8.0, 1.0])),
    ("kpca", "mean", np.ones(3)),
    ("kpca", "axes", np.ones((40, 3))),
    ("kpca", "axes", np.ones(40)),
]


@pytest.mark.parametrize(("kind", "name", "value"), HOSTILE)
def test_what_is_no_answer_is_refused(kind, name, value, answers):
    """It comes from above, and is kept for long."""
    answer = {n: a for n, a in answers[kind].items() if n != name}
    answer |= {} if value is None else {name: value}

    with pytest.raises(PeerError):
        ClusterMembership.of(of(kind), answer)


def test_the_map_of_an_answer_is_its_spec(answers):
    """Written and read: the map that the participants had."""
    found = cluster_scores.map_of(answers["cluster"]["map"])

    assert 64 == found.features
    assert found.kernel.gamma in answers["cluster"]["gammas"]
    np.testing.assert_array_equal(answers["cluster"]["map"], cluster_scores.spec_numbers(found))

"""k-means in rounds, and spectral clustering of rows that stay on their nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from submerge import Schema, ShapeError, Subspace, UsageError, merge
from submerge.features import Gaussian, RandomFourier
from submerge.kernel.kmeans_rounds import (
    ClusterTally,
    group_tally,
    initial_centers,
    lloyd,
    local_summary,
    nearest,
    seed_centers,
    spread,
    sum_of,
    tally,
    widest,
)
from submerge.kernel.spectral import (
    SPARE,
    eigengap,
    maps_around,
    scores,
    summary_of,
)
from support import clusters

numbers = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))


def pooled_lloyd(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Lloyd's step on one machine, by its definition."""
    labels = [min(range(len(centers)), key=lambda c: ((x - centers[c]) ** 2).sum()) for x in rows]
    moved = centers.copy()
    for c in set(labels):
        moved[c] = rows[np.array(labels) == c].mean(axis=0)
    return moved


def clouds(n: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four clouds in the plane, far apart, and which is whose."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=n)
    corners = np.array([[0.0, 0], [0, 9], [9, 0], [9, 9]])
    return corners[truth] + rng.standard_normal((n, 2)), truth


@settings(max_examples=50)
@given(
    hnp.arrays(float, st.tuples(st.integers(1, 12), st.just(2)), elements=numbers),
    hnp.arrays(float, st.tuples(st.integers(1, 4), st.just(2)), elements=numbers),
    st.lists(st.integers(0, 12), max_size=4),
)
def test_a_round_over_nodes_is_one_step_of_lloyds(rows, centers, cuts):
    """However rows are dealt, empty nodes included, centers move as if all were in one place."""
    square = ((rows[:, None] - centers) ** 2).sum(axis=2)
    # A tie is broken by rounding: then either answer is Lloyd's.
    rows = rows[np.diff(np.sort(square, axis=1), axis=1).min(axis=1, initial=np.inf) > 1e-3]

    total = sum_of(tally(part, centers) for part in np.split(rows, sorted(cuts)))

    np.testing.assert_allclose(
        pooled_lloyd(rows, centers), total.moved(centers), rtol=1e-12, atol=1e-9
    )
    assert total.counts.sum() == len(rows)
    assert np.isclose(tally(rows, centers).cost, total.cost)


def test_a_federated_step_is_the_pooled_one_to_the_last_digits():
    """Five uneven nodes, numbers of size one: 1e-12."""
    rows, _ = clouds(1000)
    centers = rows[:4]

    dealt = np.split(rows, [3, 100, 101, 700])
    total = sum_of(tally(part, centers) for part in dealt)

    np.testing.assert_allclose(pooled_lloyd(rows, centers), total.moved(centers), rtol=1e-12)


def test_a_row_of_weight_w_counts_as_w_rows():
    """Weighted tallies, as the root's of its nodes' centers, are those of repeated rows."""
    rows, _ = clouds(40)
    times = np.arange(40) % 3

    repeated, weighted = (
        tally(np.repeat(rows, times, axis=0), rows[:4]),
        tally(rows, rows[:4], times.astype(float)),
    )

    np.testing.assert_array_equal(repeated.counts, weighted.counts)
    np.testing.assert_allclose(repeated.sums, weighted.sums)
    assert np.isclose(repeated.cost, weighted.cost)


def test_many_rows_are_measured_in_slices():
    """The nearest center of each row is the same beyond one slice."""
    rows = np.linspace(0, 4, 70_001)[:, None]

    labels, distances = nearest(rows, np.array([[0.5], [3.0]]))

    np.testing.assert_array_equal((rows[:, 0] > 1.75).astype(int), labels)
    np.testing.assert_allclose(np.minimum(abs(rows - 0.5), abs(rows - 3))[:, 0] ** 2, distances)


@pytest.mark.parametrize("sorted_by_cluster", [False, True], ids=["mixed", "a node a cluster"])
def test_nodes_find_the_clusters_of_all_their_rows(sorted_by_cluster):
    """Local clusters, an opening by the root, then rounds: every cloud is found."""
    rows, truth = clouds(400)
    if sorted_by_cluster:
        order = np.argsort(truth, kind="stable")
        rows, truth = rows[order], truth[order]
    nodes, rng = [*np.array_split(rows, 4), rows[:0]], np.random.default_rng(0)

    start = initial_centers([local_summary(node, 4, rng) for node in nodes], 4, rng)
    centers = lloyd(lambda centers: sum_of(tally(node, centers) for node in nodes), start)

    assert clusters.accuracy(truth, nearest(rows, centers)[0]) > 0.99


def test_rounds_never_cost_more():
    """Each step lowers the sum of squared distances, until it stops."""
    rows, _ = clouds(300)
    costs = []

    def ask(centers):
        costs.append(tally(rows, centers).cost)
        return tally(rows, centers)

    lloyd(ask, rows[:4])

    assert len(costs) > 2
    assert costs == sorted(costs, reverse=True)


def test_rounds_end_where_little_is_saved():
    """A thousandth of the cost is worth another round, a twenty-thousandth is not."""
    costs = iter([1.0, 0.999, 0.998, 0.99795, 0.5])

    def ask(centers):
        return ClusterTally(np.ones(1), centers, next(costs))

    lloyd(ask, np.zeros((1, 1)))

    assert [0.5] == list(costs)


def test_beginnings_are_rows_of_weight_and_differ_while_rows_do():
    """k-means++ takes no row of weight zero, and none twice while others are left."""
    rows, rng = np.arange(5.0)[:, None], np.random.default_rng(0)

    for _ in range(50):
        started = seed_centers(rows, np.array([1.0, 0, 1, 1, 0]), 3, rng)
        assert sorted(started[:, 0]) == [0, 2, 3]
    assert (seed_centers(np.ones((3, 1)), np.ones(3), 3, rng) == 1).all()


def test_what_does_not_fit_is_refused():
    """Rows of another width, more clusters than the nodes have centers, and no nodes."""
    rng = np.random.default_rng(0)

    with pytest.raises(ShapeError, match=r"rows must have shape \(n, 2\), got \(4, 3\)"):
        nearest(np.ones((4, 3)), np.ones((2, 2)))
    with pytest.raises(UsageError, match="k must be at most the 2 centers of all nodes, got 3"):
        initial_centers([local_summary(np.eye(2), 3, rng)], 3, rng)
    with pytest.raises(UsageError, match="summaries must be of at least one node, got none"):
        initial_centers([], 3, rng)
    with pytest.raises(UsageError, match="tallies must be of at least one node, got none"):
        sum_of(iter([]))


# -- spectral clustering, rows staying where they are --------------------------


def spectral_labels(nodes: list[np.ndarray], n_clusters: int) -> tuple[np.ndarray, int]:
    """What a fleet does, message by message, and which gamma it took."""
    rng, channels = np.random.default_rng(0), nodes[0].shape[1]
    linear = [Subspace.of(node, Schema(channels), rank=1) for node in nodes]
    tried = maps_around(RandomFourier(Gaussian(), 512), spread(merge(*linear, rank=1)))
    schemas = [Schema(channels, features=each) for each in tried]
    models = [
        merge(
            *(summary_of(node, schema, n_clusters=n_clusters) for node in nodes),
            rank=n_clusters + SPARE,
        )
        for schema in schemas
    ]
    best = widest(models, n_clusters=n_clusters)
    embedded = [scores(n, schemas[best], models[best], n_clusters=n_clusters) for n in nodes]
    start = initial_centers(
        [local_summary(each, n_clusters, rng) for each in embedded], n_clusters, rng
    )
    centers = lloyd(lambda centers: sum_of(tally(each, centers) for each in embedded), start)
    return np.concatenate([nearest(each, centers)[0] for each in embedded]), best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("uneven", [False, True])
def test_rings_dealt_to_five_nodes_are_found(seed, uneven):
    """Accuracy of .98 and more, though no node sends a row; the eigengap takes 4 gamma."""
    X, truth = clusters.rings(seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    if uneven:
        # Each node sees an arc of the plane, of another size.
        order = np.argsort(np.arctan2(X[:, 1], X[:, 0]), kind="stable")
    nodes = np.split(X[order], [100, 500, 1400, 2500])

    labels, best = spectral_labels(nodes, 2)

    assert best == 2
    assert clusters.accuracy(truth[order], labels) >= 0.98


def test_the_fleets_spread_is_that_of_all_rows():
    """tr C from merged linear summaries is exact, however few directions they hold."""
    X = np.random.default_rng(0).standard_normal((300, 5)) + 7
    parts = [Subspace.of(part, Schema(5), rank=1) for part in np.split(X, [10, 200])]

    assert np.isclose(X.var(axis=0).sum(), spread(merge(*parts, rank=1)), rtol=1e-12)
    with pytest.raises(UsageError, match="a spread needs at least one row"):
        spread(Subspace.empty(Schema(5)))


def test_a_settled_gamma_is_the_only_one_tried():
    """Open maps are tried at a quarter, one and four times the kernel's own gamma."""
    gammas = [each.kernel.gamma for each in maps_around(RandomFourier(Gaussian()), 2.0)]
    only = maps_around(RandomFourier(Gaussian(3.0)), 2.0)

    assert [0.0625, 0.25, 1.0] == gammas
    assert [3.0] == [each.kernel.gamma for each in only]


def test_the_gap_is_below_the_directions_that_tell_clusters_apart():
    """k clusters differ in k - 1 directions; what a summary does not hold counts as zero."""
    X = np.diag([4.0, 3, 2, 1])
    summary = Subspace.of(np.vstack([X, -X]), Schema(4), rank=3)

    # Variances are 16, 9, 4 and 1, each over 4; the last is not held.
    gaps = [eigengap(summary, n_clusters=k) for k in (1, 2, 3, 4, 5, 9)]

    np.testing.assert_allclose([1.75, 1.75, 1.25, 1, 0, 0], gaps)
    steep = Subspace.of(np.vstack([X, -X]) * [9, 1, 1, 1], Schema(4), rank=3)
    assert widest([summary, steep, summary], n_clusters=2) == 1


def test_scores_have_a_column_for_each_direction():
    """Rows beyond a block, and directions that the data lack, are all there."""
    rows = np.repeat([[0.0, 1], [2, 3]], [100, 300], axis=0)
    schema = Schema(2, features=RandomFourier(Gaussian(0.5), 64))
    summary = summary_of(rows, schema, n_clusters=4)

    found = scores(rows, schema, summary, n_clusters=4)

    assert found.shape == (400, 3)
    np.testing.assert_allclose(0, found[:, 1:], atol=1e-7)
    # About their mean, which is three times as near to the larger group.
    assert np.isclose(-found[0, 0], 3 * found[-1, 0])
    assert abs(found[0, 0]) > 0.1


@given(st.integers(0, 40), st.integers(1, 8), st.integers(0, 2**31))
def test_a_tally_of_groups_has_their_rows_and_squares(n, k, seed):
    """By group, as its rows one by one; those of fewer than five rows are left out."""
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((n, 3)), rng.integers(k, size=n)
    found = group_tally(X, groups, 5)
    mine = [X[groups == each] for each in range(k) if (groups == each).sum() >= 5]
    squares = sum(float(((each - each.mean(axis=0)) ** 2).sum()) for each in mine)

    assert [len(each) for each in mine] == found.counts.tolist()
    np.testing.assert_allclose([each.sum(axis=0) for each in mine], list(found.sums), atol=1e-12)
    np.testing.assert_allclose(squares, found.cost, atol=1e-12)

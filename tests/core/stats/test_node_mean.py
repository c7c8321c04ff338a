"""A node's own mean, and what ten readings are worth about the fleet's scatter."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, Schema, spe
from submerge.protocol.summaries import Subspaces
from submerge.stats.node_mean import READY, OwnMean


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 99))
def test_it_is_the_mean_of_all_rows(cuts, seed):
    """However they were cut."""
    blocks = [np.random.default_rng([seed, i]).normal(5, 1, (n, 3)) for i, n in enumerate(cuts)]
    own = OwnMean.none(3, None)
    for block in blocks:
        own = own.after(block, block, kept=1.0, passed_s=1.0)
    rows = np.concatenate(blocks)

    assert len(rows) == own.count
    if len(rows):
        np.testing.assert_allclose(rows.mean(axis=0), own.rows, rtol=1e-12)


def test_it_forgets():
    """Rows whose weight has gone to a half count for half."""
    first, second = np.full((4, 1), 1.0), np.full((2, 1), 4.0)
    own = OwnMean.none(1, None).after(first, first, kept=1.0, passed_s=0.0)
    own = own.after(second, second, kept=0.5, passed_s=9.0)

    assert (2.5, 4.0, 6, 9.0) == (own.rows[0], own.weight, own.count, own.span_s)


def test_features_have_a_mean_of_their_own():
    """In a kernel group what is scored about are both."""
    rows, features = np.ones((2, 3)), np.full((2, 5), 0.5, dtype=np.float32)
    own = OwnMean.none(3, 5).after(rows, features, kept=1.0, passed_s=0.0)

    np.testing.assert_array_equal(np.full(5, 0.5), own.features)


def test_ten_readings_do_with_the_scatter_of_the_fleet():
    """False alarms at the 95 % limit: at most .10; by a model of ten readings alone, over .3.

    Forty machines, each with offsets of its own, three causes behind thirty channels.
    """
    rng = np.random.default_rng(7)
    dim, rank, nodes = 30, 3, 40
    causes = rng.standard_normal((rank, dim))
    offsets = 5 * rng.standard_normal((nodes + 1, dim))

    def read(node: int, n: int) -> np.ndarray:
        return (
            offsets[node] + rng.standard_normal((n, rank)) @ causes + rng.normal(0, 0.3, (n, dim))
        )

    summaries, schema = Subspaces(rank), Schema(dim, center="own")
    tree = summaries.tree(schema)
    for node in range(nodes):
        learner = summaries.learner(schema)
        learner.learn(rows := read(node, 500), rows)
        tree[str(node)] = learner.summary()
    fleet = tree.root()
    scorer = summaries.scorer(fleet, dim)

    def own_mean(rows: np.ndarray) -> OwnMean:
        return OwnMean.none(dim, None).after(rows, rows, kept=1.0, passed_s=0.0)

    typical = [
        scorer.statistics(rows := read(node, 500), rows, own_mean(read(node, 500))).spe
        for node in range(nodes)
    ]
    limit = np.quantile(np.concatenate(typical), 0.95)
    fleet_rates, alone_rates = [], []
    for _ in range(20):
        few, later = read(nodes, READY), read(nodes, 2000)
        by_fleet = scorer.statistics(later, later, own_mean(few)).spe / own_mean(few).excess
        fleet_rates.append((by_fleet > limit).mean())
        alone = SAPCA(rank, exact="never").partial_fit(few).subspace.truncated(rank)
        by_itself = np.quantile(spe(few, alone), 0.95)
        alone_rates.append((spe(later, alone) > by_itself).mean())

    assert own_mean(few).ready
    assert np.mean(fleet_rates) <= 0.10
    assert np.mean(alone_rates) > 0.3

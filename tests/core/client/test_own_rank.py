"""Clients that run SAPCA: each adjusts its rank by the paper's rule, and what they send merges."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import SAPCA, EnergyRank, FixedRank, SapcaRank, Schema
from submerge.pca.rank import within
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.machine import Flush, Reading
from submerge.protocol.summaries import Subspaces
from support import oracle
from support.nodes import Table

DIM, SPARE = 24, 3
SCHEMA = Schema.anonymous(DIM)
RULE = SapcaRank(4, alpha=0.04, beta=0.12, lowest=2, highest=12)
OF_ALL = Subspaces(6, rank_max=12, oversample=SPARE)


def readings(seed: int, directions: int, n: int = 400) -> np.ndarray:
    """Rows along so many directions, each as strong as the others, in a little noise."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, directions)) @ rng.standard_normal((directions, DIM))
    return rows + 0.05 * rng.standard_normal((n, DIM)) + 7.0


def two_levels(rule=RULE) -> Table:
    """A root, two aggregators and three clients, of which none has a rank from above."""
    table = Table(OF_ALL, SCHEMA)
    table.root("r")
    for name in ("north", "south"):
        table.aggregator(name)
    table.summaries = Subspaces(rule, rank_max=12, oversample=SPARE)
    for name, under in (("a", "north"), ("b", "north"), ("c", "south")):
        table.client(name, under=under, report_every_s=1e6)
    return table


def twin(rule=RULE) -> SAPCA:
    """The same engine alone."""
    return SAPCA(rule, oversample=SPARE, exact="never", schema=SCHEMA)


def pieces(rows: np.ndarray, seed: int) -> list[np.ndarray]:
    """Rows as they come: a few at a time."""
    rng = np.random.default_rng(seed)
    return np.split(rows, np.sort(rng.integers(0, len(rows), 25)))


@pytest.mark.parametrize("rule", [RULE, EnergyRank(0.9, 0.97, start=4, highest=12)])
def test_each_node_has_the_rank_that_the_rule_has_of_its_own_rows(rule):
    """Row by row as one engine alone; the report says it, and has as many directions."""
    table, ends = two_levels(rule), {}
    for i, name in enumerate("abc"):
        alone, seen = twin(rule), []
        for part in pieces(readings(i, 2 + 4 * i), i):
            if len(part):
                table.step(name, Reading(part))
                alone.partial_fit(part)
            table.step(name, Flush())
            said = table.reports(name)[-1]
            assert said.method.rank == alone.target
            assert np.allclose(said.summary.sigma, alone.subspace.sigma, rtol=1e-6)
            seen.append(said.method.rank)
        assert f"SAPCA, {rule}" == said.method.algorithm
        assert isinstance(said.summary, Subspace)
        ends[name] = seen[-1]
    table.passes(1000)

    assert ends["a"] < ends["b"] < ends["c"], ends
    assert 3 * 400 == table.hosts["r"].ledger.counts().learnt


def test_what_nodes_of_different_ranks_send_is_merged_within_its_bound():
    """Of a narrow group, too, whose aggregators hold whole scatters."""
    table = two_levels()
    for i, name in enumerate("abc"):
        table.step(name, Reading(readings(i, 2 + 4 * i)))
        table.step(name, Flush())
    table.passes(1000)
    merged = table.hosts["north"].ledger.summary()
    truth = oracle.twin(np.vstack([readings(0, 2), readings(1, 6)]))

    assert isinstance(merged, WholeScatter)
    off = np.linalg.eigvalsh(truth.scatter - merged.scatter)
    assert np.abs(off).max() <= merged.spectral_bound
    assert merged.spectral_bound < 0.01 * truth.energy
    assert truth.energy == pytest.approx(merged.energy, rel=1e-9)


def test_killed_and_begun_again_it_has_the_ranks_of_its_new_rows():
    """What it had sent still counts, and nothing twice."""
    table, rows = two_levels(), readings(2, 10)
    for part in (rows[:200], rows[200:]):
        alone = twin().partial_fit(part)
        table.step("c", Reading(part))
        table.step("c", Flush())
        table.run()
        assert alone.target == table.reports("c")[-1].method.rank
        table.passes(100)
        table.restarts("c")
    table.passes(1000)

    assert 400 == table.hosts["r"].ledger.counts().learnt


def test_where_the_root_chooses_a_report_has_no_rank_of_its_own():
    """It still says what has made it."""
    table = two_levels(FixedRank(4))
    table.step("a", Reading(readings(0, 2)))
    table.step("a", Flush())

    assert ("exact covariance", 0) == table.reports("a")[-1].method[:2]


def test_without_the_whole_scatter_directions_are_learnt_and_sent():
    """`exact = "never"`: the paper's contract, also where all of the scatter would be no larger."""
    kind = Subspaces(4, rank_max=12, oversample=SPARE, exact="never")
    learner = kind.learner(SCHEMA)
    learner.learn(readings(0, 2), readings(0, 2))

    assert "SPCA" == learner.method.algorithm
    assert isinstance(learner.summary(), Subspace)
    assert not kind.is_narrow(SCHEMA)
    assert OF_ALL.is_narrow(SCHEMA)


@pytest.mark.parametrize(
    ("rule", "most", "limits"),
    [
        (RULE, 3, (3, 2, 3)),
        (RULE, 1, (1, 1, 1)),
        (RULE, 30, (4, 2, 12)),
        (SapcaRank(4), 9, (4, 1, 9)),
        (EnergyRank(start=5), 3, (3, 1, 3)),
        (FixedRank(5), 3, (3, 3, 3)),
        (FixedRank(5), 9, (5, 5, 5)),
    ],
)
def test_a_rule_stays_below_the_dimension(rule, most, limits):
    """Of few channels not all directions are shown, whatever the rule would."""
    bounded = within(rule, most)

    assert limits == (bounded.start, bounded.lowest, bounded.highest)
    assert type(rule) is type(bounded)


def test_a_report_says_how_much_of_its_own_a_node_is_judged_by():
    """Nothing at first, and more as its own rows come: people see it at the parent."""
    schema = Schema(6, center="own")
    table = Table(Subspaces(2), schema)
    table.root("r", model_every_s=60)
    table.aggregator("north")
    for name in "ab":
        table.client(name, under="north", report_every_s=50)
    shares = []
    rng = np.random.default_rng(0)
    for _ in range(12):
        for i, name in enumerate("ab"):
            mix = np.random.default_rng(i).standard_normal((2, 6))
            rows = rng.standard_normal((60, 2)) @ mix + 0.2 * rng.standard_normal((60, 6))
            table.step(name, Reading(rows))
        table.passes(100)
        shares.append(table.reports("a")[-1].method.own_share)

    assert 0.0 == shares[0] < shares[-1] <= 1.0
    assert table.reports("a")[-1].method.unlike > 0.0

"""How many directions are shown, kept and scored with: `Subspaces` and a rank chosen later."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema, Subspace, spe
from submerge.features import Gaussian, RandomFourier
from submerge.judge.score import ScoringModel
from submerge.pca.score import Scorer
from submerge.protocol.summaries import Subspaces

WIDE = Schema(300)


def rows_of(n: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, dim))


@given(st.integers(1, 16), st.integers(1, 12))
def test_what_a_summary_shows_is_below_the_dimension(rank, dim):
    """A rank of all directions would leave rounding to SPE; a single channel has one direction."""
    summary = Subspace.of(rows_of(50, dim), Schema(dim), rank=dim)
    for kind in (Subspaces(rank), Subspaces(8, rank_max=16).at(rank)):
        assert max(1, min(rank, dim - 1)) == kind.shown(summary).parts[0].rank


def test_a_rank_that_was_chosen_is_scored_with():
    """One summary answers for each rank up to the highest."""
    kind, X = Subspaces(8, rank_max=16, oversample=3), rows_of(200, 40)
    summary = Subspace.of(X, Schema(40), rank=19)
    for rank in (1, 5, 8, 16):
        scores = ScoringModel(kind.at(rank), summary, None, 40).scorer.statistics(X, X).spe
        assert spe(X, summary.truncated(rank)) == pytest.approx(scores)
    assert kind.at(0) is kind


@pytest.mark.parametrize("rank", [1, 8, 16])
def test_the_rank_that_is_shown_changes_nothing_that_is_kept(rank):
    """Directions are learnt and merged for the highest rank, before and after the choice."""
    kind = Subspaces(8, rank_max=16, oversample=3, memory=1).at(rank)
    learner = kind.learner(WIDE)
    learner.learn(rows_of(100, 300), rows_of(100, 300))
    assert learner.summary().parts[0].rank == 19
    tree = kind.tree(WIDE)
    tree["c"], tree["d"] = learner.summary(), Subspace.of(rows_of(50, 300, 1), WIDE, rank=19)
    assert tree.root().parts[0].rank == 19


def test_a_kernel_group_keeps_readings_for_the_highest_rank():
    """Of the readings half of the channels at most are shown, and the spares beside."""
    schema = Schema(30, features=RandomFourier(Gaussian(0.1), 64))
    kind = Subspaces(8, rank_max=16, oversample=3, memory=1)
    learner = kind.learner(schema)
    X = rows_of(200, 30)
    learner.learn(X, schema.features.lift(X))
    assert (19, 18) == tuple(part.rank for part in learner.summary().parts)
    assert (18, 18) == (kind.linear_kept(30), kind.at(4).linear_kept(30))
    shown = kind.at(12).shown(learner.summary()).parts
    assert (12, 12) == tuple(part.rank for part in shown)


@pytest.mark.parametrize("dim", [1, 3])
def test_by_all_directions_there_is_no_spe(dim):
    """It would be rounding, and alarms about it are about nothing. T2 is the whole distance."""
    X = rows_of(100, dim) * 1e6
    subspace = Subspace.of(X, Schema(dim), rank=dim)
    found, t2 = Scorer(subspace).scores(X)
    assert not found.any()
    centered = X - X.mean(axis=0)
    expected = np.einsum(
        "ij,ij->i", centered @ np.linalg.inv(np.cov(X.T, bias=True).reshape(dim, dim)), centered
    )
    assert expected == pytest.approx(t2)

"""Noise by OpenDP: what it costs, which groups can have it, and that one row stays hidden."""

from __future__ import annotations

import sys
from math import exp, sqrt

import numpy as np
import pytest

from submerge.aggregator.rows.releases import LEVELS
from submerge.errors import UsageError
from submerge.pca.row_sums import RowSums
from submerge.protocol.summaries import Subspaces
from submerge.schema import Schema
from submerge_aggregator.config import AggregatorConfig, load
from submerge_aggregator.noise import DELTA, OpenDpNoise

pytest.importorskip("opendp", reason="OpenDP is not installed: pip install 'submerge[noise]'")

ROOT = """
node = "root"
store = "root.store"
[listen.grpc]
address = "127.0.0.1:0"
insecure = true
[privacy]
epsilon = 3.0
[groups.pumps.summary]
rank = 1
[groups.pumps.schema]
channels = [
  {{name = "flow", offset = 1.0, scale = 2.0}},
  {{name = "heat", offset = 0.0, scale = 1.0}},
]
scaling = "{scaling}"
{more}
"""


def config(tmp_path, scaling="fixed", more='center = "fleet"') -> AggregatorConfig:
    path = tmp_path / "root.toml"
    path.write_text(ROOT.format(scaling=scaling, more=more))
    return load(path, {})


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 10.0])
def test_all_that_may_be_spent_is_the_epsilon_that_was_asked(epsilon):
    noise = OpenDpNoise(epsilon)

    assert epsilon >= noise.epsilon(noise.rho) >= 0.99 * epsilon
    assert noise.epsilon(noise.rho / 2) < epsilon
    assert 0.0 == noise.epsilon(0.0)


def test_draws_are_whole_numbers_of_their_scale():
    drawn = OpenDpNoise(1.0).draw(20_000, 3e9)

    assert np.int64 == drawn.dtype
    assert np.std(drawn) == pytest.approx(3e9, rel=0.03)
    assert abs(np.mean(drawn)) < 5 * 3e9 / sqrt(20_000)


def test_a_group_with_noise_waits_for_rows_and_bounds_theirs(tmp_path):
    plan = config(tmp_path).plans["pumps"]

    assert plan.schema.clip == pytest.approx(1.5 * sqrt(2))
    assert plan.noise.rho == pytest.approx(OpenDpNoise(3.0).rho)
    assert plan.min_rows > 500
    assert not plan.chooses_rank


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('center = "own"', r'schema\.center: expected "fleet"'),
        ('center = "fleet"\nhalf_life_s = 3600', r"schema\.half_life.*: expected none"),
        ('center = "fleet"\nlags = 2', r"schema\.lags.*: expected 1"),
        ("[groups.pumps.schema.features]", r"schema\.features: expected no kernel"),
    ],
)
def test_a_group_that_cannot_have_noise_is_refused(tmp_path, more, expected):
    with pytest.raises(UsageError, match=rf"groups\.pumps\.{expected}.* epsilon is set"):
        _ = config(tmp_path, more=more).plans


def test_without_opendp_the_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)

    with pytest.raises(UsageError, match=r"pip install 'submerge\[noise\]'"):
        OpenDpNoise(1.0)


@pytest.mark.soak
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_who_guesses_whether_a_row_was_there_is_right_no_more_often_than_epsilon_says(epsilon):
    """The worst row for another, all releases of a tree seen, and the best test of them."""
    schema, noise = Schema(2, clip=1.0), OpenDpNoise(epsilon)
    first = np.array([[1.0, 0.0]])
    rng, trials = np.random.default_rng(0), 10_000
    right = 0
    away = RowSums.none(schema.fingerprint, 2, 1.0)
    with_first = away.with_rows(first).numbers
    with_second = away.with_rows(np.array([[-0.5, 0.75**0.5]])).numbers
    apart = (with_first - with_second).astype(float)
    # Of a first tree, which may spend half of rho: a row is under one noise of each level.
    scale = Subspaces(1).noise_for(away).sensitivity / (noise.rho / LEVELS) ** 0.5
    for _ in range(trials):
        inside = rng.random() < 0.5
        held = with_first if inside else with_second
        seen = sum((held + noise.draw(len(held), scale) - with_second) @ apart for _ in range(15))
        right += (seen > 15 * (apart @ apart) / 2) == inside
    share, most = right / trials, (exp(epsilon) + DELTA) / (1 + exp(epsilon))

    assert 0.5 < share <= most + 3 * sqrt(0.25 / trials)

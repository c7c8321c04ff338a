"""score(): each statistic of a row, the limit that it is over, and the channels to blame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Channel, Schema, hotelling, spe
from submerge.judge import score as judge_score
from submerge.judge.prepare import prepare
from submerge.judge.score import LEAST_LEFT, UNSURE, ScoringModel, score
from submerge.pca.missing import shrunk
from submerge.pca.reconstruct import Reconstruction
from submerge.protocol.summaries import Subspaces
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import READY_S, ResidualScale
from submerge.stats.score_limits import Limits

DIM, RANK = 8, 2
SCHEMA = Schema(tuple(Channel(f"x{i}") for i in range(DIM)))
SUMMARIES = Subspaces(RANK, oversample=1)
RNG = np.random.default_rng(0)
CAUSES = RNG.standard_normal((RANK, DIM))
LIMITS = Limits((0.5, 0.95, 0.99), (0.1, 0.9, 1.4), (1.4, 6.0, 9.2), 1000)


def draw(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, RANK)) @ CAUSES + rng.normal(0, 0.3, (n, DIM))


def learnt(rows: np.ndarray, schema: Schema = SCHEMA, limits: Limits | None = LIMITS):
    learner = SUMMARIES.learner(schema)
    learner.learn(rows, rows)
    return ScoringModel(SUMMARIES, learner.summary(), limits, DIM)


MODEL = learnt(draw(2000, 1))
SHOWN = SUMMARIES.shown(MODEL.summary)


def block(rows: np.ndarray):
    """Rows as a block, their gaps filled by the model."""
    return prepare(rows, SCHEMA, fill=lambda gappy: MODEL.filled(gappy, None))


def test_scores_are_what_the_functions_say():
    """Of whole rows: SPE, T2, errors, and blame by the rule of alarms."""
    rows = draw(50, 2)
    scores, recall = score(block(rows), MODEL), Reconstruction(SHOWN)

    assert spe(rows, SHOWN) == pytest.approx(scores.spe)
    assert hotelling(rows, SHOWN) == pytest.approx(scores.t2)
    assert scores.linear is None is scores.anomaly
    assert recall.left_out(rows - SHOWN.mean) == pytest.approx(scores.errors)
    assert recall.blame(rows - SHOWN.mean) == pytest.approx(scores.blame())
    order, shares = scores.top(3)
    assert np.sort(scores.blame(), axis=1)[:, :-4:-1] == pytest.approx(shares)
    assert order[:, 0].tolist() == scores.blame().argmax(axis=1).tolist()


def test_a_score_is_over_a_limit_once_gaps_are_given_back():
    """The score itself stays that of the row as it was filled."""
    rows = draw(400, 3)
    rows[:, 5:] = np.nan
    filled = block(rows)
    scores = score(filled, MODEL)
    left = shrunk(np.arange(DIM) < 5, SHOWN)

    assert left[0] < 0.9
    assert spe(filled.rows, SHOWN) == pytest.approx(scores.spe)
    for kind, each, share in (("spe", scores.spe, left[0]), ("t2", scores.t2, left[1])):
        assert each / share == pytest.approx(scores.even[kind])
        assert LIMITS.above(each / share, kind).tolist() == scores.over[kind].tolist()
    assert (scores.over["spe"] > 0).sum() > (scores.spe > 0.9).sum()


def test_gaps_are_given_back_no_more_than_four_times():
    """Of a row with few channels left a score says little."""
    rows = draw(1, 4)
    gaps = np.ones((1, DIM), dtype=bool)
    gaps[0, 0] = False
    scores = score(replace(block(rows), gaps=gaps), MODEL)

    assert scores.spe / LEAST_LEFT == pytest.approx(scores.even["spe"])


def test_more_patterns_of_gaps_than_are_remembered_are_no_error(monkeypatch):
    """What is remembered begins again."""
    monkeypatch.setattr(judge_score, "PATTERNS", 3)
    rows = draw(12, 5)
    rows[np.arange(12), np.arange(12) % DIM] = np.nan
    gappy = block(rows)
    at_once = score(gappy, MODEL)

    for i in range(12):
        alone = score(block(rows[i : i + 1]), learnt(draw(2000, 1)))
        assert alone.even["spe"] == pytest.approx(at_once.even["spe"][i : i + 1])


def test_a_channel_is_predicted_by_the_others_that_are_there():
    """What fills a gap knows the channel, and must not tell: as if its value were missing, too."""
    rows = draw(40, 6)
    rows[np.random.default_rng(7).random(rows.shape) < 0.3] = np.nan
    rows = rows[2 * np.isnan(rows).sum(axis=1) <= DIM]
    gappy = block(rows)
    scores = score(gappy, MODEL)
    for j in range(DIM):
        without = rows.copy()
        without[:, j] = np.nan
        there = ~np.isnan(rows[:, j])
        expected = MODEL.filled(without, None)[there, j]
        assert expected == pytest.approx((gappy.rows - scores.left_out)[there, j], abs=1e-9)


def test_errors_of_rows_with_gaps_are_as_large_as_of_rows_without():
    """By the model's own scale: limits of the largest are of all rows."""
    rows = draw(20_000, 8)
    whole = np.square(score(block(rows), MODEL).errors).mean(axis=0)
    rows[:, 5:] = np.nan
    scores = score(block(rows), MODEL)
    assert np.square(scores.errors[:, :5]).mean(axis=0) == pytest.approx(whole[:5], rel=0.05)
    assert scores.farther[0, 2] > 1.8
    assert np.isfinite(scores.sure_errors).all()


def test_an_error_that_too_few_others_predict_is_not_usual_of_its_channel():
    """Three and four times as far off, it follows causes that the others do not show."""
    rows = draw(500, 9)
    rows[:, :4] = np.nan
    scores = score(block(rows), MODEL)
    unsure = scores.farther[0] > UNSURE

    assert unsure.any()
    assert (np.isnan(scores.sure_errors) == unsure).all()
    assert scores.blame()[:, unsure].max() > 0


@pytest.mark.parametrize(("excess", "divisor"), [(None, 1.1), (1.0, 1.0)])
def test_rows_vary_more_about_a_mean_of_few_readings(excess, divisor):
    """1 + 1/n times as much; not those that the mean is made of."""
    rows = draw(20, 6) + 3.0
    own = OwnMean(np.full(DIM, 3.0), None, 10.0, 10, 0.0)
    scores = score(block(rows), MODEL, own, excess=excess)
    about = replace(SHOWN, mean=own.rows)

    assert spe(rows, about) / divisor == pytest.approx(scores.spe)
    assert hotelling(rows, about) / divisor == pytest.approx(scores.t2)
    assert Reconstruction(SHOWN).left_out(rows - 3.0) == pytest.approx(scores.errors)


def test_a_channel_is_measured_by_what_is_usual_for_it():
    """Once that is known for a day; until then there is no such score."""
    rows = draw(20, 7)
    usual = ResidualScale(np.linspace(0.1, 2.0, DIM), np.ones(DIM), READY_S)
    known, young = (
        score(block(rows), MODEL, residual_scale=each)
        for each in (usual, replace(usual, span_s=0.0))
    )

    worst = (known.errors**2 / usual.squares).max(axis=1)
    assert worst == pytest.approx(known.even["channel"])
    assert Reconstruction(SHOWN).blame(rows - SHOWN.mean, usual.squares) == pytest.approx(
        known.blame()
    )
    assert "channel" not in young.even
    assert young.blame() == pytest.approx(score(block(rows), MODEL).blame())


def test_of_a_row_that_two_channels_explain_as_well_both_are_named():
    """Not of one whose fault sets them apart, nor of one that is as usual."""
    rows = draw(4000, 11)
    rows[:, 1] = 1.5 * rows[:, 0] + RNG.normal(0, 0.02, len(rows))
    factors, model = SUMMARIES, learnt(rows[:3000])
    model = ScoringModel(factors, model.summary, None, DIM, factors.factors(model.summary))
    some = np.repeat(rows[3000:3001], 4, axis=0)
    some[1:, 0] += [0.15, 4.0, 0.0]
    some[3, 5] += 3.0
    scores = score(block(some), model)
    first, _ = scores.top(3)

    assert [False, True, False, False] == scores.twins(first).tolist()
    assert ({0, 1}, 0, 5) == (set(first[1, :2].tolist()), first[2, 0], first[3, 0])
    assert not scores.twins(first[:, :1]).any()


def test_where_nothing_tells_channels_from_others_distance_does():
    """A model of rows that were all alike."""
    model = learnt(np.ones((20, DIM)))
    scores = score(block(np.ones((1, DIM)) + 2.0 * np.eye(DIM)[3]), model)

    assert scores.expected is None
    assert np.eye(DIM)[3] == pytest.approx(scores.blame()[0])


def test_without_limits_nothing_is_over_one():
    """An engine that was fitted by hand has none."""
    scores = score(block(100 * draw(5, 8)), learnt(draw(2000, 1), limits=None))

    assert [0.0] * 5 == scores.over_spe.tolist() == scores.over["t2"].tolist()


def test_a_share_below_one_half_is_no_limit():
    """The middle of what is usual; a score at a limit is not above it."""
    above = LIMITS.above(np.array([0.05, 0.2, 0.9, 0.91, 1.5]), "spe")

    assert [0.0, 0.0, 0.0, 0.95, 0.99] == above.tolist()

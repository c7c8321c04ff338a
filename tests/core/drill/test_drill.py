"""The drill says what the real detector would find, and changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import Channel, Schema, UsageError
from submerge.drill.detection import Spans, spans
from submerge.drill.drill import BLIND, FOUND, LARGEST, SIZED, Drill, held, most_alike, shape
from submerge.drill.response import Anchors, DirectResponse, NodeScorer, QuadraticResponse
from submerge.features import FeatureMap, Gaussian, RandomFourier
from submerge.judge.score import ScoringModel
from submerge.protocol.settings import AlarmSettings
from submerge.protocol.summaries import Subspaces
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import READY_S, ResidualScale
from support import oracle_drill

DIM, ALONE = 6, 3
RULE = AlarmSettings(after=5, of=8, period_s=60.0)
LIMITS = {"ewma": 14.0, "channel": 8.0}
CAUSES = np.random.default_rng(0).standard_normal((2, DIM))
CAUSES[:, ALONE] = 0


def draw(n: int, seed: int = 1, lags: int = 1) -> np.ndarray:
    """Rows of six channels with two causes; one channel has none of them."""
    rng, rows = np.random.default_rng(seed), n + lags - 1
    noise = rng.normal(0, 0.3 + 0.7 * (np.arange(DIM) == ALONE), (rows, DIM))
    once = rng.standard_normal((rows, 2)) @ CAUSES + noise
    return np.hstack([once[lags - 1 - lag : rows - lag] for lag in range(lags)])


def a_model(lags: int = 1, features: FeatureMap | None = None) -> NodeScorer:
    """What a node scores with that has read 2000 rows."""
    names = [f"x{i}{'' if lag == 0 else f'-{lag}'}" for lag in range(lags) for i in range(DIM)]
    schema = Schema(tuple(Channel(name) for name in names))
    if features is not None:
        schema = Schema(schema.channels, features=features)
    summaries, rows = Subspaces(2 * lags, oversample=1), draw(2000, 7, lags)
    learner = summaries.learner(schema)
    lifted = rows if schema.linear else schema.features.lift(rows)
    learner.learn(rows, lifted)
    held = learner.summary()
    scoring = ScoringModel(
        summaries, summaries.directions(held), None, DIM, summaries.factors(held)
    )
    own = OwnMean(rows.mean(axis=0), None if schema.linear else lifted.mean(axis=0), 2e3, 2000, 9e4)
    typical = np.square(scoring.scorer.statistics(rows, lifted, own).errors).mean(axis=0)
    scale = ResidualScale(typical, np.full(DIM, 2e3), READY_S)
    return NodeScorer(scoring, schema, own, scale)


def a_drill(model: NodeScorer, rows: np.ndarray, **changes: object) -> Drill:
    given = {"after": 5, "of": 8, "noise": np.random.default_rng(5).normal(size=4000)}
    given["tried"] = spans(len(rows), 20)
    return Drill(model, rows, **{"limits": LIMITS, **given, **changes})


MODEL = a_model()
ROWS = draw(120)
DRILL = a_drill(MODEL, ROWS)


@pytest.mark.parametrize("lags", [1, 3])
@pytest.mark.parametrize("gaps", [False, True])
def test_scores_by_the_quadratic_form_are_those_of_changed_copies(lags: int, gaps: bool):
    """For any amounts in any rows, with lags and with gaps: to rounding."""
    model, rows, rng = a_model(lags), draw(60, 2, lags), np.random.default_rng(3)
    if gaps:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    tried = Spans(np.array([20, 31, 45]), 12)
    added = rng.normal(0, 2, (3, 12))
    fast = QuadraticResponse(model, Anchors(model, rows), 2, model.score(rows), 0.7)
    slow = DirectResponse(model, rows, 2)

    exact = slow.scores(added, tried, ("distance", "spe", "channel"))
    for kind, scores in exact.items():
        assert scores == pytest.approx(fast.scores(added, tried, (kind,))[kind], rel=1e-8, abs=1e-8)
    low, high = fast.channel_bounds(added, tried)
    assert (low <= exact["channel"] + 1e-8).all()
    assert (exact["channel"] <= high + 1e-8).all()
    assert low.max() > 0.5 * exact["channel"].max()
    assert high.min() < 10 * exact["channel"].max()


@pytest.mark.slow
@pytest.mark.parametrize("lags", [1, 2])
@pytest.mark.parametrize("kind", [*SIZED, "stuck"])
def test_a_drill_finds_what_the_real_detector_finds(lags: int, kind: str):
    """Row by row, at five sizes: the same spans, in each of which `detect` raises an alarm."""
    model, rows = a_model(lags), draw(100, 4, lags)
    limits = {kind: most * (1 if kind == "channel" else lags) for kind, most in LIMITS.items()}
    drill = a_drill(model, rows, limits=limits)
    starts = np.tile(drill.spans.starts, 2)
    for size in (0.4, 0.7, 1.0, 1.4, 2.0):
        added = size * drill._shapes[kind] if kind != "stuck" else None
        if added is None:
            starts, added = drill.spans.starts, held(rows[:, 1], drill.spans.starts, 20)
        some = slice(int(10 * size), None, 9)
        found = [
            oracle_drill.raises_alarm(
                model,
                oracle_drill.with_fault(rows, lags, 1, start, offsets)[: start + 20],
                limits,
                RULE,
                start,
            )
            for start, offsets in zip(starts[some].tolist(), added[some], strict=True)
        ]

        assert found == drill._found(1, added)[some].tolist()


@given(st.sampled_from(SIZED), st.integers(0, DIM - 1), st.lists(st.floats(0, 8), min_size=2))
@settings(max_examples=20, deadline=None)
def test_a_larger_fault_is_found_wherever_a_smaller_one_is(kind: str, channel: int, sizes: list):
    """Scores are convex in the size, and no row of these is over a limit without a fault."""
    shares = [QUIET.share(kind, channel, size) for size in sorted(sizes)]

    assert sorted(shares) == shares


HIGHEST = a_drill(MODEL, ROWS).base.even
QUIET = a_drill(
    MODEL,
    ROWS,
    limits={
        "ewma": float(HIGHEST["distance"].max()),
        "channel": float(HIGHEST["channel"].max()),
    },
)


@pytest.mark.parametrize("kind", SIZED)
def test_the_smallest_fault_is_found_and_a_slightly_smaller_one_is_not(kind: str):
    """To the 2 % of the bisection."""
    smallest = DRILL.smallest(kind, 0)

    assert DRILL.share(kind, 0, smallest) >= FOUND > DRILL.share(kind, 0, smallest / 1.03)


def test_a_channel_that_is_independent_of_the_rest_is_blind():
    """And the others, which share causes, are not."""
    blind = [DRILL.answer(channel).blind for channel in range(DIM)]

    assert [channel == ALONE for channel in range(DIM)] == blind


def test_a_fault_that_no_size_shows_has_no_smallest_size():
    """With limits that no score reaches."""
    deaf = a_drill(MODEL, ROWS, limits={"ewma": 1e12})

    assert deaf.answer(0).bias == math.inf
    assert deaf.share("bias", 0, LARGEST) == 0.0


def test_rows_model_and_state_are_bit_for_bit_as_before():
    """Nothing that a drill gets is changed."""
    model, rows = a_model(), draw(80, 8)
    rows[5, 2] = np.nan

    def state() -> list[bytes]:
        subspace = model.scoring.summary.parts[0]
        arrays = [rows, subspace.basis, subspace.sigma, subspace.mean, subspace.channel_energies]
        arrays += [model.own.rows, model.residual_scale.squares, model.residual_scale.weight]
        return [each.tobytes() for each in arrays]

    before = state()
    drill = a_drill(model, rows)
    for channel in range(DIM):
        drill.answer(channel)

    assert before == state()


def test_spans_in_which_an_alarm_is_raised_without_a_fault_do_not_count():
    """They would count as found whatever the size is."""
    rows = ROWS.copy()
    rows[60:70, 0] += 20
    starts = a_drill(MODEL, rows).spans.starts

    assert not any(start <= 64 < start + 20 for start in starts.tolist())
    assert len(starts) > 2


def test_a_drill_says_why_it_cannot_be_done():
    """Without limits, without room for a fault, and in an alarm."""
    with pytest.raises(UsageError, match="needs limits"):
        a_drill(MODEL, ROWS, limits={})
    with pytest.raises(UsageError, match="needs more rows"):
        a_drill(MODEL, ROWS[:6])
    with pytest.raises(UsageError, match="without an alarm"):
        a_drill(MODEL, ROWS + 50)


def test_a_kernel_group_is_drilled_by_changed_copies():
    """Scores of features are not quadratic in a reading."""
    model = a_model(features=RandomFourier(Gaussian(0.1), 32))
    drill = a_drill(model, draw(60, 3), limits={"linear": 4.0})

    assert isinstance(drill._of(0), DirectResponse)
    assert 0.1 < drill.smallest("bias", 0) < LARGEST


def test_exchanged_channels_are_those_that_are_most_alike():
    """Of the same unit; a channel that has no other of its unit is exchanged with none."""
    readings = np.array([[0.0, 9.0, 1.0, 0.1], [0.0, 9.0, 1.0, 0.1]])
    unit = np.array(["C", "C", "C", "V"])

    assert [2, 2, 0, 3] == most_alike(readings, unit[:, None] == unit).tolist()


def test_spans_fit_into_the_rows():
    """However few there are."""
    for n in range(1, 90):
        tried = spans(n, 60)
        assert (tried.starts >= 1).all() or n < 4
        assert (tried.starts + tried.rows <= n).all()


def test_a_drift_reaches_its_size_at_the_end():
    """And noise is the noise that was drawn."""
    ages, noise = np.arange(1, 5) / 4, np.array([1.0, -1.0, 0.5, 0.0])

    assert 1.0 == shape("drift", ages, noise)[-1]
    assert noise.tolist() == shape("noise", ages, noise).tolist()
    assert shape("swap", ages, noise) is None
    assert BLIND < FOUND

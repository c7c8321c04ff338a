"""StreamDetector: the scores of SubspaceDetector, row by row, under river's names."""

from __future__ import annotations

import doctest
import importlib
import itertools
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("river")

from river import anomaly, compose, evaluate, metrics, preprocessing

from submerge import UsageError
from submerge_bridges.river import StreamDetector

WIDTH = 6
NAMES = [f"c{i}" for i in range(WIDTH)]
PATTERN = np.random.default_rng(1).normal(size=(2, WIDTH))


def matrix(n: int, *, seed: int = 0, gaps: float = 0.0) -> np.ndarray:
    """Rows (n, WIDTH) of two causes and a noise, a share of their values missing."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 2)) @ PATTERN + 0.2 * rng.normal(size=(n, WIDTH))
    rows[rng.random(rows.shape) < gaps] = np.nan
    return rows


def named(rows: np.ndarray) -> list[dict[str, float]]:
    """The same rows as river has them."""
    return [dict(zip(NAMES, row, strict=True)) for row in rows.tolist()]


def learnt(detector, rows):
    """The detector, after rows that are named already."""
    for row in rows:
        detector.learn_one(row)
    return detector


# -- equal to the estimator's --------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(
    n=st.integers(2, 800),
    grace=st.integers(2, 130),
    window=st.none() | st.integers(130, 300),
    gaps=st.sampled_from([0.0, 0.05]),
)
@example(n=800, grace=64, window=None, gaps=0.05)
@example(n=800, grace=10, window=150, gaps=0.0)
@example(n=5, grace=5, window=None, gaps=0.0)
def test_scores_are_those_of_the_estimator_on_the_same_rows(n, grace, window, gaps):
    """The estimator learns the rows that `learnt` names, in the same blocks, and agrees."""
    pytest.importorskip("sklearn")
    from submerge.sklearn import SubspaceDetector

    rows, new = matrix(n, gaps=gaps), matrix(50, seed=2, gaps=gaps)
    detector = learnt(StreamDetector(grace_period=grace, window=window), named(rows))
    start, stop = detector.learnt
    found = np.array([detector.score_one(row) for row in named(new)])
    if stop == 0:
        assert n < grace
        assert not found.any()
        return

    assert n - stop < 64 + max(grace, (stop - start) / 8)
    estimator, ends = SubspaceDetector(), {*range(64, n, 64), grace}
    ends = [end for end in sorted(ends) if max(start, grace - 1) < end < stop]
    for block in np.split(rows[start:stop], np.subtract(ends, start)):
        estimator.partial_fit(block)
    np.testing.assert_allclose(-estimator.score_samples(new), found, rtol=1e-9)


@pytest.mark.slow
def test_without_gaps_blocks_make_no_difference():
    """Thousands of rows, learnt by the estimator at once, score alike to rounding."""
    pytest.importorskip("sklearn")
    from submerge.sklearn import SubspaceDetector

    rows, new = matrix(3000), matrix(50, seed=2)
    detector = learnt(StreamDetector(), named(rows))
    start, stop = detector.learnt

    assert 0 == start < 2500 < stop
    expected = -SubspaceDetector().fit(rows[:stop]).score_samples(new)
    found = [detector.score_one(row) for row in named(new)]
    np.testing.assert_allclose(expected, found, rtol=1e-9)


def test_blame_and_expectation_are_the_estimators():
    """Per channel, by name."""
    pytest.importorskip("sklearn")
    from submerge.sklearn import SubspaceDetector

    rows, new = matrix(128), matrix(1, seed=2)
    detector = learnt(StreamDetector(), named(rows))
    estimator = SubspaceDetector().partial_fit(rows)

    assert (0, 128) == detector.learnt
    for expected, found in (
        (estimator.contributions(new), detector.contributions_one(named(new)[0])),
        (estimator.expected(new), detector.expected_one(named(new)[0])),
    ):
        assert NAMES == list(found)
        np.testing.assert_allclose(expected[0], list(found.values()), rtol=1e-9)


def test_which_rows_are_scored_changes_no_score():
    """A detector that scored every row, and one that scored none, agree to the last bit."""
    rows, (new,) = named(matrix(700)), named(matrix(1, seed=2))
    busy, quiet = StreamDetector(), learnt(StreamDetector(), rows)
    for row in rows:
        busy.score_one(row)
        busy.learn_one(row)

    assert quiet.score_one(new) == busy.score_one(new)


def test_a_window_forgets():
    """After a change of the correlations, new rows are normal again, and old ones are not."""
    turned = named(matrix(600, seed=3)[:, ::-1])
    old, new = named(matrix(20, seed=4)), named(matrix(20, seed=5)[:, ::-1])
    forgets = learnt(StreamDetector(window=200), named(matrix(600)) + turned)
    remembers = learnt(StreamDetector(), named(matrix(600)) + turned)

    def middle(detector, rows):
        return np.median([detector.score_one(row) for row in rows])

    assert middle(forgets, new) < 2 * WIDTH
    assert middle(forgets, old) > 5 * WIDTH
    assert middle(remembers, old) < middle(forgets, old)
    assert 200 <= np.ptp(forgets.learnt) <= 400 + 64


# -- features that come and go -------------------------------------------------


def test_channels_are_the_features_of_the_grace_period():
    """One that comes in its last row is learnt; one that comes later is left out and counted."""
    rows = named(matrix(200))
    early = [{name: row[name] for name in NAMES[1:]} for row in rows[:9]]
    detector = learnt(StreamDetector(grace_period=10), early + rows[9:])

    assert tuple(NAMES) == detector.channels
    assert 0 == detector.unknown
    (new,) = named(matrix(1, seed=2))
    assert detector.score_one(new) == detector.score_one({**new, "later": 1e9})
    learnt(detector, [{**new, "later": 1.0, "too": 2.0}] * 3)
    assert 6 == detector.unknown
    assert tuple(NAMES) == detector.channels


@pytest.mark.parametrize("gap", [None, np.nan, "absent"])
def test_what_is_missing_is_a_gap(gap):
    """However it is missing, a row has the score of the estimator's row with NaN."""
    detector = learnt(StreamDetector(), named(matrix(200)))
    (row,) = named(matrix(1, seed=2))
    holed = {**row, "c2": gap}
    if gap == "absent":
        del holed["c2"]

    assert detector.score_one({**row, "c2": np.nan}) == detector.score_one(holed)
    assert detector.score_one(row) != detector.score_one(holed)
    assert detector.score_one({}) == detector.score_one({"unheard of": 3.0}) < WIDTH


def test_names_may_be_anything_that_a_dict_takes():
    """Numbers and tuples are names as well, beside text."""
    names = ["a", 1, ("b", 2), 0, "z", 10]
    rows = [dict(zip(names, row, strict=True)) for row in matrix(100).tolist()]
    detector = learnt(StreamDetector(), rows)

    assert {*names} == {*detector.channels}
    assert detector.score_one(rows[0]) == learnt(
        StreamDetector(), [dict(reversed(row.items())) for row in rows]
    ).score_one(rows[0])


@pytest.mark.parametrize("when", ["in the grace period", "later"])
@pytest.mark.parametrize("value", ["on", "1.5", [1.0, 2.0], 1j, object()])
def test_what_is_no_number_is_refused_and_changes_nothing(when, value):
    """The line names the feature, and says how to select numbers."""
    rows = named(matrix(100))
    detector = learnt(StreamDetector(), rows[: 100 if when == "later" else 5])
    before = pickle.dumps(detector)

    with pytest.raises(UsageError, match=re.escape("feature 'c3' must be a number, got ")):
        detector.learn_one({**rows[0], "c3": value})

    assert before == pickle.dumps(detector)


def test_numbers_of_all_kinds_are_numbers():
    """Whole ones, truth values and NumPy's, however large."""
    detector = learnt(StreamDetector(), named(matrix(100)))
    (row,) = named(matrix(1, seed=2))

    assert detector.score_one({**row, "c1": 1.0}) == detector.score_one({**row, "c1": True})
    assert detector.score_one({**row, "c1": 1.0}) == detector.score_one({**row, "c1": np.int8(1)})
    assert 1e6 < detector.score_one({**row, "c1": 10**30})
    assert 1e6 < detector.score_one({**row, "c1": -(10**400)}) < np.inf


def test_numbers_of_all_kinds_are_learnt_in_the_grace_period():
    """As after it."""
    rows = named(np.round(matrix(128)))
    kinds = itertools.cycle([int, np.float32, np.int8])
    others = [{**row, "c0": kind(row["c0"])} for row, kind in zip(rows, kinds, strict=False)]
    switched = [{**row, "on": np.bool_(i % 3 == 0)} for i, row in enumerate(rows)]

    (new,) = named(matrix(1, seed=2))
    assert learnt(StreamDetector(), rows).score_one(new) == learnt(
        StreamDetector(), others
    ).score_one(new)
    assert (*NAMES, "on") == learnt(StreamDetector(), switched).channels


def test_empty_rows_take_no_memory():
    """Before the first feature there is nothing to count."""
    detector = learnt(StreamDetector(), [{}] * 1000)

    assert pickle.dumps(StreamDetector()) == pickle.dumps(detector)
    assert {} == detector.expected_one({})


@pytest.mark.slow
def test_nothing_of_scikit_learn_is_loaded():
    """river does not need it, and neither does this."""
    code = "import sys, submerge_bridges.river; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == done.stdout.strip()


def test_too_many_features_are_refused_before_they_are_held():
    """A stream that invents names cannot fill the memory."""
    with pytest.raises(UsageError, match="at most 512 features, got 513"):
        StreamDetector().learn_one({f"x{i}": 0.0 for i in range(513)})


def test_an_infinite_reading_scores_high_and_is_not_learnt():
    """As a client: too large to be a reading."""
    rows = named(matrix(256))
    spoilt = [{**row, "c0": np.inf} if i % 10 == 3 else row for i, row in enumerate(rows)]
    detector = learnt(StreamDetector(), spoilt)

    assert 1e6 < detector.score_one(spoilt[3]) < np.inf
    assert detector.score_one(rows[3]) < 10 * WIDTH


def test_rows_without_variation_have_no_model_yet():
    """Scores stay 0 until something varies."""
    detector = learnt(StreamDetector(), [{"a": 1.0, "b": 2.0}] * 200)

    assert 0.0 == detector.score_one({"a": 5.0, "b": 5.0})
    assert {} == detector.contributions_one({"a": 5.0, "b": 5.0})
    learnt(detector, named(matrix(64)))  # other features: these are left out
    assert 6 * 64 == detector.unknown


# -- in river's company --------------------------------------------------------


def test_a_scaler_before_it_is_not_needed():
    """Scores hang on no unit: they are the same to rounding in other ones."""
    rows, new = matrix(200), matrix(20, seed=2)
    units = 10.0 ** np.arange(-3, 3)
    plain = learnt(StreamDetector(), named(rows))
    scaled = learnt(StreamDetector(), named(rows * units))

    for row, other in zip(named(new), named(new * units), strict=True):
        assert np.isclose(plain.score_one(row), scaled.score_one(other), rtol=1e-9)


@pytest.mark.slow
def test_a_pipeline_with_a_filter_marks_the_fault_and_does_not_learn_it():
    """StandardScaler | QuantileFilter(detector), row by row."""
    model = compose.Pipeline(
        preprocessing.StandardScaler(), anomaly.QuantileFilter(StreamDetector(), q=0.95)
    )
    flags = []
    rows = matrix(600)
    rows[500:520, 2] += 3
    for row in named(rows):
        flags.append(model["QuantileFilter"].classify(model.score_one(row)))
        model.learn_one(row)

    assert sum(flags[500:520]) >= 15
    assert sum(flags[100:500]) <= 0.1 * 400
    detector = model["QuantileFilter"].anomaly_detector
    assert detector._rows._seen < 600


def test_river_evaluates_it_progressively():
    """Each row is scored, then learnt; by a metric that does not expect scores from 0 to 1."""
    rows = matrix(400)
    faulty = np.arange(400) % 20 == 19
    rows[faulty, 2] += 3
    stream = [(row, bool(mark)) for row, mark in zip(named(rows), faulty, strict=True)]

    metric = metrics.RollingROCAUC(window_size=300)
    found = evaluate.progressive_val_score(stream, StreamDetector(), metric)

    assert found.get() > 0.8


def test_a_pickled_detector_goes_on_where_it_was():
    """In the middle of a block, to the last bit."""
    rows, (new,) = named(matrix(300)), named(matrix(1, seed=2))
    detector = learnt(StreamDetector(), rows[:150])
    copy = pickle.loads(pickle.dumps(detector))  # noqa: S301 - our own bytes

    assert learnt(detector, rows[150:]).score_one(new) == learnt(copy, rows[150:]).score_one(new)


def test_a_clone_has_the_parameters_and_has_learnt_nothing():
    """river's clone, and its clone with other parameters."""
    detector = learnt(StreamDetector(grace_period=5, window=70), named(matrix(100)))

    assert (5, 70) == (detector.clone().grace_period, detector.clone().window)
    assert (0, 0) == detector.clone().learnt
    assert 9 == detector.clone({"grace_period": 9}).grace_period


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"grace_period": 1}, "grace_period must be a whole number of at least 2, got 1"),
        (
            {"grace_period": 64, "window": 63},
            "window must be a whole number of at least 64, got 63",
        ),
        ({"window": 1e3}, "window must be a whole number"),
    ],
)
def test_parameters_are_checked_when_they_are_given(parameters, said):
    """river's estimators have no later moment for that."""
    with pytest.raises(UsageError, match=said):
        StreamDetector(**parameters)


@pytest.mark.parametrize("name", ["stream_detector", "stream_pca"])
def test_the_examples_of_the_docstrings_run(name):
    """As they are printed."""
    module = importlib.import_module(f"submerge_bridges.river.{name}")

    result = doctest.testmod(module)

    assert result.attempted >= 6
    assert 0 == result.failed


def test_without_river_the_error_says_what_to_install(monkeypatch):
    """One line, with the command."""
    for name in [
        name for name in sys.modules if name.startswith(("river", "submerge_bridges.river"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "river", None)

    with pytest.raises(ImportError, match=re.escape("pip install 'submerge[river]'")):
        importlib.import_module("submerge_bridges.river")


@pytest.mark.filterwarnings("ignore:Warning. converting a masked element:UserWarning")
def test_a_masked_value_is_a_gap():
    """A row of a masked array has gaps where it is masked, among the first rows as well."""
    rows = matrix(600, gaps=0.02)
    masked = [dict(zip(NAMES, row, strict=True)) for row in np.ma.masked_invalid(rows)]

    by_nan, by_mask = (learnt(StreamDetector(), each) for each in (named(rows), masked))

    assert by_nan.score_one(named(rows)[-1]) == by_mask.score_one(masked[-1])

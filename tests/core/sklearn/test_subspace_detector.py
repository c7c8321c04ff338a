"""SubspaceDetector: scikit-learn's rules, and anomalous rows as a client finds them."""

from __future__ import annotations

import doctest
import importlib
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from submerge import UsageError
from submerge.errors import NothingLearnt
from submerge.history.detection import HistoryDetector
from submerge.history.fit import fit
from submerge.history.layout import MOST
from submerge.history.recording import Recorded
from submerge.history.settings import SOON
from submerge.sklearn import SubspaceDetector
from support import estimators

WIDTH = 8
RNG = np.random.default_rng(42)
PATTERN = RNG.normal(size=(2, WIDTH))
OTHER_PATTERN = RNG.normal(size=(3, WIDTH))
SCALE, OFFSET = np.logspace(-3, 3, WIDTH), 100 * RNG.normal(size=WIDTH)

BATTERY = [
    SubspaceDetector(),
    SubspaceDetector(rank=1, rank_max=3, contamination=0.05),
]


def normal(n: int, seed: int = 0, width: int = WIDTH) -> np.ndarray:
    """Return rows in units: two causes, and a noise of .3."""
    rng = np.random.default_rng(seed)
    pattern = PATTERN if width == WIDTH else np.random.default_rng(1).normal(size=(2, width))
    rows = rng.normal(size=(n, 2)) @ pattern + 0.3 * rng.normal(size=(n, width))
    return rows * SCALE + OFFSET if width == WIDTH else rows


def reversed_sensor(rows: np.ndarray, channel: int) -> np.ndarray:
    """Return rows with a channel that has the sign of its deviation reversed."""
    rows = rows.copy()
    rows[:, channel] = 2 * OFFSET[channel] - rows[:, channel]
    return rows


def outliers(detector: SubspaceDetector, rows: np.ndarray) -> float:
    """Return the share of rows that are predicted to be outliers."""
    return float(np.mean(detector.predict(rows) == -1))


def test_a_high_score_is_normal_and_a_negative_decision_an_outlier():
    """As in scikit-learn; threshold_ is a distance, beyond which rows are outliers."""
    detector = SubspaceDetector().fit(normal(1000))
    rows = np.vstack((normal(500, 1), reversed_sensor(normal(500, 2), 4)))
    scores = detector.score_samples(rows)

    assert scores[:500].mean() > scores[500:].mean()
    np.testing.assert_array_equal(
        np.where(-scores <= detector.threshold_, 1, -1), detector.predict(rows)
    )
    np.testing.assert_array_equal(scores - detector.offset_, detector.decision_function(rows))


@pytest.mark.parametrize(("estimator", "check"), estimators.battery(BATTERY), ids=estimators.what)
def test_it_keeps_every_rule_of_scikit_learn(estimator, check):
    """No check is expected to fail; check_array_api_input skips by itself, as of StreamingPCA."""
    check(estimator)


# -- how far rows are ------------------------------------------------------------


def test_scores_are_mahalanobis_distances_by_the_covariance():
    """Against plain NumPy, with the inverse of L L' + Psi."""
    detector, rows = SubspaceDetector().fit(normal(1000)), normal(200, 1)
    off = rows - detector.mean_
    unit = off / detector.scale_
    inverse = np.linalg.inv(detector.covariance_ / np.outer(detector.scale_, detector.scale_))

    expected = -np.einsum("ni,ij,nj->n", unit, inverse, unit)
    np.testing.assert_allclose(expected, detector.score_samples(rows), rtol=1e-9)


def test_the_covariance_is_that_of_the_rows():
    """Their variances exactly, to a ten-thousandth, and their correlations as factors have them."""
    rows = normal(5000)
    detector = SubspaceDetector().fit(rows)
    found = detector.covariance_ / np.outer(detector.scale_, detector.scale_)

    np.testing.assert_allclose(rows.mean(axis=0), detector.mean_, rtol=1e-9)
    np.testing.assert_allclose(rows.std(axis=0), detector.scale_, rtol=1e-9)
    np.testing.assert_allclose(np.corrcoef(rows.T), found, atol=0.02)


@pytest.mark.slow
def test_rows_are_scored_as_a_client_scores_them():
    """The distances of `history`, rows with gaps included; directions are float32 there."""
    rows, new = normal(3000), normal(500, 1)
    new[::3, 2] = np.nan
    new[::7, 5:] = np.nan
    fitted = fit(lambda: [Recorded("m", rows, None)], [f"x{i}" for i in range(WIDTH)])
    client = HistoryDetector(fitted.model, fitted.states["m"], 0.0, SOON)
    judged = client.add(Recorded("m", new, None))
    expected = np.concatenate([each.scores.even["distance"] for each in judged])
    detector = SubspaceDetector().fit(rows)

    assert fitted.folds.rank == detector.rank_
    np.testing.assert_allclose(expected, -detector.score_samples(new), rtol=1e-5)


# -- the threshold ---------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_as_many_new_normal_rows_are_outliers_as_were_asked_for(share):
    """Within half of that share."""
    detector = SubspaceDetector(false_share=share).fit(normal(4000))

    assert share / 2 < outliers(detector, normal(20_000, 1)) < 1.5 * share


def test_the_threshold_is_of_rows_that_were_not_learnt():
    """Sixty rows of twenty columns: by rows that were learnt, a third of new ones are outliers."""
    rows, new = normal(60, 0, 20), normal(5000, 1, 20)

    assert outliers(SubspaceDetector(contamination=0.01).fit(rows), new) > 0.1
    assert outliers(SubspaceDetector().fit(rows), new) < 0.05


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_contamination_is_the_share_of_learnt_rows_that_are_outliers(share):
    """To the row, as in scikit-learn."""
    rows = normal(1000)

    assert share == outliers(SubspaceDetector(contamination=share).fit(rows), rows)


def test_a_fault_that_no_single_sensor_shows_is_found_and_named():
    """A reversed sensor has the same values; z-scores find no more of them than of normal rows."""
    history, channel = normal(4000), 3
    before = normal(2000, 1)
    rows = reversed_sensor(before, channel)
    detector = SubspaceDetector().fit(history)

    def blind(rows: np.ndarray) -> float:
        z = np.abs(rows - history.mean(axis=0)) / history.std(axis=0)
        return float(np.mean(z.max(axis=1) > 3))

    # Rows whose channel is near its mean are normal either way.
    wrong = np.abs(rows[:, channel] - OFFSET[channel]) > SCALE[channel]
    shares = detector.contributions(rows[wrong])

    assert abs(blind(rows) - blind(before)) < 0.005
    assert np.mean(detector.predict(rows[wrong]) == -1) > 0.95
    assert np.mean(shares.argmax(axis=1) == channel) > 0.95
    np.testing.assert_allclose(1.0, shares.sum(axis=1))


def test_the_expected_value_is_the_true_one_in_its_unit():
    """A sensor that reads ten deviations too much is expected where it should be."""
    rows, channel = normal(500, 1), int(np.abs(PATTERN).max(axis=0).argmax())
    wrong = rows.copy()
    wrong[:, channel] += 10 * rows[:, channel].std()
    expected = SubspaceDetector().fit(normal(4000)).expected(wrong)
    off = (expected - rows)[:, channel]

    assert np.sqrt(np.mean(off**2)) < 0.4 * rows[:, channel].std()


# -- gaps ------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_with_gaps_are_outliers_as_often_as_others():
    """Whatever is missing, every score is finite."""
    detector, rows = SubspaceDetector().fit(normal(4000)), normal(20_000, 1)
    rows[np.random.default_rng(3).random(rows.shape) < 0.3] = np.nan

    assert np.isfinite(detector.score_samples(rows)).all()
    assert 0.004 < outliers(detector, rows) < 0.02
    np.testing.assert_array_equal([1], detector.predict(np.full((1, WIDTH), np.nan)))


@pytest.mark.slow
def test_gaps_are_learnt_as_what_they_hide():
    """A tenth of all values is missing, and the covariance is the same."""
    rows = normal(5000)
    gappy = rows.copy()
    gappy[np.random.default_rng(3).random(rows.shape) < 0.1] = np.nan
    whole, parts = SubspaceDetector().fit(rows), SubspaceDetector().fit(gappy)

    unit = np.outer(whole.scale_, whole.scale_)
    np.testing.assert_allclose(whole.covariance_ / unit, parts.covariance_ / unit, atol=0.06)


def test_rows_without_half_of_their_values_are_not_learnt():
    rows = normal(1000)
    few = np.vstack((rows, np.where(np.arange(WIDTH) < 3, 1e6 * rows, np.nan)))

    np.testing.assert_allclose(
        SubspaceDetector().fit(rows).mean_, SubspaceDetector().fit(few).mean_, rtol=1e-12
    )


def test_rows_that_are_not_learnt_have_no_part_in_the_threshold():
    """A tenth of the rows has a reading that is none."""
    rows = normal(2000)
    broken = rows.copy()
    broken[::10, 0] = 1e15
    threshold = SubspaceDetector().fit(rows).threshold_

    assert 0.8 * threshold < SubspaceDetector().fit(broken).threshold_ < 1.25 * threshold


def test_a_reading_of_any_size_has_a_score():
    detector = SubspaceDetector().fit(normal(1000))
    rows = normal(2)
    rows[0, 5] = -1e300

    assert np.isfinite(detector.score_samples(rows)).all()
    np.testing.assert_array_equal([-1, 1], detector.predict(rows))
    assert 5 == detector.contributions(rows)[0].argmax()


# -- piece by piece --------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 1299), max_size=6), st.booleans())
def test_pieces_are_learnt_as_the_whole(cuts, begun):
    """Mean, rank and covariance to rounding, however rows are cut, and after `fit` as well."""
    rows = normal(1300)
    whole, parts = SubspaceDetector().fit(rows), SubspaceDetector()
    for i, piece in enumerate(np.split(rows, sorted(set(cuts)))):
        if begun and i == 0 and len(piece) > 1:
            parts.fit(piece)
        else:
            parts.partial_fit(piece)

    unit = np.outer(whole.scale_, whole.scale_)
    assert (whole.rank_, whole.n_samples_seen_) == (parts.rank_, parts.n_samples_seen_)
    np.testing.assert_allclose(whole.mean_, parts.mean_, rtol=1e-9)
    np.testing.assert_allclose(whole.covariance_ / unit, parts.covariance_ / unit, atol=1e-9)
    np.testing.assert_allclose(
        whole.components_.T @ whole.components_, parts.components_.T @ parts.components_, atol=1e-9
    )


def test_few_rows_in_pieces_are_those_of_fit():
    """To the last bit, threshold included."""
    rows, parts = normal(500), SubspaceDetector()
    for piece in np.array_split(rows, 15):
        # What is read in between changes nothing.
        assert parts.partial_fit(piece).threshold_ > 0

    assert SubspaceDetector().fit(rows).threshold_ == parts.threshold_


@pytest.mark.slow
def test_rows_that_come_later_measure_the_threshold_before_they_are_learnt():
    """It holds on new rows; memory has a bound."""
    detector = SubspaceDetector()
    for seed in range(20):
        detector.partial_fit(normal(1000, seed))

    assert 0.005 < outliers(detector, normal(20_000, 99)) < 0.015
    assert len(pickle.dumps(detector)) < 2000 * MOST


def restless(n: int, seed: int) -> np.ndarray:
    """Return rows of another pattern, some of which are much farther out than others."""
    rng = np.random.default_rng(seed)
    far = np.exp(rng.normal(size=(n, 1)))
    return far * (rng.normal(size=(n, 3)) @ OTHER_PATTERN + 0.3 * rng.normal(size=(n, WIDTH)))


def test_the_threshold_follows_the_rows_that_come_later():
    """It is neither that of the first rows nor measured by a model of them."""
    detector = SubspaceDetector(false_share=0.05).fit((normal(600) - OFFSET) / SCALE)
    for seed in range(20):
        detector.partial_fit(restless(1000, seed))

    assert 0.025 < outliers(detector, restless(20_000, 99)) < 0.075


def test_a_threshold_of_learnt_rows_ends_with_them():
    """With a number for `contamination`, after more rows it is a share of those."""
    detector = SubspaceDetector(contamination=0.1).fit(normal(1000))
    before = detector.threshold_

    assert before != detector.partial_fit(normal(1000, 1)).threshold_


@pytest.mark.slow
def test_a_fault_in_the_history_is_left_out_in_pieces_as_well():
    """A sensor that reads too much for three hundred rows of twelve thousand."""
    rows = normal(12_000)
    rows[5000:5300, 3] += 20 * SCALE[3]
    whole, parts = SubspaceDetector().fit(rows), SubspaceDetector()
    for piece in np.array_split(rows, 24):
        parts.partial_fit(piece)
    clean = np.delete(rows, slice(5000, 5300), axis=0)

    np.testing.assert_allclose(whole.mean_, parts.mean_, rtol=1e-9)
    np.testing.assert_allclose(clean.std(axis=0), whole.scale_, rtol=0.02)


def test_columns_that_vary_only_later_are_learnt_later():
    """Equal rows at first are no error in partial_fit: no score is asked for yet."""
    detector = SubspaceDetector().partial_fit(np.ones((600, WIDTH)))

    with pytest.raises(NothingLearnt, match="expected channels that vary"):
        detector.threshold_  # noqa: B018
    assert detector.partial_fit(normal(1000)).threshold_ > 0


# -- in scikit-learn's company ---------------------------------------------------


def test_frames_have_names_that_must_agree():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(normal(200), columns=[f"sensor {i}" for i in range(WIDTH)])
    detector = SubspaceDetector().fit(frame)

    assert list(frame.columns) == list(detector.feature_names_in_)
    with pytest.raises(ValueError, match="feature names"):
        detector.predict(frame[frame.columns[::-1]])


def test_a_pickled_detector_goes_on_and_a_clone_begins_again():
    detector = SubspaceDetector(rank=3, false_share=0.02).fit(normal(1000))
    copy = pickle.loads(pickle.dumps(detector))  # noqa: S301 (our own bytes)
    more = normal(500, 1)

    assert detector.partial_fit(more).threshold_ == copy.partial_fit(more).threshold_
    assert clone(detector).get_params() == detector.get_params()
    with pytest.raises(NotFittedError):
        clone(detector).threshold_  # noqa: B018


def test_a_pipeline_finds_the_same_rows():
    """A scaler before it changes nothing."""
    rows, new = normal(1000), reversed_sensor(normal(500, 1), 2)
    piped = make_pipeline(StandardScaler(), SubspaceDetector()).fit(rows)

    np.testing.assert_array_equal(SubspaceDetector().fit(rows).predict(new), piped.predict(new))


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_few_rows_are_learnt(n):
    """The rows themselves are then normal."""
    rows = normal(n)
    detector = SubspaceDetector().fit(rows)

    assert np.isfinite(detector.threshold_)
    np.testing.assert_array_equal(np.ones(n), detector.predict(rows))


def test_a_single_column_is_a_z_score():
    rows = normal(2000)[:, :1]
    detector = SubspaceDetector().fit(rows)
    z = (rows[:, 0] - rows.mean()) / rows.std()

    np.testing.assert_allclose(z**2, -detector.score_samples(rows), rtol=1e-3, atol=1e-12)


def test_what_cannot_be_learnt_is_said_in_one_line():
    """And what was learnt before stays."""
    detector = SubspaceDetector().fit(normal(200))
    before = detector.threshold_
    for rows, line in [
        (normal(1), "at least 2 rows, got n_samples=1"),
        (np.ones((50, WIDTH)), "expected channels that vary"),
        (np.ones((5000, WIDTH)), "expected channels that vary"),
        (np.full((50, WIDTH), np.nan), "half of their values.*got 50 others: fill gaps"),
        (normal(50) + 1e13, "none of 1e12 or more.*scale columns"),
        (normal(50, 0, 600), "at most 512 channels, got 600"),
    ]:
        with pytest.raises(UsageError, match=line):
            detector.fit(rows)

    assert before == detector.threshold_


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"rank": 0}, "rank must be a whole number of at least 1, got 0"),
        ({"rank": "mle"}, "rank must be .auto. or a whole number, got 'mle'"),
        ({"rank_max": 0}, "rank_max must be a whole number of at least 1, got 0"),
        ({"contamination": 0.6}, "contamination must be .auto. or a number .* at most 0.5"),
        ({"contamination": "few"}, "contamination must be .auto. or a number .* got 'few'"),
        ({"false_share": 0}, "false_share must be a number above 0 and at most 0.5, got 0"),
        ({"false_share": "auto"}, "false_share must be a number above 0"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_in_fit(parameters, line):
    with pytest.raises(UsageError, match=line):
        SubspaceDetector(**parameters).fit(normal(50))


# -- what the docs say -------------------------------------------------------------


def test_the_example_of_the_docstring_is_true():
    module = importlib.import_module("submerge.sklearn.subspace_detector")

    assert 0 == doctest.testmod(module).failed


@pytest.mark.slow
def test_the_program_of_the_page_runs(tmp_path, monkeypatch, capsys):
    """It names the sensor that reads too much."""
    pandas = pytest.importorskip("pandas")
    page = (Path(__file__).parents[3] / "docs" / "files.md").read_text()
    (program,) = [
        part
        for part in re.findall(r"```python\n(.*?)```", page, re.S)
        if "SubspaceDetector" in part
    ]
    today = normal(500, 1)
    today[100, 4] += 20 * SCALE[4]
    for name, rows in (("history", normal(3000)), ("today", today)):
        times = pandas.date_range("2026-01-01", periods=len(rows), freq="min", name="time")
        columns = [f"sensor {i}" for i in range(WIDTH)]
        pandas.DataFrame(rows, times, columns).to_csv(tmp_path / f"{name}.csv")
    monkeypatch.chdir(tmp_path)

    exec(program, {})  # noqa: S102 (our own page)

    assert re.search("2026-01-01 01:40:00 +sensor 4", capsys.readouterr().out)


def masked_rows(seed: int) -> tuple[np.ndarray, np.ma.MaskedArray]:
    """Rows with gaps as NaN, and as a masked array with a fill value."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((1500, 1)) + 0.2 * rng.standard_normal((1500, 4))
    mask = np.zeros(rows.shape, dtype=bool)
    mask[::20, 1] = True
    return np.where(mask, np.nan, rows), np.ma.masked_array(np.where(mask, -9999, rows), mask)


def test_masked_rows_are_learnt_and_scored_as_gaps():
    """A fill value under a mask is a gap, in `fit`, `partial_fit` and scores."""
    gaps, masked = masked_rows(2)

    by_gaps, by_mask = SubspaceDetector().fit(gaps), SubspaceDetector().fit(masked)

    assert by_gaps.threshold_ == by_mask.threshold_
    assert np.array_equal(by_gaps.score_samples(gaps), by_mask.score_samples(masked))
    assert np.array_equal(by_gaps.predict(gaps), by_mask.predict(list(masked)))
    first, second = (SubspaceDetector().partial_fit(rows) for rows in (gaps, masked))
    assert np.array_equal(first.covariance_, second.covariance_)

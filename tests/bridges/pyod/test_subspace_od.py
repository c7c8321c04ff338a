"""SubspaceOD: what PyOD's own tests ask of each of its detectors, and SubspaceDetector's scores."""

from __future__ import annotations

import doctest
import importlib
import pickle
import re
import sys

import numpy as np
import pytest

pytest.importorskip("pyod")

from pyod.models.iforest import IForest
from pyod.utils.data import evaluate_print, generate_data
from pyod.utils.utility import standardizer
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from submerge import UsageError
from submerge.sklearn import SubspaceDetector
from submerge_bridges.pyod import SubspaceOD
from support import estimators

SHARE = 0.1
DATA = generate_data(
    n_train=300, n_test=100, n_features=5, contamination=SHARE, behaviour="new", random_state=42
)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = DATA


@pytest.fixture(scope="module")
def fitted() -> SubspaceOD:
    """A detector that has learnt PyOD's own kind of generated data."""
    return SubspaceOD(contamination=SHARE).fit(X_TRAIN)


# -- what PyOD's test cases ask ------------------------------------------------


def test_it_has_all_that_a_fitted_detector_has(fitted):
    """The attributes that PyOD's tests look for, of the shapes that they have."""
    assert X_TRAIN.shape[:1] == fitted.decision_scores_.shape == fitted.labels_.shape
    assert fitted.threshold_ > 0
    assert np.isclose(fitted.decision_scores_.mean(), fitted._mu)
    assert np.isclose(fitted.decision_scores_.std(), fitted._sigma)
    assert 2 == fitted._classes


def test_outliers_score_high(fitted):
    """PyOD's floor for the area under the curve is 0.8."""
    assert roc_auc_score(Y_TRAIN, fitted.decision_scores_) > 0.8
    assert roc_auc_score(Y_TEST, fitted.decision_function(X_TEST)) > 0.8


def test_the_share_of_contamination_is_above_the_threshold(fitted):
    """In the rows that were learnt, exactly; labels and predictions agree on them."""
    assert SHARE * len(X_TRAIN) == fitted.labels_.sum()
    np.testing.assert_array_equal(fitted.decision_scores_ > fitted.threshold_, fitted.labels_)
    np.testing.assert_array_equal(fitted.labels_, fitted.predict(X_TRAIN))


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_probabilities_lie_between_0_and_1_and_rise_with_the_score(fitted, method):
    """Two columns with the sum 1."""
    found = fitted.predict_proba(X_TEST, method=method)

    np.testing.assert_allclose(1, found.sum(axis=1))
    assert ((found >= 0) & (found <= 1)).all()
    order = np.argsort(fitted.decision_function(X_TEST))
    assert (np.diff(found[order, 1]) >= 0).all()


def test_an_unknown_method_of_probabilities_is_refused(fitted):
    """By PyOD."""
    with pytest.raises(ValueError, match="not a valid probability conversion method"):
        fitted.predict_proba(X_TEST, method="something")


def test_confidence_comes_beside_labels_and_probabilities(fitted):
    """A number from 0 to 1 for each row."""
    labels, confidence = fitted.predict(X_TEST, return_confidence=True)
    _, again = fitted.predict_proba(X_TEST, return_confidence=True)

    assert {0, 1} == {*labels}
    np.testing.assert_array_equal(confidence, again)
    assert ((confidence >= 0) & (confidence <= 1)).all()


@pytest.mark.filterwarnings("ignore:The cost of rejection must be positive")
def test_predictions_may_be_rejected(fitted):
    """-2 where the confidence is low, and three figures about it."""
    found, figures = fitted.predict_with_rejection(X_TEST, return_stats=True)

    assert {*found} <= {-2, 0, 1}
    assert 3 == len(figures)


@pytest.mark.filterwarnings("ignore:Function fit_predict:FutureWarning")
def test_fit_predict_gives_the_labels(fitted):
    """PyOD deprecates it, and keeps it."""
    np.testing.assert_array_equal(
        fitted.labels_, SubspaceOD(contamination=SHARE).fit_predict(X_TRAIN)
    )


@pytest.mark.filterwarnings("ignore:Function fit_predict_score:FutureWarning")
@pytest.mark.filterwarnings("ignore:y should not be presented")
def test_fit_predict_score_prints_the_score(capsys):
    """By the area under the curve, or the precision at n; no other."""
    detector = SubspaceOD(contamination=SHARE)

    assert detector.fit_predict_score(X_TEST, Y_TEST) > 0.8
    assert detector.fit_predict_score(X_TEST, Y_TEST, scoring="prc_n_score") > 0.4
    assert "roc_auc_score: " in capsys.readouterr().out
    with pytest.raises(NotImplementedError):
        detector.fit_predict_score(X_TEST, Y_TEST, scoring="something")


def test_ranks_are_those_of_the_scores(fitted):
    """From 0 to the number of learnt rows, or up to 1."""
    ranks = fitted._predict_rank(X_TEST)
    shares = fitted._predict_rank(X_TEST, normalized=True)

    order = np.argsort(fitted.decision_function(X_TEST))
    assert (np.diff(ranks[order]) >= 0).all()
    assert ranks.max() <= len(X_TRAIN)
    assert 1 == shares.max()


def test_it_is_cloned_by_scikit_learn(fitted):
    """A clone has the parameters, has learnt nothing, and learns the same."""
    copy = clone(SubspaceOD(contamination=0.2, rank=2, rank_max=4))

    assert {"contamination": 0.2, "rank": 2, "rank_max": 4} == copy.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X_TEST)
    with pytest.raises(NotFittedError):
        copy.contributions(X_TEST)
    np.testing.assert_array_equal(
        fitted.decision_scores_, clone(fitted).fit(X_TRAIN).decision_scores_
    )


@pytest.mark.filterwarnings("ignore:y should not be presented")
def test_y_is_not_used(fitted):
    """PyOD warns of it."""
    with pytest.warns(UserWarning, match="y should not be presented"):
        other = SubspaceOD(contamination=SHARE).fit(X_TRAIN, Y_TRAIN)

    np.testing.assert_array_equal(fitted.decision_scores_, other.decision_scores_)


# -- scikit-learn's own battery ------------------------------------------------

PYODS_RULES = {
    "check_do_not_raise_errors_in_init_or_set_params": "contamination is checked at once",
    "check_outliers_fit_predict": "labels are 0 and 1",
    "check_outliers_train": "labels are 0 and 1",
    "check_classifier_data_not_an_array": "y is looked at, and refused as no array",
}
"""Checks of scikit-learn that PyOD's own detectors fail, and why."""


@pytest.mark.filterwarnings("ignore:y should not be presented")
@pytest.mark.filterwarnings("ignore:Function fit_predict:FutureWarning")
@pytest.mark.parametrize(
    ("estimator", "check"), estimators.battery([SubspaceOD()]), ids=estimators.what
)
def test_it_keeps_the_rules_of_scikit_learn_that_pyods_detectors_keep(estimator, check):
    """The others fail, each for PyOD's reason."""
    if estimators.what(check) not in PYODS_RULES:
        check(estimator)
        return
    with pytest.raises((AssertionError, TypeError, ValueError)):
        check(estimator)


# -- in PyOD's company ---------------------------------------------------------


def test_its_scores_combine_with_other_detectors(fitted):
    """Averages and maxima of scores that PyOD has standardized."""
    others = [fitted, IForest(n_estimators=10, random_state=0).fit(X_TRAIN)]
    scores = standardizer(np.column_stack([each.decision_function(X_TEST) for each in others]))

    assert roc_auc_score(Y_TEST, scores.mean(axis=1)) > 0.8
    assert roc_auc_score(Y_TEST, scores.max(axis=1)) > 0.8


def test_evaluate_print_takes_its_scores(fitted, capsys):
    """As at the end of each of PyOD's examples."""
    evaluate_print("SubspaceOD", Y_TEST, fitted.decision_function(X_TEST))

    assert "SubspaceOD ROC:" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:y should not be presented")
def test_a_search_over_parameters_clones_and_scores_it():
    """What ensembles and searches do with a detector: clone it, set parameters, fit, score."""
    search = GridSearchCV(
        SubspaceOD(contamination=SHARE),
        {"rank_max": [1, 4], "contamination": [SHARE, 0.2]},
        scoring=lambda found, X, y: roc_auc_score(y, found.decision_function(X)),
        cv=KFold(2, shuffle=True, random_state=0),
    )

    search.fit(X_TRAIN, Y_TRAIN)

    assert search.best_score_ > 0.8


def test_it_ends_a_pipeline_of_scikit_learn(fitted):
    """Columns are scaled inside: a scaler before it changes rounding only."""
    pipeline = make_pipeline(StandardScaler(), SubspaceOD(contamination=SHARE)).fit(X_TRAIN)

    np.testing.assert_allclose(
        fitted.decision_function(X_TEST), pipeline.decision_function(X_TEST), rtol=1e-9
    )


# -- equal to the estimator's --------------------------------------------------


@pytest.mark.parametrize("contamination", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("gaps", [0.0, pytest.param(0.05, marks=pytest.mark.slow)])
def test_scores_threshold_and_blame_are_the_estimators(contamination, gaps):
    """The sign is turned round; the estimator's threshold for a number agrees to rounding."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 2)) @ rng.normal(size=(2, 6)) + 0.2 * rng.normal(size=(700, 6))
    rows[rng.random(rows.shape) < gaps] = np.nan
    estimator = SubspaceDetector(contamination=contamination).fit(rows)
    detector = SubspaceOD(contamination=contamination).fit(rows)

    np.testing.assert_array_equal(-estimator.score_samples(rows), detector.decision_scores_)
    np.testing.assert_array_equal(estimator.contributions(rows), detector.contributions(rows))
    assert np.isclose(estimator.threshold_, detector.threshold_, rtol=1e-12)
    np.testing.assert_array_equal(estimator.predict(rows) == -1, detector.labels_ == 1)


def test_a_pickled_detector_scores_the_same(fitted):
    """To the last bit."""
    copy = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own bytes

    np.testing.assert_array_equal(fitted.decision_function(X_TEST), copy.decision_function(X_TEST))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.ones((1, 3)), "at least 2 rows"),
        (np.ones((9, 3)), "that vary, got only constant"),
        (np.array([["a", "b"]] * 3), "could not convert string"),
    ],
)
def test_a_refused_fit_changes_nothing(rows, said):
    """What was learnt before scores as before."""
    detector = SubspaceOD().fit(X_TRAIN)
    before = detector.decision_function(X_TEST)

    with pytest.raises(ValueError, match=said):
        detector.fit(rows)

    np.testing.assert_array_equal(before, detector.decision_function(X_TEST))
    assert len(X_TRAIN) == len(detector.labels_)


@pytest.mark.parametrize("parameters", [{"rank": 0}, {"rank": "most"}, {"rank_max": 0}])
def test_parameters_are_checked_when_it_learns(parameters):
    """As in scikit-learn."""
    with pytest.raises(UsageError, match=next(iter(parameters))):
        SubspaceOD(**parameters).fit(X_TRAIN)


def test_contamination_is_checked_when_it_is_given():
    """As in PyOD."""
    with pytest.raises(ValueError, match=re.escape("contamination must be in (0, 0.5]")):
        SubspaceOD(contamination=0.6)


def test_the_example_of_the_docstring_runs():
    """As it is printed."""
    result = doctest.testmod(importlib.import_module("submerge_bridges.pyod.subspace_od"))

    assert result.attempted >= 8
    assert 0 == result.failed


def test_without_pyod_the_error_says_what_to_install(monkeypatch):
    """One line, with the command."""
    for name in [
        name for name in sys.modules if name.startswith(("pyod", "submerge_bridges.pyod"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyod", None)

    with pytest.raises(ImportError, match=re.escape("pip install 'submerge[pyod]'")):
        importlib.import_module("submerge_bridges.pyod")

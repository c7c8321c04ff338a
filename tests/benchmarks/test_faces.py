"""The figures of benchmarks/faces.py, against scikit-learn's and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from faces import figures, mixed

metrics = pytest.importorskip("sklearn.metrics")


def test_the_area_is_scikit_learns_with_ties():
    """Scores of few values, and infinite ones."""
    rng = np.random.default_rng(0)
    faulty = rng.random(500) < 0.2
    scores = np.round(rng.normal(size=500) + faulty)

    assert np.isclose(metrics.roc_auc_score(faulty, scores), figures(scores, faulty)[0])


def test_what_is_found_is_above_the_limit_of_the_normal_rows():
    """Of 100 normal rows one is above: it is the highest."""
    normal, odd = np.arange(100.0), np.array([98.0, 98.5, 200.0, np.inf])
    faulty = np.arange(104) >= 100

    assert 3 / 4 == figures(np.concatenate((normal, odd)), faulty)[1]
    assert 0 == figures(np.concatenate((np.full(100, np.inf), odd)), faulty)[1]


def test_a_twentieth_of_the_rows_beside_the_normal_ones_is_anomalous():
    """In an order of chance, rows with their marks."""
    found = mixed(np.zeros((100, 2)), np.ones((50, 2)), seed=0)

    assert 5 == found.faulty.sum()
    np.testing.assert_array_equal(found.faulty, found.rows[:, 0] == 1)
    assert 0 < np.flatnonzero(found.faulty)[0] < 100

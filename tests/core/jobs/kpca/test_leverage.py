"""disLS: scores of merged triangles are those of all rows; how far sketches are off."""

from __future__ import annotations

import numpy as np
import pytest

from plants.uneven import GAMMA, uneven
from submerge.jobs.kinds.kpca import leverage
from submerge.jobs.kinds.kpca.job import Seen
from submerge.jobs.kinds.kpca.settings import KpcaSettings
from support import oracle_kpca

GAUSSIAN = {"kernel": "gaussian", "gamma": GAMMA}
POLYNOMIAL = {"kernel": "polynomial", "degree": 4, "gamma": GAMMA}


def embedded(rows: np.ndarray, kernel: dict) -> np.ndarray:
    """Return sketched features of rows, t = 50."""
    settings = {"components": 10, "sample": "leverage", "sketch": 50, **kernel}
    of = KpcaSettings.of(settings)
    return Seen(of, rows.shape[1], of.kernel).embedded(rows)


def rows_of_size(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 6)) * np.arange(1, 7.0)


@pytest.mark.parametrize("cuts", [[], [40], [1, 2, 90], [0, 0, 150]])
def test_scores_of_merged_triangles_are_those_of_all_rows(cuts):
    """To 1e-10, whatever the tree; nodes with no rows, or fewer than columns, do no harm."""
    E = rows_of_size(150)
    triangles = [leverage.triangle_of([part], 6) for part in np.split(E, cuts)]
    halves = [leverage.triangle_of(some, 6) for some in (triangles[:1], triangles[1:])]
    R = leverage.triangle_of(halves, 6)

    np.testing.assert_allclose(oracle_kpca.leverage(E), leverage.scores(E, R), rtol=0, atol=1e-10)


def test_a_triangle_does_not_depend_on_the_tree():
    """It has one form: upper, with a diagonal that is not negative."""
    E = rows_of_size(80)
    parts = [leverage.triangle_of([part], 6) for part in np.array_split(E, 5)]

    R = leverage.triangle_of(parts, 6)

    np.testing.assert_allclose(leverage.triangle_of([E], 6), R, rtol=1e-12, atol=1e-12)
    assert (np.diag(R) >= 0).all()


def test_a_column_that_others_make_up_has_no_score():
    """Its rows count by the other columns alone: nothing is divided by rounding."""
    E = rows_of_size(60)[:, :3]
    twice = np.hstack([E, E])

    scores = leverage.scores(twice, leverage.triangle_of([twice], 6))

    np.testing.assert_allclose(oracle_kpca.leverage(E), scores, atol=1e-10)


def test_packed_triangles_have_half_of_the_numbers():
    """t (t + 1) / 2 of them, and they come back as they were."""
    R = leverage.triangle_of([rows_of_size(30)], 6)

    assert 21 == leverage.packed(R).size
    np.testing.assert_array_equal(R, leverage.unpacked(leverage.packed(R), 6))


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "least"), [(GAUSSIAN, 0.95), (POLYNOMIAL, 0.75)])
def test_the_papers_sketch_of_rows_keeps_most_of_the_scores(kernel, least):
    """400 random sums a server instead of its rows: scores correlate with those of all rows."""
    parts = [embedded(part, kernel) for part in np.array_split(uneven(), 5)]
    E = np.concatenate(parts)
    exact = leverage.scores(E, leverage.triangle_of(parts, 50))
    sums = [leverage.summed(part, 400, seed=i) for i, part in enumerate(parts)]
    sketched = leverage.scores(E, leverage.triangle_of(sums, 50))

    assert np.corrcoef(exact, sketched)[0, 1] >= least

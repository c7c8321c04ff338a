"""Excluded spans of time and known faults: none of their rows is learnt, however files are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge.errors import NothingLearnt
from submerge.history.recording import LeftOut, Recorded, TimeSpan
from support.six_channels import EPOCH, PERIOD, learnt, normal, recorded


def minutes(first: float, last: float) -> TimeSpan:
    """Return a span of rows: from one to another, both of them in it."""
    return TimeSpan(EPOCH + PERIOD * first, EPOCH + PERIOD * last)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 1499), max_size=5), st.integers(0, 600), st.integers(0, 600))
def test_the_rows_that_are_left_are_the_same_however_files_are_cut(
    cuts: list[int], first: int, more: int
):
    rows, spans = normal(1500), (minutes(first, first + more), TimeSpan(EPOCH + 1400 * PERIOD))
    whole = learnt(recorded(rows), exclude=spans)
    parts = learnt(recorded(rows, tuple(cuts)), exclude=spans)

    assert whole.scatter.scatter.tobytes() == parts.scatter.scatter.tobytes()
    assert whole.sketches.maxima.packed == parts.sketches.maxima.packed
    assert whole.first.left_out == parts.first.left_out == {"excluded": more + 101}
    assert 1500 == parts.first.rows


def test_excluded_rows_are_neither_learnt_nor_scored():
    """The scatter is that of the other rows, and no score is of an excluded one."""
    rows, kept = normal(3000), np.r_[0:500, 1001:3000]
    rows[500:1001] *= 1000
    fitted = learnt(recorded(rows), exclude=(minutes(500, 1000),))
    scale = np.array(fitted.folds.schema.scaling.scale)
    centered = (rows[kept] - rows[kept].mean(axis=0)) / scale

    expected = centered.T @ centered
    np.testing.assert_allclose(expected, fitted.scatter.scatter, rtol=1e-9, atol=1e-6)
    assert (2499, 501) == (fitted.model.counts.learnt, fitted.first.left_out["excluded"])
    assert 2499 == fitted.sketches.distance.n
    assert not fitted.folds.deviant


def test_known_faults_are_counted_apart_and_may_have_no_rows():
    """A row that is excluded as well counts once."""
    spans = (minutes(0, 99), minutes(-500, -400))
    fitted = learnt(recorded(normal(3000)), exclude=(minutes(50, 149),), faults=spans)

    assert {"excluded": 100, "labelled as faults": 50} == fitted.first.left_out


def test_pieces_keep_the_numbers_of_their_rows():
    """An alarm is at its row, also after an excluded one."""
    (part,) = recorded(normal(100))
    left_out = LeftOut((minutes(10, 19), minutes(40, 49)))
    pieces = list(left_out.rest(part))

    assert [(1, 10), (21, 20), (51, 50)] == [(each.first, len(each.rows)) for each in pieces]
    assert [10, 10] == left_out.counts


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ((minutes(5000, 6000),), "expected rows in the excluded span 2023-11-18T09:33:20Z.."),
        ((TimeSpan(),), "all 1,000 are excluded, and the history is of 2023-11-14T22:13:20Z.."),
    ],
)
def test_spans_that_cover_nothing_or_all_are_refused(spans: tuple[TimeSpan, ...], said: str):
    with pytest.raises(UsageError, match=said.replace(".", r"\.")):
        learnt(recorded(normal(1000)), exclude=spans)


def test_rows_without_times_have_no_spans():
    with pytest.raises(UsageError, match=r"expected times to leave out .*, got rows without"):
        learnt([Recorded("m", normal(500), None)], exclude=(TimeSpan(0.0),))


def test_mistakes_are_one_line_that_names_the_cure():
    few, gaps, flat = normal(5), np.full((500, 6), np.nan), np.ones((500, 6))
    gaps[:, 0] = 1.0
    flat[:, 2] = normal(500)[:, 2]

    with pytest.raises(UsageError, match="expected more rows than channels, got 5 rows"):
        learnt(recorded(few))
    with pytest.raises(NothingLearnt, match=r"got none of 500 \(500 gaps\): a row needs values"):
        learnt(recorded(gaps))
    with pytest.raises(NothingLearnt, match=r"\(500 labelled as faults\): leave fewer rows out"):
        learnt(recorded(normal(500)), faults=(TimeSpan(),))
    with pytest.raises(UsageError, match="expected two channels that vary, got c2 alone"):
        learnt(recorded(flat))


@pytest.mark.slow
def test_the_newest_rows_are_held_in_bounded_memory():
    """They are scaled, the last that were scored, and later than all that their model learnt."""
    rows = normal(60_000)
    rows[59_990, 2] = np.nan
    fitted = learnt(recorded(rows, (1000, 3333)))
    newest = fitted.newest
    expected = fitted.folds.schema.scaled(rows)[-4096:]

    np.testing.assert_array_equal(expected, newest.rows)
    assert newest.model is not None
    few = learnt(recorded(rows[:6000])).newest
    assert 0 < len(few.rows) < 6000 / 4
    for fit_of, n in ((newest, 60_000), (few, 6000)):
        assert fit_of.model.summary.parts[0].weight <= n - len(fit_of.rows)

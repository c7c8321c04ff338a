"""prepare(): what becomes of each row that comes, and how much time rows stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Scaling, Schema, ShapeError
from submerge.condition import Condition
from submerge.features import Gaussian, Polynomial, RandomFourier, TensorSketch
from submerge.judge.decision import Decision
from submerge.judge.prepare import LARGEST_SCALED, REASONS, RowClock, RowTime, in_units, prepare
from submerge.stats.block_maxima import HOUR_S

GAP = float("nan")
SCHEMA = Schema(4, Scaling((10.0,) * 4, (2.0,) * 4))
WHOLE = [10.0, 12.0, 14.0, 16.0]


def zeros(rows: np.ndarray) -> np.ndarray:
    return np.nan_to_num(rows)


def why(*rows: list[float], **options: object) -> list[str]:
    """Return the reason of each row that is left out; "" for one that is not."""
    block = prepare(np.array(rows), SCHEMA, **{"fill": zeros, **options})
    assert len(block) == [REASONS[each] for each in block.why.tolist()].count("")
    assert block.left_out == len(rows) - len(block)
    return [REASONS[each] for each in block.why.tolist()]


def test_a_whole_row_is_scaled():
    """In a linear group features are the rows; nothing was filled."""
    block = prepare(np.array([WHOLE]), SCHEMA, fill=zeros)

    assert [[0.0, 1.0, 2.0, 3.0]] == block.rows.tolist()
    assert block.features is block.rows
    assert block.gaps is None
    assert [WHOLE] == in_units(block.rows, SCHEMA).tolist()


@pytest.mark.parametrize("scaling", [None, SCHEMA.scaling])
def test_a_block_has_rows_of_its_own(scaling):
    """A reader may put its next rows where these were."""
    rows = np.array([WHOLE])
    block = prepare(rows, replace(SCHEMA, scaling=scaling), fill=None)
    before = block.rows.copy()
    rows[:] = 0.0

    assert before.tolist() == block.rows.tolist()


def test_what_was_filled_is_said():
    """Of rows that are left in: where, and among all that came, which they are."""
    rows = np.array([WHOLE, [GAP] * 4, [GAP, *WHOLE[1:]]])
    block = prepare(rows, SCHEMA, fill=zeros)

    assert [0, 2] == block.which.tolist()
    assert [[False] * 4, [True, False, False, False]] == block.gaps.tolist()
    assert 0.0 == block.rows[1, 0]
    assert np.isnan(rows[2, 0])


def test_what_is_held_is_said_of_rows_that_are_left_in():
    """Of the channels, in a row that may have lags behind them."""
    rows, held = np.array([WHOLE, [GAP] * 4, WHOLE]), np.array([[True, False]] * 2 + [[False] * 2])
    block = prepare(rows, SCHEMA, fill=zeros, held=held)

    assert [[True, False], [False, False]] == block.held.tolist()
    assert prepare(rows, SCHEMA, fill=zeros).held is None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([GAP, GAP, 14.0, 16.0], ""),
        ([GAP, GAP, GAP, 16.0], "gaps"),
        ([np.inf, 12.0, 14.0, 16.0], "too large"),
        ([np.inf, GAP, GAP, GAP], "too large"),
        ([3 * LARGEST_SCALED, GAP, 14.0, 16.0], "too large"),
        ([-3 * LARGEST_SCALED, 12.0, 14.0, 16.0], "too large"),
    ],
)
def test_a_row_that_cannot_be_scored_says_why(row, reason):
    """Half a row is enough; infinity is no gap."""
    assert [reason, ""] == why(row, WHOLE)


def test_the_operating_state_goes_before_other_reasons():
    """A gap is in no state that is known."""
    running = Condition.parse("x3 > 15", SCHEMA.names)
    rows = (WHOLE, [*WHOLE[:3], 5.0], [*WHOLE[:3], GAP], [np.inf, GAP, GAP, 5.0])

    assert ["", *3 * ["other state"]] == why(*rows, when=running)


def test_without_a_way_to_fill_a_gap_is_left_out():
    """Whether gaps are not to be filled, or nothing is known to fill them with."""
    row = [GAP, *WHOLE[1:]]

    assert ["", "gaps"] == why(WHOLE, row, fill=None)
    assert ["", "gaps"] == why(WHOLE, row, fill=lambda rows: rows)


def test_nothing_is_filled_where_nothing_is_missing():
    """What fills gaps may cost a merge: it is asked only if there is one."""

    asked: list[np.ndarray] = []

    assert ["", "gaps"] == why(WHOLE, [GAP] * 4, fill=asked.append)
    assert [] == asked


def test_features_are_made_of_rows_that_are_left():
    """Unless the schema does not say yet how."""
    schema = replace(SCHEMA, features=RandomFourier(Gaussian(0.1), 8))
    rows = np.array([WHOLE, [GAP] * 4])
    block = prepare(rows, schema, fill=zeros)

    np.testing.assert_array_equal(schema.lift(rows[:1]), block.features)
    assert (1, 4) == prepare(rows, schema, fill=zeros, lifts=False).features.shape


def test_another_number_of_channels_is_refused():
    """Before anything is done with the rows."""
    with pytest.raises(ShapeError):
        prepare(np.zeros((2, 3)), SCHEMA, fill=None)


# -- time --------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9), st.integers(1, 100))
def test_by_the_clock_rows_stand_for_the_time_since_the_last(waits, n):
    """The first for none; a silence counts for an hour at most as seen, and in full as elapsed."""
    clock, steady = RowClock(), 5.0
    clock, time = clock.read(steady)
    assert (0.0, 0.0) == (time.elapsed_s(n), time.seen_s(n))
    for wait in waits:
        clock, time = clock.read(steady + wait)
        passed, steady = (steady + wait) - steady, steady + wait
        assert (passed, min(passed, HOUR_S)) == (time.elapsed_s(n), time.seen_s(n))


def test_with_a_period_each_row_stands_for_as_long():
    """Whatever the clock says, as where history is replayed."""
    clock, time = RowClock(600.0).read(1.0)
    assert (6000.0, 6000.0) == (time.elapsed_s(10), time.seen_s(10))
    assert RowTime(600.0, 3.0) == clock.read(4.0)[1]


# -- what is learnt ----------------------------------------------------------------------


def test_rows_are_drawn_in_towards_the_mean():
    """By their factors; without any, they are learnt as they are."""
    rows, mean = np.array([[2.0, 6.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    decision = Decision.learn(2)

    assert rows is decision.clipped(rows, mean)
    half = replace(decision, factors=np.array([0.5, 1.0])).clipped(rows, mean)
    assert [[1.5, 4.0], [1.0, 1.0]] == half.tolist()
    assert decision.withholding(True).withheld.all()
    assert not decision.withheld.any()


BEYOND = [1e13, 1e38, 1e308, -1e308, np.inf, -np.inf]


@pytest.mark.parametrize("value", BEYOND)
@pytest.mark.parametrize("scale", [2.0, 1e-3])
def test_a_number_that_is_no_reading_is_judged_as_the_largest(value, scale):
    """A failing sensor's row is judged, its gaps are filled, and it is marked: it is not learnt."""
    rows = np.array([WHOLE, [WHOLE[0], value, GAP, WHOLE[3]]])
    schema = replace(SCHEMA, scaling=Scaling((10.0,) * 4, (scale,) * 4))

    block = prepare(rows, schema, fill=zeros, judges=True)

    assert [0, 0] == block.why.tolist()
    assert [False, True] == block.beyond.tolist()
    assert np.nextafter(LARGEST_SCALED, 0.0) * np.sign(value) == block.rows[1, 1]
    assert [0.0, 0.0, 6.0 / scale] == block.rows[1, [0, 2, 3]].tolist()
    assert block.came[1, 1] == (value - 10.0) / scale  # what people are told
    assert ["", "too large"] == why(*rows.tolist())


@pytest.mark.parametrize("value", BEYOND)
@pytest.mark.parametrize(
    "features", [TensorSketch(Polynomial(gamma=1.0, degree=3), 16), RandomFourier(Gaussian(0.1), 8)]
)
def test_in_a_kernel_group_it_is_judged_too(features, value):
    """Features that overflow count as the largest, with a finite score."""
    schema = replace(SCHEMA, features=features)

    block = prepare(np.array([[value, *WHOLE[1:]]]), schema, fill=zeros, judges=True)

    assert [True] == block.beyond.tolist()
    assert (np.abs(block.features) < LARGEST_SCALED).all()


def test_large_readings_of_small_features_overflow_alone():
    """A reading that is one, and whose products are none, is judged and not learnt."""
    schema = replace(SCHEMA, features=TensorSketch(Polynomial(gamma=1.0, degree=3), 16))
    rows = np.array([WHOLE, [1e6, *WHOLE[1:]]])

    assert 1 == len(prepare(rows, schema, fill=zeros))
    assert [False, True] == prepare(rows, schema, fill=zeros, judges=True).beyond.tolist()

"""ColumnRanges counts the outermost values of blocks as if they were one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_files.reader.column_ranges import FOLDED, MARKS, ColumnRanges

VALUES = st.sampled_from([-9.0, -1.0, 0.0, 1.0, 2.0, 7.0, float("nan")])


@given(
    st.lists(
        st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=2 * FOLDED),
        min_size=1,
        max_size=5,
    )
)
def test_edges_are_those_of_all_rows(blocks):
    """The outermost values of each channel, and how often each came."""
    ranges = ColumnRanges(("a", "b"))
    for block in blocks:
        ranges.add(np.array(block))
    rows = np.array([row for block in blocks for row in block])
    for edge, sign in ((ranges._low, 1.0), (ranges._high, -1.0)):
        for i in range(2):
            values = sign * rows[:, i][~np.isnan(rows[:, i])]
            found = sorted(set(values.tolist()))[: MARKS + 1]
            lacking = MARKS + 1 - len(found)
            assert [*found, *[np.inf] * lacking] == edge.values[:, i].tolist()
            assert [(values == each).sum() for each in found] == edge.rows[: len(found), i].tolist()


def notes(values: np.ndarray) -> list[str]:
    ranges = ColumnRanges(["b"])
    ranges.add(values[:, None])
    return list(ranges.notes())


NOISE = np.random.default_rng(0).normal(20, 3, 4000)


@pytest.mark.parametrize(
    "marks",
    [
        (-9999.0,),
        (32767.0,),
        (-9999.0, -7999.0),
        (-9999.0, 32767.0),
        (-9999.0, -8888.0, -7777.0),
        (6553.5, 32767.0, 65535.0),
        (-9999.0, -9998.0, 9998.0, 9999.0),
    ],
)
@pytest.mark.parametrize("wild", [(), (1e6,), (-1e6, 1e5)])
def test_marks_do_not_hide_each_other(marks, wild):
    """Each is named with its rows, and so are the others; single wild values hide none."""
    values = np.concatenate([NOISE, np.repeat(marks, 40), wild])

    (note,) = notes(np.random.default_rng(1).permutation(values))

    assert all(f"{mark:g} in 40 rows" in note for mark in marks)
    assert f"from {NOISE.min():g} to {NOISE.max():g} in all others" in note


@pytest.mark.parametrize(
    "values",
    [
        NOISE,
        np.round(NOISE),
        np.append(NOISE, 1e6),
        np.repeat([0.0, 1.0], 50),
        np.repeat([1.0, 2.0, 3.0], 50),
        np.abs(NOISE - 20),
        np.tile(np.arange(200.0), 20),
    ],
)
def test_readings_have_no_note(values):
    """Nor have levels, switches, one wild value, and a tank that is filled again and again."""
    assert [] == notes(values)


STEPS = np.random.default_rng(2)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (1234 + np.cumsum(np.abs(STEPS.normal(0.05, 0.02, 6000))), "never falls"),
        (np.cumsum(STEPS.poisson(3, 6000)), "never falls"),
        (np.cumsum(STEPS.random(6000) < 0.01) + 0.0, "never falls"),
        (np.cumsum(STEPS.poisson(3, 6000)) % 8192, "falls in 2 alone"),
    ],
)
def test_a_meter_has_a_note(values, said):
    """Also one of whole steps, one that mostly stands, and one that begins again at 0."""
    values = values.astype(float)
    values[::7] = np.nan

    (note,) = notes(values)

    assert said in note
    assert "a meter or a counter is higher on each later day" in note

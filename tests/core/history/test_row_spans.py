"""A machine of many rows is judged in spans: each row counts once, and limits stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.history.second_pass import spans_over
from submerge.stats.stuck import RunLengths
from support.six_channels import learnt, normal, recorded


@given(st.integers(0, 10_000), st.integers(1, 5000), st.sampled_from([64, 1000, 1024]))
def test_each_row_counts_in_one_span(first: int, n: int, most: int):
    """And leads into one at most, which begins soon after."""
    spans = list(spans_over(first, first + n, most))

    for row in (first, first + n - 1):
        assert 1 == sum(span.begin <= row < span.end for span in spans)
        assert sum(span.lead <= row < span.begin for span in spans) <= 1
    assert all(span.begin - span.lead in (0, most // 16) for span in spans)


@pytest.mark.slow
def test_limits_hardly_depend_on_the_spans():
    """Every score is counted once; block maxima are as many but one for each span."""
    rows = normal(20_000)
    whole, cut = learnt(recorded(rows)), learnt(recorded(rows), judged_rows=4096)

    assert whole.sketches.spe.n == cut.sketches.spe.n == 20_000
    assert abs(whole.sketches.maxima.longest - cut.sketches.maxima.longest) <= 5
    np.testing.assert_allclose(whole.model.limits.distance, cut.model.limits.distance, rtol=0.02)
    known, again = whole.states["m"], cut.states["m"]
    np.testing.assert_allclose(known.residual_scale.squares, again.residual_scale.squares, rtol=0.1)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=120), st.integers(1, 119))
def test_the_range_and_the_longest_run_are_those_of_both(values: list[int], cut: int):
    """But for a run that the cut goes through, it is as if all had been read at once."""
    rows = np.repeat(np.array(values, dtype=float), 9)[:, None]
    at = min(cut, len(values) - 1)
    while at < len(values) and values[at] == values[at - 1]:
        at += 1
    if at == len(values):
        return
    none = RunLengths.none(1)
    whole, _ = none.after(rows)
    earlier, _ = none.after(rows[: 9 * at])
    # Its last run is finished by the next reading.
    earlier, _ = earlier.after(rows[9 * at : 9 * at + 1])
    later, _ = none.after(rows[9 * at :])
    both = later.with_range_of(earlier)

    assert whole.lowest == both.lowest
    assert whole.highest == both.highest
    assert whole.longest >= both.longest - 9
    assert max(whole.longest, whole.at_lowest, whole.at_highest) == max(
        both.longest, both.at_lowest, both.at_highest
    )

"""ColumnRanges counts the outermost values of blocks as if they were one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submerge_files.reader.selection import FOLDED, ColumnRanges

VALUES = st.sampled_from([-9.0, -1.0, 0.0, 1.0, 2.0, 7.0, float("nan")])


@given(
    st.lists(
        st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=2 * FOLDED),
        min_size=1,
        max_size=5,
    )
)
def test_edges_are_those_of_all_rows(blocks):
    """The outermost value of each channel, how often it came, and the next one."""
    ranges = ColumnRanges(("a", "b"))
    for block in blocks:
        ranges.add(np.array(block))
    rows = np.array([row for block in blocks for row in block])
    for edge, sign in ((ranges._low, 1.0), (ranges._high, -1.0)):
        for i in range(2):
            values = sign * rows[:, i][~np.isnan(rows[:, i])]
            found = sorted(set(values.tolist()))
            outermost, second = ([*found, np.inf, np.inf])[:2]
            assert (outermost, second) == (edge.value[i], edge.next[i])
            assert (values == outermost).sum() == edge.rows[i]

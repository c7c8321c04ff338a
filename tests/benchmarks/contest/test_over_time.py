"""The error over time, as the papers draw it."""

from __future__ import annotations

import numpy as np
import pytest

from contest.over_time import ErrorOverTime
from submerge import SAPCA
from support.strategies import rows_of


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("factor", [1.0, 0.99])
def test_the_error_from_the_running_sum_is_that_of_all_rows(center, factor):
    """||Y - Y U U'||^2 over the weights, block after block, whatever is far from zero."""
    X = rows_of("decaying", 130, 9, seed=1) + 1e4
    engine = SAPCA(3, center=center, forgetting_factor=factor, exact="never", block_size=20)
    record = ErrorOverTime(9, forgetting_factor=factor, center=center)
    for start in range(0, len(X), 20):
        record.add(X[start : start + 20])
        shown = engine.partial_fit(X[start : start + 20]).shown
        record.note(shown)

        off = X[: start + 20] - shown.mean
        missed = np.sum((off - off @ shown.basis @ shown.basis.T) ** 2, axis=1)
        weights = factor ** np.arange(len(off) - 1, -1, -1.0)
        # Without centering, energies are 1e10 times what is missed, and so is their rounding.
        assert np.isclose(
            np.average(missed, weights=weights), record.noted.errors[-1], rtol=1e-8, atol=1e-6
        )

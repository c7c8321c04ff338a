"""SubspaceDetector: scikit-learn's rules, and anomalous rows as a client finds them."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from submerge.sklearn import SubspaceDetector
from support import estimators

BATTERY = [
    SubspaceDetector(),
    SubspaceDetector(rank=1, rank_max=3, contamination=0.05),
]


@pytest.mark.parametrize(("estimator", "check"), estimators.battery(BATTERY), ids=estimators.what)
def test_it_keeps_every_rule_of_scikit_learn(estimator, check):
    """No check is expected to fail; check_array_api_input skips by itself, as of StreamingPCA."""
    check(estimator)

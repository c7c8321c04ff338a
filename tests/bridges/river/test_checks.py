"""river's own checks, with a stream of our own where it would download one."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("river")
pytest.importorskip("sklearn")  # river's checks import it

from river import checks, datasets

from submerge_bridges.river import StreamDetector, StreamPCA

CHECKED = [
    StreamDetector(),
    StreamDetector(window=200),
    StreamPCA(),
    StreamPCA(n_components=3, forgetting_factor=0.99, grace_period=10),
]

SLOW = {
    "check_bounded_memory_growth",
    "check_disappearing_features",
    "check_emerging_features",
    "check_radically_disappearing_features",
    "check_shuffle_features_no_impact",
}
"""Checks that take a detector over a quarter of a second."""


class CardsHere:
    """A stream in the form of river's `datasets.CreditCard`: 28 components, time and amount.

    Frauds break the correlations. It can be read again and again.
    """

    WIDTH, SHARE = 28, 0.01

    def __init__(self, n=0):
        self.n = n

    def take(self, n):
        """Return the first n rows."""
        return CardsHere(n)

    def __iter__(self):
        rng = np.random.default_rng(0)
        mixing = rng.normal(size=(4, self.WIDTH))
        for i in range(self.n):
            fraud = int(rng.random() < self.SHARE)
            values = rng.normal(size=4) @ mixing
            values += (3.0 if fraud else 0.5) * rng.normal(size=self.WIDTH)
            row = {f"V{j + 1}": float(value) for j, value in enumerate(values)}
            yield {"Time": float(i), **row, "Amount": float(rng.exponential(80))}, fraud


def cases():
    """Return each estimator with each of river's checks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "CreditCard", CardsHere)
        return [
            pytest.param(
                model,
                check,
                id=f"{model}-{check.__name__}-{i}",
                marks=[pytest.mark.slow] if check.__name__ in SLOW else [],
            )
            for i, model in enumerate(CHECKED)
            for check in checks.yield_checks(model)
        ]


@pytest.mark.parametrize(("model", "check"), cases())
def test_it_keeps_every_rule_of_river(model, check):
    """No check is left out, and none is expected to fail."""
    assert set() == model._unit_test_skips()
    check(model.clone())

"""How much louder a child is than the others, along the directions that it has."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.robust.outliers import loudness, of_points, screen
from support import liars, oracle
from support.liars import RANK


def slow(parts, center, floor: float) -> list[float]:
    """Each direction of each part, against the mean scatter of all others."""
    scatters = [
        oracle.scatter_of(part) / part.weight + np.outer(part.mean - center, part.mean - center)
        for part in parts
    ]
    found = []
    for i, part in enumerate(parts):
        others = np.mean([each for j, each in enumerate(scatters) if j != i], axis=0)
        off = part.mean - center
        rows = [*(part.basis.T * (part.sigma / part.weight**0.5)[:, None]), off]
        ratios = []
        for row in rows:
            size = float(row @ row)
            u = row / size**0.5
            ratios.append(size / (float(u @ others @ u) + floor))
        found.append(max(ratios))
    return found


def test_the_fast_ratios_are_the_slow_ones():
    """With a span that holds everything, and every part at its own weight."""
    parts = list(liars.fleet(0, nodes=7, shifted=1.0).parts.values())
    center = of_points(np.stack([part.mean for part in parts]))
    fast = loudness(parts, np.ones(7), np.eye(liars.DIM), center, 0.01)

    assert slow(parts, center, 0.01) == pytest.approx(list(fast), rel=1e-4)


def test_energy_is_allowed_where_others_have_it():
    """All of 3 times the usual energy in the weakest direction, turned by less than the limit."""
    fleet = liars.fleet(2, nodes=40)
    parts, who = fleet.lying(liars.CLEVER["weakest turned by 14, all energy in it"], 1)
    screened = screen(parts, rank=RANK)

    assert set() == screened.outliers.keys()
    assert who == screened.factors.keys()
    assert all(screened.factors[name] < 0.2 for name in who)


@pytest.mark.parametrize("seed", range(3))
def test_honest_nodes_are_no_louder_than_others(seed):
    """Whatever their ages: no factor but those of weight."""
    for how in ({"turned": 0.25}, {"shifted": 3 * liars.SIZE}, {}):
        fleet = liars.fleet(seed, lambda rng: int(rng.integers(100, 300)), nodes=20, **how)
        assert {} == screen(fleet.parts, rank=RANK).factors

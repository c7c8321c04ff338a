"""disLR: directions in the points' span, merged by ranks, by sketches and exactly."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.features import Gaussian, Landmarks, Polynomial
from submerge.jobs.kinds.kpca import dis_lr
from submerge.jobs.kinds.kpca.dis_lr import Coordinates
from submerge.kernel.nystrom import NystromPCA
from support import oracle_kpca

KERNEL = Gaussian(0.2)


def rows(n: int = 120, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 4)) * [4, 2, 1, 0.5] + 1


def parts_of(X: np.ndarray, map_: Landmarks) -> list[Coordinates]:
    """Return uneven parts, one of them without rows."""
    return [Coordinates.of(part, map_) for part in np.split(X, [0, 3, 40])]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("way", ["ranks", "exact", "sketch"])
def test_with_enough_room_each_way_finds_the_best_directions(way, center):
    """Those of all rows: with all ranks kept, no fewer sums than rows, or the exact scatter."""
    X, k = rows(), 5
    map_ = Landmarks(KERNEL, X[::8])
    m = len(map_.points)
    parts = parts_of(X, map_)
    if way == "ranks":
        ups = [dis_lr.ranks_up(part, m, center=center) for part in parts]
        up = dis_lr.merged_ranks([dis_lr.merged_ranks(ups[:2], m), *ups[2:]], m)
        found = dis_lr.found_in_ranks(up, k)
    elif way == "exact":
        ups = [dis_lr.exact_up(part) for part in parts]
        up = dis_lr.merged_exact([dis_lr.merged_exact(ups[:2]), *ups[2:]])
        found = dis_lr.found_in_exact(up, k, center=center)
    else:
        ups = [dis_lr.sketch_up(part, 1000, center=center, seed=i) for i, part in enumerate(parts)]
        halves = [dis_lr.merged_sketches(some, m, center=center) for some in (ups[:2], ups[2:])]
        up = dis_lr.merged_sketches(halves, m, center=center)
        found = dis_lr.found_in_sketch(up, k, m, center=center)

    best, _ = oracle_kpca.captured(X, map_.points, KERNEL, k, center=center)
    model = NystromPCA.of(X, map_, rank=k, center=center)
    np.testing.assert_allclose(best, found.eigenvalues.sum(), rtol=1e-8)
    np.testing.assert_allclose(model.directions.eigenvalues, found.eigenvalues, rtol=1e-8)
    np.testing.assert_allclose(model.energy, found.inside + found.outside, rtol=1e-10)
    np.testing.assert_allclose(np.abs(model.directions.axes.T @ found.axes), np.eye(k), atol=1e-6)


def test_the_exact_covariance_is_that_of_all_rows():
    """Landmarks' covariances are additive: equal to the pooled one to 1e-12."""
    X = rows()
    map_ = Landmarks(KERNEL, X[::8])
    merged = dis_lr.covariance_of(
        dis_lr.merged_exact([dis_lr.exact_up(p) for p in parts_of(X, map_)])
    )
    pooled = NystromPCA.of(X, map_, rank=1).covariance

    np.testing.assert_allclose(
        pooled.scatter, merged.scatter, rtol=0, atol=1e-12 * pooled.scatter.max()
    )
    np.testing.assert_allclose(pooled.mean, merged.mean, rtol=0, atol=1e-12)
    assert 120 == merged.count


@pytest.mark.parametrize("way", ["ranks", "sketch"])
def test_few_numbers_cost_little(way):
    """2k ranks, or 50 sums for 100 rows: at most 5 % more is missed than in the best directions."""
    X, k = rows(2000), 4
    map_ = Landmarks(Polynomial(2, 0.1, 1.0), X[::40])
    m = len(map_.points)
    parts = [Coordinates.of(part, map_) for part in np.array_split(X, 20)]
    if way == "ranks":
        ups = [dis_lr.ranks_up(part, 2 * k, center=False) for part in parts]
        found = dis_lr.found_in_ranks(dis_lr.merged_ranks(ups, 2 * k), k)
    else:
        ups = [dis_lr.sketch_up(part, 50, center=False, seed=i) for i, part in enumerate(parts)]
        found = dis_lr.found_in_sketch(
            dis_lr.merged_sketches(ups, m, center=False), k, m, center=False
        )

    best, total = oracle_kpca.captured(X, map_.points, map_.kernel, k, center=False)
    held = float(np.square(map_.lift(X) @ found.axes).sum())
    assert held <= best * (1 + 1e-12)
    assert total - held <= 1.05 * (total - best)


def test_a_factor_says_how_much_it_may_have_lost():
    """Eigenvalues are never overstated, and weight and energy are exact at any rank."""
    X = rows(400)
    map_ = Landmarks(KERNEL, X[::10])
    ups = [dis_lr.ranks_up(part, 4, center=True) for part in parts_of(X, map_)]
    found, up = dis_lr.found_in_ranks(dis_lr.merged_ranks(ups, 4), 3), dis_lr.merged_ranks(ups, 4)
    exact = NystromPCA.of(X, map_, rank=3)

    assert 400 == up["sums"][0]
    np.testing.assert_allclose(exact.energy, found.inside + found.outside, rtol=1e-10)
    assert (found.eigenvalues <= exact.directions.eigenvalues * (1 + 1e-12)).all()
    assert (exact.directions.eigenvalues <= found.eigenvalues + up["sums"][3]).all()

"""WholeScatter: all of a narrow group's scatter, and the float32 triangle that it travels as."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge import SAPCA, Schema, Subspace, UsageError, dumps
from submerge.pca.merging import merge_whole
from submerge.pca.whole_scatter import WholeScatter, is_narrow, triangle
from support import checks, oracle
from support.strategies import cuts, rows_of, streams


def whole_of(rows: np.ndarray, schema: str = "s") -> WholeScatter:
    """All of the rows' scatter."""
    seen = oracle.twin(rows)
    energies = np.diag(seen.scatter).copy()
    return WholeScatter(schema, seen.scatter, seen.mean, seen.weight, seen.energy, 0.0, energies)


def received(whole: WholeScatter) -> WholeScatter:
    """The scatter after it has travelled."""
    packed, bound = triangle(whole)
    return WholeScatter(
        whole.schema,
        packed,
        whole.mean,
        whole.weight,
        whole.energy,
        whole.spectral_bound + bound,
        whole.channel_energies,
    )


@given(st.integers(1, 40), st.integers(1, 60), st.sampled_from([0.0, 1e-9, 1e-4, 1.0]))
def test_a_travelled_scatter_is_semidefinite_and_its_bound_covers_the_rounding(dim, n, tail):
    """Any scatter: singular ones, and those whose last deviations are 1e-4 of the first."""
    rng = np.random.default_rng(100 * dim + n)
    rows = rng.standard_normal((n, 1)) @ rng.standard_normal((1, dim))
    rows += tail * rng.standard_normal((n, dim))
    whole = whole_of(rows)

    got = received(whole)
    lam = np.linalg.eigvalsh(got.scatter)
    size = max(whole.energy, 1e-300)
    assert lam[0] >= -1e-15 * dim * size
    assert np.linalg.norm(got.scatter - whole.scatter, 2) <= got.spectral_bound
    assert got.spectral_bound <= 3e-7 * size
    assert np.trace(got.scatter) <= whole.energy * (1 + 1e-6)


def test_a_float32_scatter_itself_would_have_negative_eigenvalues():
    """Why a factor travels: 54 channels with tail deviations of 1e-4."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((2000, 6)) @ rng.standard_normal((6, 54))
    whole = whole_of(rows + 1e-4 * rng.standard_normal((2000, 54)))

    assert np.linalg.eigvalsh(whole.scatter.astype(np.float32).astype(float))[0] < 0
    assert np.linalg.eigvalsh(received(whole).scatter)[0] > 0


def test_a_scatter_that_came_as_a_triangle_is_sent_as_it_came():
    """Rounding is once: an aggregator's sealed rows keep their bytes, faded ones too."""
    whole = whole_of(np.random.default_rng(2).standard_normal((50, 7)) * 1e3 + 1e6)
    once = received(whole)
    again = received(once)

    assert triangle(once)[0].tobytes() == triangle(again)[0].tobytes()
    assert triangle(once.faded(0.3))[0].tobytes() == triangle(once)[0].tobytes()
    assert once.spectral_bound == again.spectral_bound
    assert np.allclose(once.faded(0.3).scatter, 0.3 * once.scatter)


@pytest.mark.parametrize("size", [1e-140, 1.0, 1e130])
def test_neither_tiny_nor_huge_readings_overflow_the_triangle(size):
    """Its entries are of the scatter over its energy, at most 1."""
    whole = whole_of(size * np.random.default_rng(3).standard_normal((50, 7)))

    packed, bound = triangle(whole)
    assert np.abs(packed).max() <= 1.0
    assert bound <= 1e-6 * whole.energy
    assert np.allclose(received(whole).scatter / whole.energy, whole.scatter / whole.energy)


def test_of_no_energy_the_triangle_is_zeros():
    """Constant sensors."""
    whole = whole_of(np.ones((5, 3)))

    packed, bound = triangle(whole)
    assert not packed.any()
    assert bound == 0.0
    assert received(whole).parts[0].rank == 0


# -- three levels ---------------------------------------------------------------------


def near_copies(rng: np.random.Generator, n: int, dim: int, tail: float) -> np.ndarray:
    """Rows whose channels are copies of a few, but for deviations of `tail`."""
    rows = rng.standard_normal((n, 3)) @ rng.standard_normal((3, dim))
    return rows + tail * rng.standard_normal((n, dim))


@given(
    st.integers(2, 20),
    st.integers(0, 2**16),
    st.sampled_from([0.0, 1e-9, 1e-4, 1.0]),
    st.sampled_from([0.0, 1.0, 1e6]),
    st.sampled_from([1.0, 0.99, 0.8]),
)
@example(dim=20, seed=1, tail=1e-4, far=1e6, factor=0.99)
def test_nothing_is_overstated_through_three_levels(dim, seed, tail, far, factor):
    """Client, aggregator, root: each forgets, and each rounds to a float32 triangle.

    Near-copies of channels, deviations of 1e-4 of the first, and means of 1e6 that differ between
    nodes: the scatter stays semi-definite, and all laws hold with the tolerance of float64.
    """
    rng = np.random.default_rng(seed)
    schema = Schema.anonymous(dim)
    sites, rows, weights = [], [], []
    for _ in range(3):
        clients, faded = [], 0.5 ** float(rng.integers(0, 3))
        for _ in range(2):
            X = near_copies(rng, int(rng.integers(1, 40)), dim, tail) + far * rng.random(dim)
            engine = SAPCA(1, forgetting_factor=factor, schema=schema).partial_fit(X)
            clients.append(received(engine.whole_scatter).faded(faded))
            rows.append(X)
            weights.append(faded * oracle.decay(len(X), factor))
        sites.append(received(merge_whole(*clients)))
    root = received(merge_whole(*sites))

    truth = oracle.twin(np.vstack(rows), np.concatenate(weights))
    checks.whole_never_overstates(root, truth, blocks=240)


@given(streams(max_dim=20), st.data())
def test_directions_of_earlier_nodes_and_whole_scatters_merge_to_one(X, data):
    """Some children send k directions, without channel energies: bounds cover what they lack."""
    schema = Schema.anonymous(X.shape[1])
    parts = []
    for rows in (X[s] for s in data.draw(cuts(len(X)))):
        rank = data.draw(st.integers(1, X.shape[1]))
        part = Subspace.of(rows, schema, rank=rank)
        if data.draw(st.booleans()):
            parts.append(part if data.draw(st.booleans()) else replace(part, channel_energies=None))
        else:
            parts.append(received(whole_of(rows, schema.fingerprint)))

    whole = merge_whole(*parts)

    truth = oracle.twin(X)
    slack = checks.tolerance(truth, blocks=len(parts)) + 1e-12 * truth.energy
    assert np.isclose(whole.energy, truth.energy, rtol=1e-11, atol=slack)
    off = np.linalg.eigvalsh(truth.scatter - whole.scatter)
    assert off[-1] <= whole.spectral_bound + slack
    assert off[0] >= -1e-6 * truth.energy - slack  # rounding
    known = all(part.channel_energies is not None for part in parts)
    assert known == (whole.channel_energies is not None)


def test_a_whole_merge_is_its_slow_twin():
    """Part by part, outer products: sum_i (S_i + w_i (m_i - m)(m_i - m)')."""
    blocks = [rows_of("decaying", 20 + i, 9, seed=i) + i for i in range(5)]
    parts = [whole_of(block) for block in blocks]

    for center in ("fleet", "own"):
        found = merge_whole(*parts, center=center)
        expected = oracle.pooled_scatter(
            [p.scatter for p in parts],
            [p.weight for p in parts],
            [p.mean for p in parts],
            between=center == "fleet",
        )
        np.testing.assert_allclose(found.scatter, expected, rtol=1e-12, atol=1e-12 * found.energy)


def test_directions_of_a_whole_scatter_keep_the_laws_at_any_rank():
    """What is left out goes into the bounds."""
    X = rows_of("decaying", 200, 12, seed=0)
    whole = whole_of(X)

    for k in range(1, 13):
        checks.never_overstates(whole.directions(k), oracle.twin(X), blocks=1)
    assert whole.parts[0].rank == 12
    assert whole.parts is whole.parts


@pytest.mark.parametrize(("dim", "k", "narrow"), [(59, 15, True), (60, 15, False), (3, 1, True)])
def test_a_group_is_narrow_where_a_scatter_takes_at_most_twice_its_directions(dim, k, narrow):
    """dim (dim + 1) / 2 <= 2 k dim."""
    assert narrow == (dim * (dim + 1) / 2 <= 2 * k * dim)
    assert narrow == is_narrow(dim, k)


def test_an_engine_gives_all_of_its_exact_memory_and_changes_nothing():
    """With rows that wait; None where directions alone are held."""
    X = rows_of("decaying", 77, 9, seed=0)
    engine = SAPCA(2).partial_fit(X)
    before = dumps(engine)

    checks.whole_never_overstates(engine.whole_scatter, oracle.twin(X), blocks=3)
    assert before == dumps(engine)
    assert SAPCA(2, exact="never").partial_fit(X).whole_scatter is None
    assert SAPCA(2).whole_scatter is None
    assert SAPCA(2, schema=Schema.anonymous(9)).whole_scatter.weight == 0


def test_it_fades_as_a_subspace_does():
    """And refuses what a subspace refuses."""
    whole = whole_of(rows_of("decaying", 40, 5, seed=0))

    for each in (whole, received(whole)):
        faded = each.faded(0.25)
        np.testing.assert_allclose(faded.scatter, 0.25 * each.scatter, rtol=1e-14)
        assert (faded.weight, faded.energy) == (0.25 * each.weight, 0.25 * each.energy)
        np.testing.assert_array_equal(faded.channel_energies, 0.25 * each.channel_energies)
        for factor in (0.0, -1.0, np.inf, np.nan):
            with pytest.raises(UsageError):
                each.faded(factor)

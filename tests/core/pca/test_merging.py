"""merge(): exact where promised, never overstating elsewhere, in any order and tree."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, Schema, SchemaMismatch, ShapeError, Subspace, UsageError, merge
from support import checks, oracle
from support.strategies import KINDS, cuts, rows_of, streams


def parts_of(
    X: np.ndarray, slices: list[slice], rank: int, dtype=np.float64, factor: float = 1.0
) -> list[Subspace]:
    """Each run learnt by an engine of its own."""
    return [
        SAPCA(rank, exact="never", dtype=dtype, forgetting_factor=factor).partial_fit(X[s]).subspace
        for s in slices
    ]


def in_a_tree(parts: list[Subspace], rank: int, shape: int) -> Subspace:
    """Merge in one of many tree shapes, chosen by a number."""
    while len(parts) > 1:
        take = 2 + shape % 3
        shape = shape * 7 // 3 + 1
        first = shape % max(1, len(parts) - 1)
        group, rest = parts[first : first + take], parts[:first] + parts[first + take :]
        parts = [*rest, merge(*group, rank=rank)]
    return parts[0]


@given(streams(), st.integers(0, 2**16), st.sampled_from([np.float64, np.float32]), st.data())
def test_every_law_holds_in_any_tree(X, shape, dtype, data):
    """Weight, mean, energy exact; sigma never overstates; both bounds hold."""
    rank = data.draw(st.integers(1, X.shape[1]))
    slices = data.draw(cuts(len(X)))

    root = in_a_tree(parts_of(X, slices, rank, dtype), rank, shape)

    checks.never_overstates(root, oracle.twin(X), blocks=len(X) + len(slices))


@given(streams(), st.integers(0, 2**16), st.sampled_from([0.999, 0.9, 0.5]), st.data())
def test_every_law_holds_for_parts_that_forget(X, shape, factor, data):
    """Weights then differ by orders of magnitude; the laws are those of weighted rows."""
    rank = data.draw(st.integers(1, X.shape[1]))
    slices = data.draw(cuts(len(X)))
    scales = [data.draw(st.sampled_from([1.0, 1e-6, 1e6])) for _ in slices]
    parts = parts_of(X, slices, rank, factor=factor)

    root = in_a_tree([p.faded(s) for p, s in zip(parts, scales, strict=True)], rank, shape)

    weights = np.concatenate(
        [c * oracle.decay(len(X[s]), factor) for s, c in zip(slices, scales, strict=True)]
    )
    checks.never_overstates(root, oracle.twin(X, weights), blocks=len(X) + len(slices))


@given(streams(), st.data())
def test_parts_may_have_different_ranks(X, data):
    """A part with one direction and a part with all still keep the laws."""
    slices = data.draw(cuts(len(X)))
    ranks = [data.draw(st.integers(1, X.shape[1])) for _ in slices]
    schema = Schema.anonymous(X.shape[1])
    parts = [Subspace.of(X[s], schema, rank=r) for s, r in zip(slices, ranks, strict=True)]

    root = merge(*parts, rank=data.draw(st.integers(1, X.shape[1])))

    checks.never_overstates(root, oracle.twin(X), blocks=len(slices))


@given(st.integers(0, 99), st.integers(2, 6), st.integers(0, 99))
def test_full_rank_merges_are_the_pooled_svd(seed, n_parts, shape):
    """With nothing truncated and a gap between directions: the pooled basis, to 1e-10."""
    rng = np.random.default_rng(seed)
    spectrum = np.array([10.0, 7, 5, 3, 2, 0.5, 0.4, 0.3])
    Q = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X = rng.standard_normal((60 * n_parts, 8)) * spectrum @ Q + 5
    slices = [slice(i * 60, i * 60 + 60) for i in range(n_parts)]

    root = in_a_tree(parts_of(X, slices, 8), 8, shape)

    truth = oracle.twin(X)
    np.testing.assert_allclose(root.sigma**2, truth.eigenvalues, rtol=1e-10)
    gap = np.radians(oracle.angle(truth.basis(5), root.basis[:, :5]))
    assert gap <= 1e-10
    checks.orthonormal(root.basis)


@pytest.mark.parametrize("algorithm", [oracle.algorithm_2, oracle.algorithm_4, oracle.algorithm_5])
@given(st.integers(0, 99), st.integers(1, 9), st.sampled_from([(1.0, 1.0), (0.9, 1.0), (0.5, 2.0)]))
def test_a_pair_merge_is_the_papers_algorithms_as_corrected(algorithm, seed, rank, factors):
    """Uncentered: sigma, and the basis where there is a gap; lambda is `faded` here."""
    dim = 20
    schema = Schema.anonymous(dim, center="none")
    left, right = (
        Subspace.of(rows_of("decaying", 40, dim, seed=seed + i), schema, rank=10) for i in (0, 500)
    )

    found = merge(left.faded(factors[0] ** 2), right.faded(factors[1] ** 2), rank=rank)

    U, sigma = algorithm(
        left.basis, left.sigma, right.basis, right.sigma, rank=rank + 1, factors=factors
    )
    np.testing.assert_allclose(found.sigma, sigma[:rank], rtol=1e-9)
    assert np.isclose(
        found.spectral_bound - sigma[rank] ** 2,
        sum(part.spectral_bound * f**2 for part, f in zip((left, right), factors, strict=True)),
        rtol=1e-6,
    )
    gap = sigma[rank - 1] ** 2 - sigma[rank] ** 2
    assert oracle.angle(U[:, :rank], found.basis) <= 1e-10 * sigma[0] ** 2 / gap


@pytest.mark.parametrize("least", [0.5, 1e-3, 1e-5, 1e-7])
def test_many_parts_of_few_columns_are_the_svd_of_their_stack(least):
    """On the side of the columns: sigma to twelve digits, a ten-thousandth of the first too."""
    rng = np.random.default_rng(0)
    spectrum = np.geomspace(1, least, 8)
    Q = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    blocks = [rng.standard_normal((30, 8)) * spectrum @ Q for _ in range(16)]
    schema = Schema.anonymous(8, center="none")
    parts = [Subspace.of(block, schema, rank=8) for block in blocks]

    found = merge(*parts, rank=6)

    _, sigma, rows = np.linalg.svd(np.vstack(blocks))
    np.testing.assert_allclose(found.sigma, sigma[:6], rtol=1e-12)
    assert oracle.angle(rows[:5].T, found.basis[:, :5]) <= 1e-6
    checks.orthonormal(found.basis)
    assert found.spectral_bound == pytest.approx(sigma[6] ** 2, rel=1e-6)


@given(streams(), st.integers(1, 12), st.randoms(use_true_random=False), st.data())
def test_order_does_not_matter(X, rank, random, data):
    """To rounding, whatever was truncated before."""
    schema = Schema.anonymous(X.shape[1])
    parts = [Subspace.of(X[s], schema, rank=rank) for s in data.draw(cuts(len(X)))]
    shuffled = parts.copy()
    random.shuffle(shuffled)

    one, other = merge(*parts, rank=rank), merge(*shuffled, rank=rank)

    top = one.sigma[0] ** 2 if one.rank else 1e-300
    rounded = checks.EPS * np.linalg.norm(one.mean) * one.weight**0.5
    slack = 1e-11 * top + 1e2 * (rounded * top**0.5 + rounded**2)
    assert np.isclose(one.energy, other.energy, rtol=1e-11, atol=slack)
    padded = np.zeros((2, max(one.rank, other.rank)))
    padded[0, : one.rank], padded[1, : other.rank] = one.sigma**2, other.sigma**2
    assert np.abs(padded[0] - padded[1]).max(initial=0) <= slack


@given(streams(), st.floats(0.1, 3), st.integers(1, 8), st.data())
def test_fading_commutes_with_merging(X, factor, rank, data):
    """Fade then merge, or merge then fade."""
    schema = Schema.anonymous(X.shape[1])
    parts = [Subspace.of(X[s], schema, rank=rank) for s in data.draw(cuts(len(X)))]

    before = merge(*(part.faded(factor) for part in parts), rank=rank)
    after = merge(*parts, rank=rank).faded(factor)

    size = max(after.energy, 1e-300)
    rounded = checks.EPS * np.linalg.norm(after.mean) * after.weight**0.5
    slack = 1e-11 * size + 1e2 * (rounded * size**0.5 + rounded**2)
    assert np.isclose(before.weight, after.weight, rtol=1e-12)
    assert abs(before.energy - after.energy) <= slack
    scatter = oracle.scatter_of(before) - oracle.scatter_of(after)
    # Directions may differ where sigma_k and sigma_k+1 are one; what they carry may not.
    assert abs(np.trace(scatter)) <= slack * len(scatter)
    assert abs(before.spectral_bound - after.spectral_bound) <= slack


@pytest.mark.parametrize("kind", KINDS)
def test_within_merging_leaves_the_means_out(kind):
    """center="own": the parts' own scatters add up, and only the mean is common."""
    parts = [rows_of(kind, 30, 9, seed=i) + 100 * i for i in range(4)]
    schema = Schema.anonymous(9, center="own")

    found = merge(*(Subspace.of(X, schema, rank=9) for X in parts), rank=9, center="own")

    within = oracle.pooled_within(parts)
    top = np.linalg.eigvalsh(within)[-1]
    assert np.abs(oracle.scatter_of(found) - within).max() <= 1e-10 * top + 1e-20
    assert np.isclose(found.energy, np.trace(within), rtol=1e-11, atol=1e-20)
    np.testing.assert_allclose(found.mean, np.vstack(parts).mean(axis=0), rtol=1e-12)


def test_merging_is_not_idempotent():
    """A part counted twice is counted twice: the protocol, not merge, must count once."""
    part = Subspace.of(rows_of("noise", 20, 5, seed=0), Schema.anonymous(5), rank=5)

    assert merge(part, part, rank=5).weight == 40


def test_the_empty_subspace_is_the_identity():
    """Nothing merged with something is that thing, to the byte; with nothing, nothing."""
    schema = Schema.anonymous(5)
    part, empty = (
        Subspace.of(rows_of("noise", 20, 5, seed=0), schema, rank=4),
        Subspace.empty(schema),
    )

    for found in (merge(empty, part, rank=4), merge(part, empty, rank=4), merge(part, rank=4)):
        assert found.basis.tobytes() == part.basis.tobytes()
        assert found.weight == part.weight
    assert merge(empty, empty, rank=4).weight == 0
    assert merge(empty, rank=4).rank == 0


def test_single_rows_merge():
    """n nodes of one reading each are n readings."""
    X = rows_of("noise", 12, 6, seed=4)
    schema = Schema.anonymous(6)

    found = functools.reduce(
        lambda a, b: merge(a, b, rank=6), [Subspace.of(row[None], schema, rank=6) for row in X]
    )

    checks.never_overstates(found, oracle.twin(X), blocks=12)
    np.testing.assert_allclose(found.sigma**2, oracle.twin(X).eigenvalues, rtol=1e-10)


def test_float32_parts_make_a_float32_whole():
    """And one float64 part among them makes it float64."""
    X = rows_of("decaying", 80, 30, seed=0)
    single = parts_of(X, [slice(0, 40), slice(40, 80)], 5, np.float32)
    double = parts_of(X, [slice(0, 40)], 5)

    assert merge(*single, rank=5).basis.dtype == np.float32
    assert merge(single[0], double[0], rank=5).basis.dtype == np.float64


def test_nothing_is_changed_by_merging():
    """Values are values: the parts are as they were."""
    X = rows_of("decaying", 80, 30, seed=0)
    parts = parts_of(X, [slice(0, 40), slice(40, 80)], 5)
    before = [(p.basis.tobytes(), p.sigma.tobytes(), p.mean.tobytes()) for p in parts]

    merge(*parts, rank=3)

    assert before == [(p.basis.tobytes(), p.sigma.tobytes(), p.mean.tobytes()) for p in parts]


def test_what_cannot_be_merged_is_refused():
    """Unequal fingerprints never merge; a rank of none means nothing."""
    one = Subspace.of(np.eye(4), Schema.anonymous(4), rank=2)
    other = Subspace.of(np.eye(4), Schema.anonymous(4, center="none"), rank=2)

    with pytest.raises(SchemaMismatch) as refused:
        merge(one, other, rank=2)
    assert (one.schema, other.schema) == (refused.value.expected, refused.value.got)
    with pytest.raises(SchemaMismatch):
        merge(one, Subspace.empty(Schema.anonymous(5)), rank=2)
    with pytest.raises(UsageError, match="whole number of at least 1, got 0"):
        merge(one, rank=0)
    with pytest.raises(UsageError, match="at least one subspace"):
        merge(rank=2)
    with pytest.raises(UsageError, match="got 'bogus'"):
        merge(one, rank=2, center="bogus")
    forged = Subspace(one.schema, np.eye(3), np.ones(3), np.zeros(3), 3.0, 3.0, 0.0)
    with pytest.raises(ShapeError):
        merge(one, forged, rank=2)

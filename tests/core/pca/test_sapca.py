"""The streaming engine: its laws, at any rank, block size, precision and kind of data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import (
    SAPCA,
    EnergyRank,
    SapcaRank,
    Schema,
    SchemaMismatch,
    ShapeError,
    UsageError,
    merge,
)
from submerge.errors import NothingLearnt, ValuesError
from support import checks, oracle
from support.strategies import cuts, rows_of, streams

engines = st.fixed_dictionaries(
    {
        "oversample": st.integers(0, 6),
        "block_size": st.none() | st.integers(1, 40),
        "exact": st.sampled_from(["auto", "never"]),
        "center": st.booleans(),
        "forgetting_factor": st.sampled_from([1.0, 0.999, 0.9, 0.3]),
    }
)


def rules(dim: int) -> st.SearchStrategy:
    """Ranks, fixed and moving, that data of that width can have."""
    starts = st.integers(1, dim)
    return st.one_of(
        starts,
        st.builds(SapcaRank, starts, beta=st.sampled_from([0.02, 0.1]), hold=st.integers(0, 2)),
        st.builds(EnergyRank, st.just(0.6), st.just(0.8), start=starts),
    )


def truth_of(X: np.ndarray, settings: dict) -> oracle.Twin:
    weights = oracle.decay(len(X), settings["forgetting_factor"])
    return oracle.twin(X, weights, center=settings["center"])


def blocks_of(X: np.ndarray, settings: dict) -> float:
    """At most so many blocks: an unfinished one is summarised too."""
    return len(X) / (settings["block_size"] or 30) + 1


@given(streams(), engines, st.data())
def test_every_law_holds_on_every_kind_of_data(X, settings, data):
    """Exact weight, mean, energy; sigma never overstates; both bounds hold."""
    rank = data.draw(rules(X.shape[1]))

    engine = SAPCA(rank, **settings).partial_fit(X)

    truth = truth_of(X, settings)
    blocks = blocks_of(X, settings)
    checks.never_overstates(engine.subspace, truth, blocks=blocks)
    checks.never_overstates(engine.shown, truth, blocks=blocks)


@given(streams(), engines, st.data())
def test_float32_storage_obeys_the_same_laws(X, settings, data):
    """Stored in float32, summed in float64: the laws hold to 1e-5."""
    rank = data.draw(st.integers(1, X.shape[1]))

    engine = SAPCA(rank, **settings, dtype=np.float32).partial_fit(X)

    assert engine.subspace.basis.dtype == np.float32
    checks.never_overstates(engine.subspace, truth_of(X, settings), blocks=blocks_of(X, settings))


@given(streams(), engines, st.data())
def test_how_rows_are_cut_into_calls_changes_nothing(X, settings, data):
    """One call or many, read in between or not: the same bytes."""
    rank = data.draw(rules(X.shape[1]))
    whole, cut = SAPCA(rank, **settings), SAPCA(rank, **settings)

    whole.partial_fit(X)
    for part in data.draw(cuts(len(X))):
        cut.partial_fit(X[part])
        _ = cut.subspace, cut.rank

    checks.same_bytes(whole.whole, cut.whole)


@given(streams(), engines, st.data())
def test_the_same_calls_give_the_same_bytes(X, settings, data):
    """Read in between or not, and copied rows or views: nothing is drawn, and nothing changed."""
    rank = data.draw(rules(X.shape[1]))
    read, unread, before = SAPCA(rank, **settings), SAPCA(rank, **settings), X.copy()

    for part in data.draw(cuts(len(X))):
        read.partial_fit(X[part])
        _ = read.subspace, read.whole
        unread.partial_fit(np.asfortranarray(X[part]))

    assert read.whole.basis.tobytes() == unread.whole.basis.tobytes()
    assert read.subspace.sigma.tobytes() == unread.subspace.sigma.tobytes()
    assert read.subspace.mean.tobytes() == unread.subspace.mean.tobytes()
    assert before.tobytes() == X.tobytes()


@given(streams(), st.integers(1, 40), st.integers(1, 40), st.data())
def test_with_nothing_truncated_the_block_size_does_not_matter(X, one, other, data):
    """Keeping every direction, forgetting included, any block size is exact."""
    factor = data.draw(st.sampled_from([1.0, 0.95]))
    dim = X.shape[1]

    first, second = (
        SAPCA(dim, block_size=b, exact="never", forgetting_factor=factor).partial_fit(X).subspace
        for b in (one, other)
    )

    size = first.sigma[0] ** 2 if first.rank else 1.0
    offset = checks.EPS * first.weight * float(first.mean @ first.mean)
    slack = 1e-11 * size + 1e2 * offset
    assert np.abs(oracle.scatter_of(first) - oracle.scatter_of(second)).max() <= slack


@pytest.mark.parametrize("block", [7, 50])
def test_spca_is_the_papers_by_its_definition(block):
    """Without spares and uncentered: Algorithm 3's truncated SVDs, block after block."""
    X = rows_of("decaying", 330, 30, seed=1)
    engine = SAPCA(6, oversample=0, block_size=block, exact="never", center=False)

    engine.partial_fit(X)

    basis, sigma = oracle.spca(X, rank=6, block=block)
    np.testing.assert_allclose(engine.subspace.sigma, sigma, rtol=1e-10)
    assert oracle.angle(basis, engine.subspace.basis) < 1e-6


@given(
    st.sampled_from(["noise", "decaying", "low rank", "constant channels"]),
    st.integers(0, 99),
    st.integers(5, 30),
    st.integers(1, 12),
    st.sampled_from([(0.01, 0.1), (0.05, 0.2), (0.1, 0.11)]),
)
def test_the_papers_rule_takes_the_papers_ranks(kind, seed, block, start, limits):
    """Block after block, the rank moves as the rule by its definition."""
    X = rows_of(kind, 10 * block, 14, seed=seed)
    alpha, beta = limits
    rule = SapcaRank(start, alpha=alpha, beta=beta)
    engine = SAPCA(rule, oversample=0, block_size=block, exact="never", center=False)

    ranks = []
    for first in range(0, len(X), block):
        engine.partial_fit(X[first : first + block])
        ranks.append(engine.target)

    found = oracle.sapca(X, start=start, block=block, alpha=alpha, beta=beta)
    assert [rank for rank, _ in found] == ranks


def test_the_rank_does_not_depend_on_who_looks():
    """The exact path decomposes once a block for a rule, whether anyone reads or not."""
    X = rows_of("decaying", 600, 20, seed=3)
    looked, left_alone = (SAPCA(EnergyRank(0.8, 0.9, start=2), block_size=25) for _ in range(2))

    for row in X:
        looked.partial_fit(row[None])
        _ = looked.rank
    left_alone.partial_fit(X)

    assert left_alone.rank == looked.rank
    shares = np.cumsum(looked.subspace.sigma**2) / looked.subspace.energy
    assert 0.8 <= shares[looked.rank - 1] <= 0.9 + 0.15


def test_a_rule_is_held_off_and_kept_within_its_limits():
    """Never above highest, and `hold` blocks between two changes."""
    X = rows_of("noise", 400, 30, seed=0)
    engine = SAPCA(SapcaRank(2, highest=6, hold=3), block_size=10, exact="never")

    targets = []
    for first in range(0, 400, 10):
        engine.partial_fit(X[first : first + 10])
        targets.append(engine.target)

    changes = np.flatnonzero(np.diff([2, *targets]))
    assert max(targets) == 6
    assert (np.diff(changes) >= 4).all()


def test_a_promoted_spare_keeps_its_own_sigma():
    """Growing shows a direction that was already measured, not a new empty one."""
    X = rows_of("decaying", 500, 40, seed=5)
    engine = SAPCA(SapcaRank(2, beta=0.2), block_size=20, exact="never").partial_fit(X)

    truth = oracle.twin(X)

    assert engine.rank > 2
    np.testing.assert_allclose(engine.shown.sigma**2, truth.eigenvalues[: engine.rank], rtol=0.02)


def test_transform_and_back_is_the_projection():
    """inverse_transform(transform(X)) is the nearest point of the subspace."""
    X = rows_of("decaying", 200, 10, seed=8) + 2
    engine = SAPCA(4).partial_fit(X)
    back = engine.inverse_transform(engine.transform(X))

    distance = ((X - back) ** 2).sum(axis=1)

    np.testing.assert_allclose(distance, engine.score_samples(X), atol=1e-12)


@pytest.mark.parametrize("block", [1, 7, 30])
def test_rows_are_projected_as_they_come(block):
    """On the directions of all rows so far, theirs too; each is learnt once."""
    X = rows_of("decaying", 210, 30, seed=1)
    engine = SAPCA(6, oversample=0, block_size=block, exact="never", center=False)

    for first in range(0, 210, block):
        Z = engine.partial_project(X[first : first + block])
        basis, _ = oracle.spca(X[: first + block], rank=6, block=block)
        np.testing.assert_allclose(
            Z @ Z.T,
            X[first : first + block] @ basis @ basis.T @ X[first : first + block].T,
            atol=1e-8,
        )
    assert engine.subspace.weight == 210


@pytest.mark.parametrize("where", [0, 73, 199])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_a_bad_row_is_named_and_nothing_of_its_call_is_learnt(where, value):
    """Promise 4: all rows of a call or none."""
    X = rows_of("noise", 200, 6, seed=0)
    engine = SAPCA(2, block_size=20, exact="never").partial_fit(X)
    before = engine.subspace
    bad = X.copy()
    bad[where, 4] = value

    with pytest.raises(ValuesError, match=f"row {where}, column 4") as refused:
        engine.partial_fit(bad)

    assert (where, 4) == (refused.value.row, refused.value.column)
    assert engine.n_samples_seen == 200
    assert engine.subspace is before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 0}, "rank must be a whole number of at least 1, got 0"),
        ({"oversample": -1}, "oversample must be a whole number of at least 0, got -1"),
        ({"forgetting_factor": 0.0}, r"in \(0, 1\], got 0"),
        ({"forgetting_factor": 1.5}, r"in \(0, 1\], got 1.5"),
        ({"block_size": 0}, "block_size must be a whole number of at least 1, got 0"),
        ({"rank": 2.5}, "rank must be a whole number of at least 1, got 2.5"),
        ({"oversample": 1.5}, "oversample must be a whole number .* got 1.5"),
        ({"block_size": 2.5}, "block_size must be a whole number .* got 2.5"),
        ({"exact": "always"}, '"auto" or "never"'),
        ({"dtype": np.int32}, "float64 or float32, got int32"),
    ],
)
def test_bad_settings_are_refused_at_once(arguments, message):
    """Whose fault, what was expected, what came."""
    with pytest.raises(UsageError, match=message):
        SAPCA(**arguments)


def test_bad_rows_are_refused():
    """Shapes and types that have no meaning as rows."""
    engine = SAPCA(2).partial_fit(np.ones((3, 4)))

    for rows, message in [
        (np.ones(4), r"\(n, 4\), got \(4,\)"),
        (np.ones((2, 5)), r"\(n, 4\), got \(2, 5\)"),
        (np.array([["a"] * 4]), "real numbers"),
        (np.ones((2, 4)) * 1j, "real numbers"),
    ]:
        with pytest.raises(UsageError, match=message):
            engine.partial_fit(rows)
    with pytest.raises(UsageError, match="at most the 4 columns, got 5"):
        SAPCA(5).partial_fit(np.ones((3, 4)))
    with pytest.raises(ShapeError):
        engine.inverse_transform(np.ones((2, 3)))
    with pytest.raises(NothingLearnt):
        _ = SAPCA(2).subspace


def test_float32_storage_refuses_what_it_cannot_hold():
    """A reading that fits float64 but not the storage is named, and nothing is learnt."""
    X = rows_of("noise", 60, 80, seed=0)
    engine = SAPCA(2, dtype=np.float32, exact="never").partial_fit(X)
    X[3, 1] = 1e38

    with pytest.raises(ValuesError, match="below 1e\\+37, got 1e\\+38 in row 3, column 1"):
        engine.partial_fit(X)

    assert engine.n_samples_seen == 60
    engine.partial_fit(X[10:])


def test_rows_may_come_in_float32():
    """Converted as they are taken in, without a warning."""
    X = rows_of("noise", 50, 6, seed=0).astype(np.float32)

    assert SAPCA(2).partial_fit(X).subspace.basis.dtype == np.float64


def test_a_subspace_once_read_never_changes():
    """It is a value: learning on leaves it alone, from the first row on."""
    engine = SAPCA(1, schema=Schema.anonymous(2))
    read = []
    for row in rows_of("noise", 60, 2, seed=0):
        found = engine.subspace
        read.append((found, found.mean.copy(), found.basis.copy()))
        engine.partial_fit(row[None])

    with pytest.raises(ValueError, match="read-only"):
        found.mean[:] = 77
    with pytest.raises(ValueError, match="read-only"):
        found.basis[:] = 77
    with pytest.raises(ValueError, match="read-only"):
        found.sigma[:] = 77
    for found, mean, basis in read:
        np.testing.assert_array_equal(mean, found.mean)
        np.testing.assert_array_equal(basis, found.basis)


@pytest.mark.parametrize("exact", ["auto", "never"])
def test_an_engine_resumes_from_what_others_learnt(exact):
    """merge, resume, go on: the laws hold as if one engine had seen all rows."""
    X = rows_of("decaying", 300, 20, seed=0) + 5
    schema = Schema.anonymous(20)
    parts = [SAPCA(4, exact=exact, schema=schema).partial_fit(X[s : s + 100]) for s in (0, 100)]
    past = merge(*(part.whole for part in parts), rank=20)

    engine = SAPCA(4, exact=exact, schema=schema).resume(past, n_samples_seen=200)
    engine.partial_fit(X[200:])

    checks.never_overstates(engine.subspace, oracle.twin(X), blocks=20)
    assert engine.n_samples_seen == 300
    with pytest.raises(UsageError, match="learnt nothing"):
        engine.resume(past, n_samples_seen=200)
    with pytest.raises(SchemaMismatch):
        SAPCA(4, schema=Schema.anonymous(21)).resume(past, n_samples_seen=200)


def test_no_rows_are_no_change():
    """An empty call is allowed, before the first row and after."""
    engine = SAPCA(2).partial_fit(np.empty((0, 4)))
    assert engine.n_samples_seen == 0

    engine.partial_fit(np.eye(4)).partial_fit(np.empty((0, 4)))

    assert engine.n_samples_seen == 4


def test_integers_and_lists_are_rows_too():
    """Whatever NumPy reads as numbers is learnt as float64."""
    from_lists = SAPCA(1).partial_fit([[1, 2], [3, 5], [4, 4]]).subspace
    from_floats = SAPCA(1).partial_fit(np.array([[1.0, 2], [3, 5], [4, 4]])).subspace

    assert from_floats.basis.tobytes() == from_lists.basis.tobytes()


def test_a_memory_shorter_than_a_block_survives_a_jump_of_the_mean():
    """Forgetting nearly everything within a block, while the mean jumps."""
    rng = np.random.default_rng(0)
    block, factor, jump = 200, 0.9, 1e5
    X = np.vstack([rng.standard_normal((block, 12)), jump + rng.standard_normal((block, 12))])
    engine = SAPCA(12, block_size=block, exact="never", forgetting_factor=factor)

    engine.partial_fit(X)

    # Less the rounding of readings of that size, squares lose nothing to the jump.
    truth = oracle.twin(X, oracle.decay(len(X), factor))
    np.testing.assert_allclose(engine.subspace.energy, truth.energy, rtol=1e-9)
    np.testing.assert_allclose(engine.subspace.sigma**2, truth.eigenvalues, rtol=1e-9)
    assert engine.fallbacks > 0

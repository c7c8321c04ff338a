"""restated(): what was learnt of some channels as a summary of others, against the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from submerge import Scaling, Schema, Subspace
from submerge.features import Gaussian, RandomFourier
from submerge.pca import restatement as module
from submerge.pca.merging import merge_whole
from submerge.pca.restatement import FIRST_ROWS, restated
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel
from support import oracle
from support.strategies import KINDS, rows_of

KERNEL = RandomFourier(Gaussian(0.5), features=8)

ROUNDING = 1e-10
"""Relative to the size of a channel, or of all of them."""


def schema_of(names: str, scaling: tuple[tuple[float, float], ...] | None = None) -> Schema:
    """A channel for each letter; `scaling` has offset and scale of each."""
    found = None if scaling is None else Scaling(*map(tuple, zip(*scaling, strict=True)))
    return Schema(tuple(map(Channel, names)), scaling=found)


def unit(names: str) -> Schema:
    """Scaled channels, whose units are 1."""
    return schema_of(names, ((0.0, 1.0),) * len(names))


def whole_of(rows: np.ndarray, schema: Schema) -> WholeScatter:
    """All of the scatter of readings in their units."""
    return WholeScatter.of_rows(schema.scaled(rows), schema.fingerprint)


def directions_of(rows: np.ndarray, schema: Schema, rank: int) -> Subspace:
    """The directions of readings in their units."""
    return Subspace.of(rows, schema, rank=rank)


def same(expected: WholeScatter, got: WholeScatter, rows: np.ndarray, schema: Schema) -> None:
    """Two scatters are of the same rows, to rounding of these and of the offsets of scalings."""
    scale = np.ones(schema.width) if schema.scaling is None else np.array(schema.scaling.scale)
    reach = (np.abs(rows).max(axis=0) + 200.0) / scale
    size = reach * expected.weight**0.5
    assert (expected.schema, expected.weight) == (got.schema, got.weight)
    np.testing.assert_allclose((got.mean - expected.mean) / reach, 0.0, atol=ROUNDING)
    off = (got.scatter - expected.scatter) / size / size[:, None]
    np.testing.assert_allclose(off, 0.0, atol=ROUNDING)
    spread = (got.channel_energies - expected.channel_energies) / size**2
    np.testing.assert_allclose(spread, 0.0, atol=ROUNDING)
    assert got.energy == pytest.approx(expected.energy, rel=1e-9, abs=ROUNDING * (size @ size))


scalings = st.lists(
    st.tuples(st.floats(-100, 100), st.floats(0.01, 100)), min_size=6, max_size=6
).map(tuple)
kinds = st.sampled_from(KINDS)
seeds = st.integers(0, 2**16)


# -- channels that stay ---------------------------------------------------------------


@given(kinds, seeds, st.permutations("abcdef"), st.integers(1, 6))
def test_channels_that_go_or_change_places_leave_the_others_exact(kind, seed, order, kept):
    """As if only the others had been read, in their new order."""
    rows = rows_of(kind, 30, 6, seed)
    old, new = schema_of("abcdef"), schema_of("".join(order[:kept]))
    places = ["abcdef".index(name) for name in order[:kept]]

    got = restated(whole_of(rows, old), old, new)
    same(whole_of(rows[:, places], new), got, rows[:, places], new)
    assert 0.0 == got.spectral_bound


@given(kinds, seeds, scalings, scalings, st.permutations("abcdef"), st.integers(1, 6))
def test_channels_in_other_units_are_as_their_rows_in_these_units(
    kind, seed, before, after, order, kept
):
    """Offset and scale of each, also of those that change places."""
    rows = rows_of(kind, 30, 6, seed)
    old = schema_of("abcdef", before)
    names = "".join(order[:kept])
    places = ["abcdef".index(name) for name in names]
    new = schema_of(names, tuple(after[place] for place in places))

    got = restated(whole_of(rows, old), old, new)
    same(whole_of(rows[:, places], new), got, rows[:, places], new)


@pytest.mark.parametrize(("first", "then"), [(None, 2.0), (2.0, None)])
def test_a_schema_without_scaling_has_the_units_of_its_channels(first, then):
    """A group may begin to scale, or no longer do so."""
    rows = rows_of("far from zero", 40, 3, 1)
    old, new = (schema_of("abc", each and ((7.0, each),) * 3) for each in (first, then))

    same(whole_of(rows, new), restated(whole_of(rows, old), old, new), rows, new)


@given(seeds, scalings, scalings, st.permutations("abcdef"))
def test_there_and_back_is_where_it_began(seed, before, after, order):
    """Other places and other units lose nothing."""
    rows = rows_of("decaying", 30, 6, seed)
    old, new = schema_of("abcdef", before), schema_of("".join(order), after)
    began = whole_of(rows, old)

    same(began, restated(restated(began, old, new), new, old), rows, old)


@given(kinds, seeds, st.booleans())
def test_a_channel_that_comes_and_goes_leaves_the_bits_of_the_others(kind, seed, has_rows):
    """Where units are the same, numbers that stay are copied."""
    old, new = unit("abcd"), unit("axbcdy")
    began = whole_of(rows_of(kind, 20, 4, seed), old)
    like = whole_of(rows_of(kind, 20, 6, seed + 1), new) if has_rows else None

    back = restated(restated(began, old, new, like), new, old)
    assert began.scatter.tobytes() == back.scatter.tobytes()
    assert began.mean.tobytes() == back.mean.tobytes()
    assert began.channel_energies.tobytes() == back.channel_energies.tobytes()
    assert (began.weight, began.schema) == (back.weight, back.schema)


def test_a_channel_in_another_unit_is_another_channel():
    """Its name is not enough: kelvin were never bar."""
    old = Schema((Channel("a", "K"), Channel("b")))
    new = Schema((Channel("a", "bar"), Channel("b")))
    got = restated(whole_of(rows_of("noise", 30, 2, 0), old), old, new)

    assert 0.0 == got.mean[0] == got.scatter[0, 1]


# -- channels that come ---------------------------------------------------------------


@given(st.integers(1, 3), st.integers(1, 4), st.integers(8, 60), st.integers(4, 60), seeds)
def test_what_is_added_is_the_maximum_likelihood(came, kept, complete, lacking, seed):
    """Expectation maximisation over all rows comes, in the end, to the same mean and scatter."""
    assume(complete > 2 * (came + kept))
    rng = np.random.default_rng(seed)
    dim = came + kept
    mixing = rng.standard_normal((dim, dim)) + 2 * np.eye(dim)
    rows = rng.standard_normal((complete + lacking, dim)) @ mixing + rng.standard_normal(dim)
    names = "abcdefg"[:dim]
    old, new = unit(names[:kept]), unit(names)
    like = whole_of(rows[:complete], new)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "FIRST_ROWS", 0.0)
        before = restated(whole_of(rows[complete:, :kept], old), old, new, like)
    got = merge_whole(like, before)

    rows[complete:, kept:] = np.nan
    expected = oracle.maximum_likelihood(rows)
    np.testing.assert_allclose(got.mean, expected.mean, atol=1e-6)
    size = np.sqrt(np.outer(np.diag(expected.scatter), np.diag(expected.scatter)))
    np.testing.assert_allclose(got.scatter / size, expected.scatter / size, atol=1e-6)
    assert got.weight == expected.weight


def test_many_rows_say_more_than_what_is_assumed():
    """A channel that follows another does so in the rows before, too; with few rows it does not."""
    rng = np.random.default_rng(3)
    old, new = unit("ab"), unit("abc")
    before = rng.standard_normal((500, 2))
    slopes = {}
    for n in (2, 20, 20_000):
        rows = rng.standard_normal((n, 3))
        rows[:, 2] = 2 * rows[:, 0] + 0.1 * rows[:, 2] + 5.0
        got = restated(whole_of(before, old), old, new, whole_of(rows, new))
        slopes[n] = np.linalg.solve(got.scatter[:2, :2], got.scatter[:2, 2])[0]

    assert slopes[20_000] == pytest.approx(2.0, abs=0.01)
    assert abs(slopes[2]) < 0.7 < slopes[20] < 1.9
    variance = got.scatter[2, 2] / got.weight
    assert variance == pytest.approx(4 * got.scatter[0, 0] / 500 + 0.01, rel=0.02)
    assert got.mean[2] == pytest.approx(5.0 + 2 * got.mean[0], abs=0.02)


def test_the_first_rows_may_be_of_one_quiet_minute():
    """What varies little in them is no measure: slopes of it would tell wonders of the past."""
    rng = np.random.default_rng(3)
    old, new = unit("ab"), unit("abc")
    before = whole_of(rng.standard_normal((500, 2)), old)
    rows = rng.standard_normal((3, 3)) * [1e-3, 1e-3, 1.0]
    got = restated(before, old, new, whole_of(rows, new))

    assert got.scatter[2, 2] / got.weight < 1.5
    assert np.linalg.eigvalsh(got.scatter)[-1] / got.weight < 1.5


def test_one_row_before_and_two_since_are_no_system_without_a_solution():
    """Nothing varied before, and two rows are one direction."""
    old, new = unit("ab"), unit("abcd")
    got = restated(
        whole_of(rows_of("noise", 1, 2, 0), old), old, new, whole_of(rows_of("noise", 2, 4, 1), new)
    )

    assert np.isfinite(got.scatter).all()


@pytest.mark.parametrize("make", [whole_of, lambda rows, schema: directions_of(rows, schema, 3)])
def test_nothing_is_known_of_a_channel_that_no_row_has(make):
    """Of a scaled one: the middle, a spread of one, and nothing in common with the others."""
    old, new = unit("abc"), unit("axbc")
    piece = make(rows_of("decaying", 40, 3, 5), old)
    got = restated(piece, old, new)

    assert (0.0, 40.0) == (got.mean[1], got.channel_energies[1])
    assert got.energy == pytest.approx(piece.energy + 40.0)
    scatter = oracle.scatter_of(got) if isinstance(got, Subspace) else got.scatter
    # Directions are turned by rounding: exactly 0 on some processors alone.
    assert np.abs(scatter[1, [0, 2, 3]]).max() <= 1e-12 * got.energy


def test_an_unscaled_channel_that_no_row_has_varies_as_the_others_do():
    """There is no unit but theirs."""
    old, new = schema_of("ab"), schema_of("abc")
    rows = 1000.0 * rows_of("noise", 50, 2, 7)
    piece = whole_of(rows, old)

    assert restated(piece, old, new).scatter[2, 2] == pytest.approx(piece.energy / 2)


def test_rows_that_weigh_nothing_say_nothing():
    """An empty summary of the new channels is as none."""
    old, new = unit("ab"), unit("abc")
    piece, empty = whole_of(rows_of("noise", 9, 2, 0), old), WholeScatter.of(Subspace.empty(new))

    assert (
        restated(piece, old, new).scatter.tobytes()
        == restated(piece, old, new, empty).scatter.tobytes()
    )


# -- what always holds ------------------------------------------------------------------


@st.composite
def changes(draw) -> tuple[Schema, Schema]:
    """Two schemas of some of six channels each, scaled or not, perhaps with none in common."""
    names = [draw(st.permutations("abcdef"))[: draw(st.integers(1, 6))] for _ in range(2)]
    if draw(st.booleans()):
        return schema_of("".join(names[0])), schema_of("".join(names[1]))
    found = [draw(scalings) for _ in range(2)]
    old, new = (
        schema_of("".join(each), numbers[: len(each)])
        for each, numbers in zip(names, found, strict=True)
    )
    return old, new


@given(changes(), kinds, kinds, st.integers(1, 40), st.integers(0, 40), seeds, st.integers(1, 6))
def test_a_restated_summary_is_a_sound_one(change, kind, like_kind, n, m, seed, rank):
    """Semidefinite, of the same weight, and its energies add up."""
    old, new = change
    rows = rows_of(kind, n, old.width, seed)
    others = rows_of(like_kind, max(m, 1), new.width, seed + 1)
    pieces = [whole_of(rows, old), directions_of(rows, old, rank)]
    likes = [None]
    if m:
        likes += [whole_of(others, new), directions_of(others, new, rank)]
    for piece in pieces:
        for like in likes:
            got = restated(piece, old, new, like)
            scatter = oracle.scatter_of(got) if isinstance(got, Subspace) else got.scatter
            size = np.sqrt(np.maximum(np.diag(scatter), 0.0)) + 1e-300
            lowest = np.linalg.eigvalsh(scatter / size / size[:, None])[0]
            assert lowest >= -1e-9
            assert np.isfinite(scatter).all()
            assert np.isfinite(got.mean).all()
            assert (new.fingerprint, new.dim) == (got.schema, got.dim)
            assert got.weight == piece.weight
            assert got.energy == pytest.approx(got.channel_energies.sum(), rel=1e-12)
            assert (got.channel_energies >= 0).all()
            assert got.spectral_bound >= 0


@given(changes(), kinds, kinds, st.integers(1, 40), st.integers(0, 40), seeds, st.integers(1, 5))
def test_no_bound_is_violated(change, kind, like_kind, n, m, seed, rank):
    """What was dropped before is within the bound after: of eigenvalues, and of each channel."""
    old, new = change
    rows = rows_of(kind, n, old.width, seed)
    like = whole_of(rows_of(like_kind, m, new.width, seed + 1), new) if m else None
    exact, dropped = whole_of(rows, old), directions_of(rows, old, rank)

    for piece, beside in [
        (WholeScatter.of(dropped), like),
        # Directions say less of new channels, so they are held against the same knowledge.
        (dropped, None),
        (dropped, like and like.directions(new.dim)),
    ]:
        got = restated(piece, old, new, beside)
        truth = restated(exact, old, new, beside)
        scatter = oracle.scatter_of(got) if isinstance(got, Subspace) else got.scatter
        off = np.abs(np.linalg.eigvalsh(truth.scatter) - np.linalg.eigvalsh(scatter)).max()
        assert off <= got.spectral_bound + 1e-9 * truth.energy
        assert got.channel_energies.max() <= truth.channel_energies.max() * (1 + 1e-9) + 1e-300


# -- directions ---------------------------------------------------------------------------


@given(changes(), kinds, seeds)
def test_directions_that_hold_everything_go_over_as_the_scatter_does(change, kind, seed):
    """Of the channels that both have; new ones are beside them in either form."""
    old, new = change
    rows = rows_of(kind, 20, old.width, seed)
    expected = restated(whole_of(rows, old), old, new)
    got = restated(directions_of(rows, old, 6), old, new)

    kept = [i for i, name in enumerate(new.names) if name in old.names]
    # Directions forget what is small beside the largest one of the schema before.
    ratio = np.ones(new.dim)
    if old.scaling is not None and new.scaling is not None:
        scales = dict(zip(old.names, old.scaling.scale, strict=True))
        both = zip(new.names, new.scaling.scale, strict=True)
        ratio = np.array([scales.get(name, 1.0) / scale for name, scale in both])
    size = ratio[kept] * whole_of(rows, old).energy ** 0.5 + 1e-150
    found = oracle.scatter_of(got)[np.ix_(kept, kept)] / size / size[:, None]
    scatter = expected.scatter[np.ix_(kept, kept)] / size / size[:, None]
    np.testing.assert_allclose(found, scatter, atol=1e-9)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-9, atol=1e-9 * abs(rows).max())
    np.testing.assert_allclose(got.channel_energies, expected.channel_energies, rtol=1e-6)


@pytest.mark.parametrize("as_directions", [False, True])
def test_a_new_channel_varies_in_rows_before_it_as_in_those_since(as_directions):
    """Directions follow no regression: all of its spread is beside them."""
    old, new = unit("ab"), unit("abc")
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((4000, 3))
    rows[:, 2] = 3 * rows[:, 0] + 0.1 * rows[:, 2]
    like = whole_of(rows, new)
    got = restated(
        directions_of(rng.standard_normal((1000, 2)), old, 2),
        old,
        new,
        like.directions(3) if as_directions else like,
    )

    assert got.channel_energies[2] / 1000 == pytest.approx(9.0, rel=0.1)


def test_rows_that_follow_a_center_of_their_own_do_so_still():
    """An offset of a scaling moves means, and no scatter."""
    old, new = schema_of("ab", ((5.0, 2.0), (0.0, 1.0))), schema_of("ab", ((1.0, 2.0), (0.0, 1.0)))
    piece = whole_of(rows_of("noise", 12, 2, 0), old)
    got = restated(piece, old, new)

    assert piece.scatter.tobytes() == got.scatter.tobytes()
    np.testing.assert_allclose(got.mean - piece.mean, [2.0, 0.0])


# -- groups that become wide or narrow -------------------------------------------------------

WIDE, NARROW = unit("abcdefghijklmnop"), unit("abcdefg")
KIND = Subspaces(2, oversample=2)


def test_a_group_that_becomes_wide_keeps_directions():
    """So many as it keeps; the rest is in the bound."""
    assert KIND.is_narrow(NARROW)
    assert not KIND.is_narrow(WIDE)
    piece = whole_of(rows_of("decaying", 60, 7, 2), NARROW)
    got = KIND.restated(piece, NARROW, WIDE, like=None)

    assert isinstance(got, Subspace)
    assert got.rank == 4
    assert KIND.fits(WIDE, got)
    truth = restated(piece, NARROW, WIDE).scatter
    off = np.linalg.eigvalsh(truth)[::-1] - np.pad(got.sigma**2, (0, 12))
    assert np.abs(off).max() <= got.spectral_bound * (1 + 1e-12)


def test_a_group_that_becomes_narrow_merges_the_directions_that_it_had():
    """With the scatter of rows since."""
    piece = directions_of(rows_of("decaying", 60, 16, 2), WIDE, 4)
    since = whole_of(rows_of("decaying", 60, 7, 3), NARROW)
    got = KIND.restated(piece, WIDE, NARROW, like=since)
    merged = KIND.merged(NARROW, [since, got], own=True)

    assert KIND.fits(NARROW, got)
    assert isinstance(merged, WholeScatter)
    assert merged.weight == 120
    np.testing.assert_allclose(got.channel_energies, piece.channel_energies[:7])


# -- what cannot be read ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Schema(2), schema_of("ab")),
        (schema_of("ab"), Schema(2)),
        (schema_of("ab"), replace(schema_of("ab"), features=KERNEL)),
        (replace(schema_of("ab"), features=KERNEL), schema_of("ab")),
        (schema_of("ab"), replace(schema_of("ab"), center="own")),
        (replace(schema_of("ab"), center="none"), replace(schema_of("abc"), center="none")),
        (schema_of("ab"), replace(schema_of("abc"), half_life=60.0)),
    ],
    ids=["no names", "no names now", "kernel", "kernel before", "center", "no center", "half-life"],
)
def test_some_summaries_cannot_be_read_under_another_schema(old, new):
    """A kernel mixes channels; without a mean, new channels would have none."""
    assert old.family != new.family


@pytest.mark.parametrize("center", ["own", "fleet"])
def test_names_units_order_and_scaling_may_differ(center):
    """Also where the new scaling is still open."""
    old = replace(unit("abc"), center=center, half_life=60.0)

    assert old.family == replace(schema_of("cx"), center=center, half_life=60.0).family


def test_what_is_assumed_weighs_as_ten_rows():
    """The page of decision 45 says so."""
    assert 10.0 == FIRST_ROWS

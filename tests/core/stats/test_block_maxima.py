"""Block maxima: the highest k-of-m statistic of each block, and limits that few exceed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.errors import NothingLearnt, UsageError
from submerge.stats.block_maxima import (
    FEW,
    MANY,
    NONE,
    BlockMaxima,
    BlockMaximaTally,
    drawn,
    enough,
    limit,
    pooled,
    statistics,
)
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty, packed, unpacked

scores = st.lists(st.floats(min_value=1e-6, max_value=1e6), max_size=200)


def maxima(spe: list[float], t2: list[float], longest: int = 0) -> BlockMaxima:
    """Return the block maxima that these are."""
    sketches = (QuantileSketch.of(np.array(each), FINE) for each in (spe, t2, []))
    return BlockMaxima(*sketches, longest=longest)


@given(st.lists(st.tuples(scores, scores), max_size=5))
def test_block_maxima_merge_exactly(parts):
    """What a group's block maxima are does not depend on how they were dealt to nodes."""
    whole = pooled(*(maxima(*part) for part in parts))

    spe = [value for part in parts for value in part[0]]
    t2 = [value for part in parts for value in part[1]]
    assert maxima(spe, t2) == whole


@given(st.lists(st.floats(min_value=0, max_value=1e300), max_size=400))
def test_a_fine_sketch_fits_into_two_kilobytes(values):
    """Whatever the scores; and it comes back as it was."""
    sketch = QuantileSketch.of(np.array(values), FINE)

    assert len(packed(sketch)) <= 2048
    assert sketch == unpacked(packed(sketch), FINE)


def test_the_largest_fine_sketch_fits_as_well():
    """Every bucket in use, far apart, each with as many scores as a number holds."""
    octaves = np.linspace(-890, 890, FINE.bins)
    sketch = QuantileSketch.of(2.0**octaves, FINE)
    full = QuantileSketch(sketch.level, tuple((i, 2**55) for i, _ in sketch.bins), FINE)

    assert len(packed(full)) <= FINE.bytes <= 2048


@given(
    st.lists(st.floats(min_value=0, max_value=10), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_a_statistic_is_the_kth_largest_of_m(values, after, more):
    """Of each score and those before it."""
    of = after + more - 1
    scores = [*[0.0] * (of - 1), *values]

    expected = [sorted(scores[i : i + of], reverse=True)[after - 1] for i in range(len(values))]
    assert [expected] == statistics(np.array([scores]), of, after).tolist()


@pytest.mark.parametrize(("after", "of"), [(1, 1), (1, 8), (5, 8), (8, 8), (3, FEW), (3, FEW + 1)])
@given(st.integers(0, 2**32 - 1))
def test_statistics_of_many_rows_are_those_of_few(after, of, seed):
    """To the last bit, and the scores stay as they are."""
    scores = np.random.default_rng(seed).integers(0, 50, size=(2, 2 * MANY + of - 1)) / 7
    before, found = scores.copy(), statistics(scores, of, after)
    few = [statistics(scores[:, i : i + of], of, after)[:, 0] for i in range(2 * MANY)]
    found += 1  # what is found is no view of the scores

    assert (np.array(few).T + 1 == found).all()
    assert (before == scores).all()


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.chisquare(5, n),
        lambda rng, n: rng.exponential(1.0, n),
        lambda rng, n: rng.lognormal(0.0, 0.7, n),
        lambda rng, n: rng.pareto(3.0, n) + 1,
    ],
    ids=["normal", "exponential", "lognormal", "Pareto"],
)
def test_a_limit_is_passed_as_often_as_was_promised(draw):
    """Once in two weeks of hours, by a day of forty nodes: within a factor of 1.5, and careful."""
    truth = draw(np.random.default_rng(0), 1_000_000)
    share = 1 / 336
    passed = []
    for seed in range(20):
        measured = QuantileSketch.of(draw(np.random.default_rng(seed + 1), 960), FINE)
        passed.append((truth > limit(measured, share)).mean())

    assert np.mean(passed) < 1.5 * share
    assert np.mean(passed) > 0.2 * share


def test_a_tail_is_fitted_beyond_what_was_counted():
    """Five times rarer than one of all maxima: about as far out as it is, and never below them."""
    rng = np.random.default_rng(3)
    seen = rng.exponential(1.0, 2000)
    far = limit(QuantileSketch.of(seen, FINE), 1 / 10_000)

    assert far >= np.quantile(seen, 0.999)
    assert 7.0 < far < 14.0  # exact: 9.2, and one is careful


@pytest.mark.parametrize("expected", [2.0, 5.0, 8.0])
def test_a_fitted_limit_lies_below_the_highest_maximum_where_several_are_to_exceed_it(expected):
    """A floor at the highest maximum would keep a promise of one in twenty at none at all."""
    passed = []
    for seed in range(60):
        seen = np.random.default_rng(seed).exponential(1.0, 400)
        passed.append(400 * np.exp(-limit(QuantileSketch.of(seen, FINE), expected / 400)))

    assert 0.6 * expected < np.mean(passed) < 1.2 * expected


def test_maxima_of_blocks_of_another_length_are_never_mixed():
    """Those that cover more time are the group's; nodes call for a length whatever theirs is."""
    hours = replace(maxima([1.0] * 5, [1.0] * 5, 9), lengths=(0, 0, 1))
    minutes = replace(maxima([7.0] * 50, [7.0] * 50, 60), block_s=64.0, lengths=(1,))
    whole = pooled(hours, minutes, hours)

    assert replace(pooled(hours, hours), lengths=(1, 0, 2)) == whole
    assert 64.0 == pooled(minutes, *60 * [replace(minutes, lengths=())], hours).block_s
    assert whole.packed != replace(whole, block_s=64.0).packed


def test_one_node_does_not_choose_whose_blocks_count():
    """Neither by many blocks nor by long ones: the others' would be forgotten at once."""
    sketch = QuantileSketch.of
    day = BlockMaxima(sketch(np.ones(24), FINE), empty(FINE), empty(FINE), 24)
    false = replace(day, spe=sketch(np.full(9000, 1e6), FINE), block_s=64.0)
    assert pooled(*9 * [day], false).spe.n == 9 * 24
    assert pooled(*9 * [day], replace(false, block_s=2.0**24)).spe.n == 9 * 24


def test_of_equal_maxima_no_more_is_known():
    """Where all hours came to one height, that is the limit."""
    limit_ = limit(QuantileSketch.of(np.full(70, 2.0), FINE), 1 / 336)

    assert 2.0 * 2 ** (-1 / 32) <= limit_ <= 2.0 * 2 ** (1 / 32)


def test_few_maxima_say_nothing():
    """Fewer than forty, or than a fifth of the blocks that one alarm is promised in."""
    few = QuantileSketch.of(np.arange(1.0, 40.0), FINE)
    some = QuantileSketch.of(np.arange(1.0, 101.0), FINE)

    assert not enough(few, 0.1)
    assert not enough(some, 1 / 501)
    assert enough(some, 1 / 500)
    with pytest.raises(NothingLearnt, match="39 block maxima are too few for one block in 10"):
        limit(few, 0.1)
    for share in (0, 1, float("nan")):
        with pytest.raises(UsageError, match="above 0 and below 1"):
            limit(some, share)


def test_a_block_leaves_its_highest_statistic():
    """Of each kind one; a block that passed without one leaves nothing, and no tally changes."""
    none = BlockMaximaTally()
    tally = none.after({"spe": 5.0, "t2": 1.0})

    assert replace(tally.maxima, longest=2) == tally.after({}).maxima
    assert BlockMaxima(
        QuantileSketch.of(np.array([5.0]), FINE),
        QuantileSketch.of(np.array([1.0]), FINE),
        empty(FINE),
        1,
    ) == (tally.maxima)
    assert NONE == none.maxima


def test_a_tally_goes_on_where_it_was():
    """After a restart it has the same maxima."""
    tally = BlockMaximaTally()
    for value in np.random.default_rng(0).lognormal(0, 1, 700):
        tally = tally.after({"spe": float(value)})
    again = BlockMaximaTally(tally.windows, tally.blocks)

    assert tally.maxima == again.maxima
    assert 700 == again.blocks


# -- of one machine, drawn to its group's ---------------------------------------------------


def blocks(rng: np.random.Generator, n: int, size: float = 1.0) -> np.ndarray:
    return size * rng.gumbel(10.0, 1.0, n).clip(0.1)


def sketch(*values: np.ndarray) -> QuantileSketch:
    return QuantileSketch.of(np.concatenate(values), FINE)


def test_a_machine_that_is_its_group_has_the_limit_of_the_group():
    """Also as one of two: its maxima say nothing that the group's do not."""
    rng = np.random.default_rng(0)
    own, other = blocks(rng, 400), blocks(rng, 390)

    for group in (sketch(own), sketch(own, other)):
        assert limit(group, 0.01) == drawn(group, sketch(own), 0.01)
    assert limit(sketch(own, other), 0.01) == drawn(sketch(own, other), empty(FINE), 0.01)


@pytest.mark.parametrize("seed", range(5))
def test_a_quiet_machine_has_lower_limits_and_a_loud_one_higher(seed):
    """Until the loud one alone raises most alarms of a group, each is held to its own."""
    rng = np.random.default_rng(seed)
    rest = [blocks(rng, 300) for _ in range(10)]
    quiet, loud = blocks(rng, 300, 0.3), blocks(rng, 300, 3.0)
    group = sketch(*rest, quiet, loud)
    usual = limit(group, 0.01)

    assert drawn(group, sketch(quiet), 0.01) < usual < drawn(group, sketch(loud), 0.01)
    for own, size in ((quiet, 0.3), (loud, 3.0)):
        found = drawn(group, sketch(own), 0.01)
        assert (blocks(rng, 20_000, size) > found).mean() < 0.02


def test_a_young_machine_is_held_to_its_group():
    """Three blocks of its own, and none of them high, do not say that it is quiet."""
    rng = np.random.default_rng(0)
    group = sketch(*(blocks(rng, 300) for _ in range(12)))

    young = drawn(group, sketch(blocks(rng, 3)), 0.01)

    assert 0.9 * limit(group, 0.01) < young <= 1.1 * limit(group, 0.01)


@given(st.integers(0, 999), st.integers(1, 200), st.floats(0.005, 0.2))
def test_limits_rise_as_the_promise_is_rarer(seed, n, share):
    rng = np.random.default_rng(seed)
    group, own = sketch(blocks(rng, 600)), sketch(blocks(rng, n))

    assert drawn(group, own, share) > drawn(group, own, 2 * share) * (1 - 1e-6)


def test_machines_that_differ_raise_together_what_is_promised():
    """Forty whose scores differ by factors: realised on blocks that come after."""
    rng = np.random.default_rng(1)
    sizes = np.exp(rng.normal(0.0, 0.7, 40))
    seen = [blocks(rng, 336, size) for size in sizes]
    group = sketch(*seen)

    over = [
        (blocks(rng, 20_000, size) > drawn(group, sketch(each), 1 / 168)).mean()
        for size, each in zip(sizes, seen, strict=True)
    ]

    assert 0.4 < 168 * np.mean(over) < 1.5

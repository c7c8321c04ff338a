"""Sketches of scores: one for the whole, however it was cut, kept, merged or sent."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from itertools import chain, count

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge.errors import NothingLearnt, PeerError, UsageError
from submerge.stats.quantile_sketch import (
    COARSE,
    QuantileSketch,
    SketchTally,
    empty,
    merged,
    packed,
    quantile,
    unpacked,
)

# The upper edges of all buckets of level 0, in the order of their indices.
LOWEST, HIGHEST = -7200, 7200
EDGES = [math.ldexp(2.0 ** (i % 8 / 8), i // 8) for i in range(LOWEST, HIGHEST + 1)]
# A power of two with a fraction above is within an ulp or two of the edge that it names.
ROUNDING = 1 + 1e-12

typical = st.floats(min_value=1e-3, max_value=1e4)
edges = st.sampled_from(EDGES)
extreme = (
    st.sampled_from([0.0, -0.0, 5e-324, 1e30, math.inf])
    | edges
    | edges.map(lambda edge: math.nextafter(edge, math.inf))
)
scores = st.lists(typical, max_size=80) | st.lists(typical | extreme, max_size=80)
shares = st.floats(min_value=0, max_value=1, exclude_min=True)


def twin(values: list[float]) -> QuantileSketch:
    """Look up every score in a table of all edges, and take the first level that fits."""
    found = [min(LOWEST + bisect_left(EDGES, value), HIGHEST) for value in values]
    for level in count():
        bins = Counter(math.ceil(index / 2**level) for index in found)
        if len(bins) <= COARSE.bins:
            return QuantileSketch(level, tuple(sorted(bins.items())))
    raise AssertionError


def exact(values: list[float], q: float) -> float:
    """Sort, and take the smallest score that a share q does not exceed."""
    return sorted(values)[math.ceil(q * len(values)) - 1]


def attained(sketch: QuantileSketch) -> bool:
    """Whether scores spread as far as these bins allow give this sketch."""
    values: list[float] = []
    for index, times in sketch.bins:
        first, last = (index - 1) * 2**sketch.level + 1, index * 2**sketch.level
        near, far = (EDGES[min(max(i, LOWEST), HIGHEST) - LOWEST] for i in (first, last))
        values += [near] + [far] * (times - 1)
    return twin(values) == sketch


def drawn(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return {
        "chi-square 56": lambda: rng.chisquare(56, n),
        "chi-square 8": lambda: rng.chisquare(8, n),
        "lognormal 2": lambda: rng.lognormal(0, 2, n),
    }[name]()


DRAWN = ["chi-square 56", "chi-square 8", "lognormal 2"]


@st.composite
def bins_of_any_kind(draw):
    """Sketches that scores may or may not have: crowded, sparse, out of reach, too high."""
    level = draw(st.integers(0, 11))
    reach = 7200 // 2**level + 2
    indices = draw(st.sets(st.integers(-reach, reach), max_size=COARSE.bins))
    return QuantileSketch(level, tuple((i, draw(st.integers(1, 3))) for i in sorted(indices)))


@given(scores)
@example([2.0**900] * 40 + [math.inf, 0.0])
@example(EDGES)
def test_a_sketch_is_what_its_twin_says(values):
    """Same level, same buckets, same counts as looking up every score in a table."""
    assert twin(values) == QuantileSketch.of(values)


def test_every_edge_falls_below_it():
    """A score on an edge, or just above, lands on its side: alone and in an array."""
    for start in range(LOWEST, HIGHEST - COARSE.bins, COARSE.bins):
        on = EDGES[start - LOWEST : start - LOWEST + COARSE.bins]
        above = [math.nextafter(edge, math.inf) for edge in on]
        for times in (1, 10):
            for step, values in enumerate((on, above)):
                assert QuantileSketch(
                    0, tuple((start + step + i, times) for i in range(COARSE.bins))
                ) == QuantileSketch.of(values * times)


@given(scores, scores)
def test_merging_commutes(a, b):
    """Who came first leaves no trace."""
    a, b = QuantileSketch.of(a), QuantileSketch.of(b)

    assert merged(a, b) == merged(b, a)


@given(scores, scores, scores)
def test_merging_associates(a, b, c):
    """Any tree of merges gives the same sketch, and nothing merges to nothing."""
    a, b, c = QuantileSketch.of(a), QuantileSketch.of(b), QuantileSketch.of(c)

    assert merged(a, b, c) == merged(merged(a, b), c) == merged(a, merged(b, c))
    assert merged(a) == merged(a, empty()) == merged(merged(), a) == a


@given(st.lists(scores, max_size=6))
def test_parts_merge_to_the_whole(parts):
    """The merge of sketches is the sketch of all scores, and counts each once."""
    whole = [*chain(*parts)]

    assert twin(whole) == merged(*map(QuantileSketch.of, parts))
    assert len(whole) == merged(*map(QuantileSketch.of, parts)).n


@given(scores.filter(len), shares)
@example([0.0, math.inf] * 20, 1.0)
@example(EDGES, 1.0)
@example(EDGES, 1e-9)
def test_a_quantile_is_as_near_as_promised(values, q):
    """Within the factor `width` of the score that sorting finds."""
    sketch = QuantileSketch.of(values)
    truth = min(max(exact(values, q), 2.0**-900), 2.0**900)

    assert 1 / sketch.width / ROUNDING <= quantile(sketch, q) / truth <= sketch.width * ROUNDING


@given(scores.filter(len), shares, shares)
def test_quantiles_rise(values, p, q):
    """A larger share is never exceeded by a smaller one's value."""
    sketch = QuantileSketch.of(values)

    assert quantile(sketch, min(p, q)) <= quantile(sketch, max(p, q))


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("q", [0.01, 0.5, 0.95, 0.99, 0.999, 1.0])
def test_quantiles_of_usual_scores_are_numpys(name, q):
    """The same promise, against NumPy's own quantile."""
    values = drawn(name, 10_000)
    sketch = QuantileSketch.of(values)
    truth = np.quantile(values, q, method="inverted_cdf")

    assert 1 / sketch.width <= quantile(sketch, q) / truth <= sketch.width


def test_where_scores_cannot_tell_the_highest_edge_stands():
    """A hundred scores know their 0.99 quantile, not their 0.995: that is above them all."""
    sketch = QuantileSketch.of(np.repeat([1.0, 3.0], 50))

    assert 2 ** (13 / 8) == quantile(sketch, 0.995) == quantile(sketch, 1)
    assert 2 ** (12.98 / 8) == pytest.approx(quantile(sketch, 0.99), rel=1e-12)
    # 1 - 0.9 is a little less than a tenth; 0.9 of 10 scores is 9 nevertheless.
    ten = QuantileSketch.of([1.0] * 9 + [3.0])
    assert quantile(ten, 0.9) == 1
    assert quantile(ten, 0.91) == 2 ** (13 / 8)


@pytest.mark.parametrize("name", DRAWN)
def test_a_wild_score_costs_one_bucket(name):
    """One score of 1e30 among a thousand: the limit is as near as it was, or one level off."""
    values = drawn(name, 1000)
    typical, wild = QuantileSketch.of(values), QuantileSketch.of(np.append(values, 1e30))
    truth = exact([*values, 1e30], 0.99)

    assert wild.level <= typical.level + 1
    assert 1 / wild.width <= quantile(wild, 0.99) / truth <= wild.width


@given(st.lists(scores, max_size=8), st.integers(1, 60))
def test_a_tally_forgets_whole_windows(blocks, window):
    """It speaks of the current window and the one before, however the scores came."""
    at_once, one_by_one = SketchTally(window), SketchTally(window)
    for block in blocks:
        at_once.add(np.array(block))
        for value in block:
            one_by_one.add(np.array([value]))
    values = [*chain(*blocks)]
    start = max(len(values) // window - 1, 0) * window

    assert twin(values[start:]) == at_once.sketch == one_by_one.sketch


def test_an_old_models_scores_age_out():
    """Two windows after the scores jumped, none from before is left."""
    tally = SketchTally(window=100)
    tally.add(np.full(150, 1e6))
    tally.add(np.full(199, 1.0))
    assert quantile(tally.sketch, 1) < 1e6 / 1e5
    assert SketchTally().sketch == empty()


@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf])
@pytest.mark.parametrize("good", [2, 100])
def test_a_refused_block_counts_nothing(bad, good):
    """NaN and negative scores are refused by name, with all that came with them."""
    tally = SketchTally(window=3)
    with pytest.raises(UsageError, match=f"at least 0, got {bad:g}"):
        tally.add(np.array([1.0] * good + [bad]))
    assert tally.sketch == empty()


def test_what_has_no_answer():
    """Shares outside (0, 1], quantiles of nothing, windows of nothing."""
    for q in (0.0, -0.1, 1.01, math.nan):
        with pytest.raises(UsageError, match="q must be"):
            quantile(QuantileSketch.of([1.0]), q)
    with pytest.raises(NothingLearnt, match="without scores"):
        quantile(empty(), 0.5)
    with pytest.raises(UsageError, match="window must be"):
        SketchTally(window=0)


@given(scores)
@example(EDGES)
@example([])
def test_bytes_bring_back_the_sketch(values):
    """Packing loses nothing."""
    assert QuantileSketch.of(values) == unpacked(packed(QuantileSketch.of(values)))


def test_bytes_stay_what_they_are():
    """Level, bins, zigzag index, count, step, count: other versions read these bytes."""
    assert bytes([0, 2, 5, 1, 5, 0xAC, 0x02]) == packed(QuantileSketch(0, ((-3, 1), (2, 300))))
    assert bytes(2) == packed(empty())


@pytest.mark.parametrize("n", [1000, pytest.param(10**6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DRAWN)
def test_two_sketches_fit_in_a_message(name, n):
    """Typical scores take at most half of 200 bytes."""
    assert len(packed(QuantileSketch.of(drawn(name, n)))) <= 60


def test_the_largest_sketch_still_fits():
    """Sixteen lonely bins with 2^28 - 1 scores each: 98 bytes."""
    worst = QuantileSketch(0, tuple((LOWEST + 800 * i, 2**28 - 1) for i in range(COARSE.bins)))

    assert len(packed(worst)) == 98
    assert unpacked(packed(worst)) == worst


@given(bins_of_any_kind())
@example(QuantileSketch(10, tuple((i, 2) for i in range(-7, 9))))
@example(QuantileSketch(10, ((-7, 2), *((i, 1) for i in range(-6, 9)))))
@example(QuantileSketch(1, tuple((i, 2) for i in range(8))))
@example(QuantileSketch(1, ((-3600, 2), *((i, 1) for i in range(15)))))
@example(QuantileSketch(6, (*((i, 1) for i in range(15)), (113, 2))))
@example(QuantileSketch(6, ((-112, 2), *((i, 1) for i in range(15)))))
@example(QuantileSketch(11, tuple((i, 99) for i in range(-3, 5))))
def test_only_what_scores_can_give_passes(sketch):
    """Bytes of bins that no scores have, or at a level that none need, are refused."""
    try:
        passed = unpacked(packed(sketch)) == sketch
    except PeerError:
        passed = False

    assert passed == attained(sketch)


@given(scores, st.data())
def test_damaged_bytes_are_refused_or_say_something_else(values, data):
    """Whatever bit flips make of a sketch, what passes is canonical."""
    damaged = bytearray(packed(QuantileSketch.of(values)))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    check_canonical(bytes(damaged))


@given(st.binary(max_size=40))
def test_noise_is_refused_or_says_something(noise):
    """Any bytes at all: an error of ours, or a canonical sketch."""
    check_canonical(noise)


def check_canonical(data: bytes) -> None:
    try:
        sketch = unpacked(data)
    except PeerError:
        return
    assert data == packed(sketch)
    assert sketch == merged(sketch) == merged(sketch, empty())
    # Counts beyond 2 test nothing more, and would take time.
    assert attained(QuantileSketch(sketch.level, tuple((i, min(n, 2)) for i, n in sketch.bins)))


@given(scores)
def test_every_truncation_is_refused(values):
    """No prefix of a sketch is one, and nothing may follow it."""
    data = packed(QuantileSketch.of(values))
    for size in range(len(data)):
        with pytest.raises(PeerError):
            unpacked(data[:size])
    for more in (b"\0", b"\1", b"\x80", b"\1\1"):
        with pytest.raises(PeerError):
            unpacked(data + more)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "2 to 194 bytes"),
        (bytes([0, 255]) + bytes(510), "2 to 194 bytes"),
        (bytes([0, 17]) + bytes([2, 1] * 17), "17 bins, at most 16"),
        (bytes([0, 1, 2]), "do not come as 1 numbers"),
        (bytes([0, 1, 2, 0]), "counts be above 0"),
        (bytes([0, 2, 2, 1, 0, 1]), "indices must rise"),
        (bytes([0, 1, 2]) + b"\xff" * 12 + b"\x01", "below 2\\^63"),
        (bytes([1, 0]), "no scores have these 0 bins at level 1"),
        (bytes([1, 1, 2, 9]), "no scores have these 1 bins at level 1"),
        (bytes([255, 1, 2, 9]), "at level 255"),
        (bytes([0, 1, 0xC2, 0x70, 1]), "at level 0"),
        (bytes([0, 1, 0x82, 0x00, 1]), "as short as they can"),
    ],
)
def test_what_is_wrong_is_said(data, message):
    """Too long, too many, none, falling, endless, at the wrong level, out of reach, padded."""
    with pytest.raises(PeerError, match=message):
        unpacked(data)


@pytest.mark.parametrize("q", [0.95, 0.99, 0.999])
@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 20])
def test_a_share_of_the_scores_is_beyond_a_limit_in_wide_buckets(freedom: int, q: float):
    """Within a bucket scores become fewer: to a third of the share, where evenly it was a tenth."""
    scores = np.random.default_rng(freedom).chisquare(freedom, 100_000)

    beyond = np.mean(scores > quantile(QuantileSketch.of(scores), q, falling=True)) / (1 - q)
    assert 2 / 3 < beyond < 3 / 2


@given(scores.filter(len), st.floats(0.5, 1.0, exclude_min=True))
def test_a_limit_is_in_the_bucket_of_the_quantile(values, q):
    """It is as near as the quantile is, and the highest edge beyond all scores."""
    sketch = QuantileSketch.of(values)

    ratio = quantile(sketch, q, falling=True) / quantile(sketch, q)
    assert 1 / sketch.width / ROUNDING <= ratio <= sketch.width * ROUNDING
    assert quantile(sketch, 1.0, falling=True) == pytest.approx(quantile(sketch, 1.0))

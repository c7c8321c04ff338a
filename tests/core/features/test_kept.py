"""What maps work out once: how often, for whom, and until when."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from weakref import ref

import numpy as np
import pytest
from scipy import sparse

from submerge.features import (
    CountSketch,
    Gaussian,
    Landmarks,
    Polynomial,
    RandomFourier,
    TensorSketch,
    draws,
    fourier,
    landmarks,
)
from submerge.features.feature_map import RECENT, SHAPES, kept

X = np.random.default_rng(0).standard_normal((4, 5))
MAPS = {
    "fourier": lambda seed: RandomFourier(Gaussian(0.1), 64, seed=seed),
    "fourier-cos": lambda seed: RandomFourier(Gaussian(0.1), 64, "fourier-cos", seed),
    "tensorsketch": lambda seed: TensorSketch(Polynomial(2, 0.1), 64, seed),
    "countsketch": lambda seed: CountSketch(Gaussian(0.1), 64, 32, seed),
    "nystrom": lambda seed: Landmarks(Gaussian(0.1), X + seed),
}
parametrized = pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)


@pytest.fixture
def built(monkeypatch) -> Counter:
    """How often numbers were drawn, of each seed and stream, and how often roots were taken."""
    count: Counter = Counter()
    source, of = draws._source, landmarks.Solid.of

    def drawn(seed, stream):
        count[seed, stream] += 1
        return source(seed, stream)

    def solid(K):
        count["root"] += 1
        return of(K)

    monkeypatch.setattr(draws, "_source", drawn)
    monkeypatch.setattr(landmarks.Solid, "of", solid)
    return count


@parametrized
def test_twenty_maps_in_turn_build_once_each(make, built):
    """A gateway with twenty groups: no map pushes another's weights out."""
    maps = [make(seed) for seed in range(100, 120)]
    for map_ in maps:
        map_.lift(X)
    once = built.copy()
    assert once.total() >= 20

    for _ in range(3):
        for map_ in maps:
            map_.pullback(X, map_.lift(X))

    assert once == built


@parametrized
def test_equal_maps_share_it_as_long_as_one_lives(make, built):
    """As nodes of one process do, whose schemas were each read from a text."""
    first, second = make(200), make(200)
    first.lift(X)
    once = built.copy()
    second.lift(X)
    assert once == built

    # The value goes with the first map, and is computed once again for the second.
    del first
    for seed in range(201, 201 + RECENT):
        make(seed).lift(X)
    others = built.copy()
    for _ in range(3):
        second.lift(X)
    assert once.total() == (built - others).total()


@parametrized
def test_a_map_made_anew_for_each_block_is_worked_out_once(make, built):
    """As by a caller who writes the map into the loop, or reads its schema each time."""
    make(250).lift(X)
    once = built.copy()

    for _ in range(5):
        make(250).lift(X)

    assert once == built


def test_it_goes_with_its_map():
    """Nothing is kept for maps that are gone, but for the last few."""
    # No other test has this gamma: an equal map that still exists would keep the values.
    map_, points = RandomFourier(Gaussian(0.1234), 64), Landmarks(Gaussian(0.1234), X)
    turns, root = (
        ref(fourier._form(map_, 5, False).turns),
        ref(points.whitening),
    )
    assert turns() is not None
    assert root() is not None

    del map_, points
    for seed in range(500, 500 + RECENT):
        MAPS["fourier"](seed).lift(X)
        MAPS["nystrom"](seed).lift(X)
    assert turns() is None
    assert root() is None


def test_few_shapes_are_kept_of_one_map():
    """Rows of ever more channels do not pile up weights."""
    map_, asked = RandomFourier(Gaussian(0.1), 64), []

    @kept
    def build(_map, channels):
        asked.append(channels)
        return channels

    for channels in [*range(SHAPES), *range(SHAPES), SHAPES, 0, SHAPES]:
        assert channels == build(map_, channels)
    assert [*range(SHAPES), SHAPES, 0] == asked


@parametrized
def test_it_is_no_part_of_the_map(make):
    """Equal, of one hash and of one pickle, whether it has lifted or not; copies lift alike."""
    fresh, used = make(300), make(300)
    before = pickle.dumps(used)
    phi = used.lift(X)

    assert fresh == used
    assert hash(fresh) == hash(used)
    assert before == pickle.dumps(used)
    unpickled = pickle.loads(before)  # noqa: S301 (our own bytes)
    for again in (unpickled, copy.deepcopy(used), copy.copy(used)):
        assert used == again
        np.testing.assert_array_equal(phi, again.lift(X))


def test_sparse_rows_have_a_form_of_their_own(built):
    """Dense and sparse rows in turn build each form once."""
    map_ = RandomFourier(Gaussian(0.1), 64, seed=400)
    for _ in range(3):
        map_.lift(X)
        map_.lift(sparse.csr_array(X))

    # Signs and lengths, each drawn once for either form.
    assert {2} == set(built.values())

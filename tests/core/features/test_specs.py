"""What maps and kernels refuse, and that a spec is one map's or a peer's error."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from submerge.errors import PeerError, UsageError
from submerge.features import (
    CountSketch,
    Gaussian,
    Identity,
    Landmarks,
    Laplace,
    Matern,
    Polynomial,
    RandomFourier,
    TensorSketch,
    parse,
)

gammas = st.none() | st.floats(1e-300, 1e300)
radial = st.one_of(
    st.builds(Gaussian, gammas),
    st.builds(Laplace, gammas),
    st.builds(Matern, gammas, st.sampled_from([1.5, 2.5])),
)
polynomial = st.builds(Polynomial, st.integers(1, 64), gammas, st.floats(0, 1e300))
seeds = st.integers(0, 2**63 - 1)
pairs = st.integers(1, 2**15).map(lambda n: 2 * n)
points = st.integers(1, 4).flatmap(
    lambda d: st.lists(
        st.lists(
            st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=d, max_size=d
        ),
        min_size=1,
        max_size=4,
    )
)
maps = st.one_of(
    st.just(Identity()),
    st.builds(RandomFourier, radial, pairs, st.sampled_from(["orthogonal", "quasi"]), seeds),
    st.builds(RandomFourier, radial, st.integers(2, 2**16), st.just("fourier-cos"), seeds),
    st.builds(TensorSketch, polynomial, st.integers(2, 2**16), seeds),
    st.builds(CountSketch, radial, pairs, st.integers(1, 2**16), seeds),
    st.builds(Landmarks, radial | polynomial, points),
)
noise = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
WORDS = "0x1.0p+0 1.0 nan inf -0x0.0p+0 0x1p99999 AAAA é gaussian polynomial nystrom matern quasi"
wordy = st.sampled_from([*WORDS.split(), "", "\n", "identity", "A" * 4096, 10**5000, -1, 2**63])

A_MAP = RandomFourier(Gaussian(0.5), 512, "orthogonal", 7)


@given(maps)
def test_a_spec_brings_back_its_map(map_):
    """Through JSON, to the letter; and equal maps have equal specs."""
    again = parse(json.loads(json.dumps(map_.spec())))

    assert map_ == again
    assert map_.spec() == again.spec()
    assert hash(map_) == hash(again)


@given(maps, st.data())
def test_a_changed_spec_is_another_map_or_none(map_, data):
    """Whatever is put in a field's place, taken away or added: the map has exactly that spec."""
    spec = copy.copy(map_.spec())
    key = data.draw(st.sampled_from([*spec, "more"]))
    if data.draw(st.booleans()):
        spec[key] = data.draw(noise | wordy)
    else:
        spec.pop(key, None)
    said_or_refused(spec)


@given(noise | st.dictionaries(st.sampled_from(["kind", "kernel", "gamma", "seed"]), noise | wordy))
@example("identity")
@example({"kind": ["identity"]})
@example({"kind": "identity", "features": 4})
@example([["kind", "identity"]])
@example({**A_MAP.spec(), "features": 10**30})
@example({**A_MAP.spec(), "features": 512.0})
@example({**A_MAP.spec(), "seed": True})
@example({**A_MAP.spec(), 3: 4})
@example({**A_MAP.spec(), "gamma": "0x1p-1"})
@example({**A_MAP.spec(), "gamma": {1, 2}})
@example(
    {**Polynomial(2, 1.0).spec(), "kind": "tensorsketch", "features": 4, "seed": 0, "degree": 65}
)
@example({**Landmarks(Gaussian(), [[1.0]]).spec(), "points": ""})
@example({**Landmarks(Gaussian(), [[1.0]]).spec(), "points": "AAAAAAA="})
@example({**Landmarks(Gaussian(), [[1.0]]).spec(), "points": "AAAAAAAA8D8=\n"})
@example({**Landmarks(Gaussian(), [[1.0]]).spec(), "points": "AAAAAAAA+H8="})
@example({**Landmarks(Gaussian(), [[1.0]]).spec(), "points": "AAAAAAAAAIA="})
@example({**Landmarks(Gaussian(), [[1.0]]).spec(), "channels": 10**30})
def test_noise_is_a_peers_error(spec):
    """Nothing but PeerError, whatever it is: in one line, and never a long one."""
    said_or_refused(spec)


def said_or_refused(spec: object) -> None:
    try:
        parsed = parse(spec).spec()
    except PeerError as error:
        message = str(error)
    else:
        assert json.dumps(spec, sort_keys=True) == json.dumps(parsed, sort_keys=True)
        return
    assert message.startswith("expected a feature map's spec: ")
    assert len(message) < 200
    assert "\n" not in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "fourier"}, "no map is of kind 'fourier'"),
        ({"kernel": "cosine"}, "no kernel is called 'cosine'"),
        ({"features": 2**16 + 2}, "from 2 to 65536, got 65538"),
        ({"gamma": "-0x1.0p+0"}, "gamma must be a positive number"),
        ({"gamma": "0.5"}, "it would be written otherwise"),
        ({"features": True}, "from 2 to 65536, got True"),
    ],
)
def test_what_is_wrong_is_said(change, message):
    """Which kind, which kernel, which field; and what is merely written otherwise."""
    with pytest.raises(PeerError, match=message):
        parse(A_MAP.spec() | change)
    without = {key: value for key, value in A_MAP.spec().items() if key not in change}
    with pytest.raises(PeerError, match="is missing"):
        parse(without)


@pytest.mark.slow
def test_a_deep_or_endless_spec_is_refused():
    """Nesting that JSON cannot write, and a list that holds itself."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    endless: list[object] = []
    endless.append(endless)
    for field in (deep, endless):
        with pytest.raises(PeerError):
            parse({**Identity().spec(), "more": field})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RandomFourier(features=511), "'orthogonal' come in pairs: .* got 511"),
        (lambda: RandomFourier(features=3, kind="quasi"), "'quasi' come in pairs: .* got 3"),
        (lambda: CountSketch(features=3), "'countsketch' come in pairs: .* got 3"),
        (lambda: RandomFourier(features=1, kind="fourier-cos"), "from 2 to 65536, got 1"),
        (lambda: RandomFourier(features=512.0), "whole number from 2 to 65536, got 512.0"),
        (lambda: RandomFourier(features=True), "got True"),
        (lambda: RandomFourier(kind="orf"), "kind must be one of orthogonal, .* got 'orf'"),
        (lambda: RandomFourier(seed=-1), "seed must be a whole number from 0 to .* got -1"),
        (lambda: RandomFourier(seed=2**63), "seed must be"),
        (lambda: TensorSketch(seed=0.5), "seed must be"),
        (lambda: CountSketch(buckets=0), "buckets must be a whole number from 1 to 65536, got 0"),
        (
            lambda: RandomFourier(Polynomial(2, 1.0)),
            r"Fourier features need a kernel of kind Gaussian or Laplace or Matern, got Poly",
        ),
        (lambda: CountSketch(Polynomial(2, 1.0)), "need a kernel of kind Gaussian"),
        (lambda: TensorSketch(Gaussian(1.0)), "need a kernel of kind Polynomial, got Gaussian"),
        (lambda: RandomFourier("gaussian"), "got 'gaussian'"),
        (lambda: Landmarks(None, [[1.0]]), "landmarks need a kernel"),
        (lambda: Landmarks(Gaussian(), np.empty((0, 3))), r"\(1 to 4096, channels\), got \(0, 3\)"),
        (lambda: Landmarks(Gaussian(), np.empty((3, 0))), r"got \(3, 0\)"),
        (lambda: Landmarks(Gaussian(), [1.0, 2.0]), r"got \(2,\)"),
        (lambda: Landmarks(Gaussian(), np.zeros((4097, 1))), r"got \(4097, 1\)"),
        (lambda: Landmarks(Gaussian(), [[0.0], [np.nan]]), "finite and at most 1e.150 .* row 1"),
        (lambda: Landmarks(Gaussian(), [[-2e150]]), "finite and at most 1e.150 .* row 0"),
        (lambda: Landmarks(Gaussian(), [[1.0, 2.0]]).dim(3), "rows of 2 channels, got 3"),
        (lambda: Landmarks(Gaussian(1.0), [[1.0]]).lift(np.ones((1, 2))), "of 1 channels, got 2"),
        (
            lambda: Landmarks(Polynomial(64, 1.0), [[1e9]]).lift(np.ones((1, 1))),
            r"kernel of landmarks must be finite: Polynomial\(.*\) is too steep",
        ),
        (lambda: Gaussian(0.0), "gamma must be a positive number, .* got 0.0"),
        (lambda: Gaussian(-1), "gamma"),
        (lambda: Laplace(np.nan), "gamma must be .* got nan"),
        (lambda: Matern(True), "gamma must be .* got True"),
        (lambda: Gaussian(10**400), "gamma must be"),
        (lambda: Gaussian(Fraction(1, 10**400)), "gamma must be"),
        (lambda: Gaussian("1"), "gamma must be .* got '1'"),
        (lambda: Matern(1.0, 0.5), "nu must be 1.5 or 2.5, got 0.5"),
        (lambda: Polynomial(0), "degree must be a whole number from 1 to 64, got 0"),
        (lambda: Polynomial(2.5), "degree must be .* got 2.5"),
        (lambda: Polynomial(2, 1.0, -1.0), "coef0 must be a finite number of at least 0, got -1.0"),
        (lambda: Polynomial(2, 1.0, np.inf), "coef0 must be .* got inf"),
        (lambda: Polynomial(2, 1.0, None), "coef0 must be .* got None"),
    ],
)
def test_bad_input_is_refused_in_one_line(build, message):
    """At once, with what was expected and what came."""
    with pytest.raises(UsageError, match=message) as info:
        build()
    assert "\n" not in str(info.value)


def test_numbers_of_numpy_are_numbers():
    """Equal to Python's, with the same spec; a negative zero is zero."""
    plain = RandomFourier(Gaussian(0.5), 64, "orthogonal", 3)
    numpys = RandomFourier(Gaussian(np.float32(0.5)), np.int64(64), "orthogonal", np.uint8(3))
    assert plain == numpys
    assert json.dumps(plain.spec()) == json.dumps(numpys.spec())
    zero, negative = (
        TensorSketch(Polynomial(2, 1, 0.0)),
        TensorSketch(Polynomial(np.int8(2), 1, -0.0)),
    )
    assert zero == negative
    assert json.dumps(zero.spec()) == json.dumps(negative.spec())
    for half in (Gaussian(Fraction(1, 2)), Gaussian(np.float32(0.5))):
        assert Gaussian(0.5) == half
        assert np.exp(-0.5) == half(np.zeros((1, 1)), np.eye(1))[0, 0]
    fractions = Polynomial(1, Fraction(1, 2), Fraction(1, 4)), Matern(1, Fraction(3, 2))
    for kernel, plain in zip(fractions, (Polynomial(1, 0.5, 0.25), Matern(1.0, 1.5)), strict=True):
        assert plain == kernel
        assert plain.spec() == kernel.spec()
        assert np.float64 == kernel(np.eye(2), np.eye(2)).dtype
    assert Landmarks(Gaussian(), [[0.0]]).spec() == Landmarks(Gaussian(), [[-0.0]]).spec()


def test_landmarks_are_their_own():
    """Changing the rows they were made of changes nothing, and they cannot be written to."""
    rows = np.ones((2, 3), dtype=np.float32)
    map_ = Landmarks(Gaussian(1.0), rows)
    before = map_.spec()
    rows[0, 0] = 5.0

    assert before == map_.spec()
    assert map_ == Landmarks(Gaussian(1.0), np.ones((2, 3)))
    with pytest.raises(ValueError, match="read-only"):
        map_.points[0, 0] = 5.0
    # The same numbers in another shape are other rows.
    assert map_ != Landmarks(Gaussian(1.0), np.ones((3, 2)))

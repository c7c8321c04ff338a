"""Schemas: what a vector means, and a fingerprint that two strangers agree on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Channel, PeerError, Scaling, Schema, ShapeError, UsageError
from submerge.features import (
    CountSketch,
    Gaussian,
    Landmarks,
    Laplace,
    Matern,
    Polynomial,
    RandomFourier,
    TensorSketch,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "schema"

EXAMPLES = {
    "anonymous-48": Schema.anonymous(48),
    "anonymous-3-own": Schema.anonymous(3, center="own"),
    "press": Schema(
        (Channel("temperature", "°C"), Channel("load", "%"), Channel("vibration")),
        scaling=Scaling((21.5, 0.0, 0.1), (4.0, 100.0, 1 / 3)),
        center="own",
        half_life=86400.0,
    ),
    "gaussian": Schema(
        (Channel("temperature", "°C"), Channel("load", "%")),
        features=RandomFourier(Gaussian(1 / 3), 256, seed=7),
    ),
    "open-matern": Schema(3, features=RandomFourier(Matern(nu=2.5), 64, "fourier-cos")),
    "polynomial": Schema(3, features=TensorSketch(Polynomial(3, 0.5, 1.0), 64, 1)),
    "countsketch": Schema(3, features=CountSketch(Laplace(0.25), 64, 32)),
    "landmarks": Schema(2, features=Landmarks(Gaussian(0.5), np.array([[0.5, 1.0], [-2.0, 0.1]]))),
}

QUASI = RandomFourier(Gaussian(0.5), 8, "quasi")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_canonical_text_never_changes(name):
    """Golden: two versions of the program must agree on every byte."""
    assert (GOLDEN / f"{name}.json").read_bytes() == EXAMPLES[name].canonical


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_fingerprint_never_changes(name):
    """Golden: SHA-256 of that text."""
    golden = json.loads((GOLDEN / "fingerprints.json").read_text())
    assert golden[name] == EXAMPLES[name].fingerprint


finite = st.floats(allow_nan=False, allow_infinity=False)
positive = st.floats(min_value=1e-300, allow_infinity=False)


@st.composite
def schemas(draw) -> Schema:
    names = draw(st.lists(st.text(max_size=8), min_size=1, max_size=5, unique=True))
    scaling = None
    if draw(st.booleans()):
        scaling = Scaling(tuple(draw(finite) for _ in names), tuple(draw(positive) for _ in names))
    channels = tuple(Channel(name, draw(st.text(max_size=3))) for name in names)
    return Schema(
        draw(st.sampled_from([channels, len(names)])),
        scaling=scaling,
        center=draw(st.sampled_from(["fleet", "own", "none"])),
        half_life=draw(st.none() | positive),
    )


@given(schemas())
def test_a_schema_survives_its_text(schema):
    """parse(canonical) is the same schema, to the last digit of a scale."""
    assert schema == Schema.parse(schema.canonical)
    assert schema.fingerprint == Schema.parse(schema.canonical).fingerprint


@given(schemas(), schemas())
def test_unequal_schemas_have_unequal_fingerprints(one, other):
    """And equal ones equal fingerprints."""
    assert (one == other) == (one.fingerprint == other.fingerprint)


def test_whatever_differs_shows_in_the_fingerprint():
    """Order, a unit, a scale, the center, the half-life: each makes another schema."""
    a, b = Channel("a", "V"), Channel("b", "V")
    ones = Scaling((0.0, 0.0), (1.0, 1.0))
    variants = [
        Schema((a, b)),
        Schema((b, a)),
        Schema((a, Channel("b", "A"))),
        Schema((a, b), scaling=ones),
        Schema((a, b), scaling=Scaling((0.0, 0.0), (1.0, np.nextafter(1, 2)))),
        Schema((a, b), center="own"),
        Schema((a, b), half_life=60.0),
        Schema.anonymous(2),
    ]

    assert len({schema.fingerprint for schema in variants}) == len(variants)


def test_lift_scales():
    """(x - offset) / scale, row by row."""
    schema = Schema((Channel("a"), Channel("b")), scaling=Scaling((10.0, -1.0), (2.0, 4.0)))

    np.testing.assert_allclose([[0.0, 0.5], [1.0, 0.25]], schema.lift([[10, 1], [12, 0]]))
    assert ("a", "b") == schema.names
    assert ("x0", "x1") == Schema.anonymous(2).names


def test_what_is_no_schema_is_refused():
    """No channel, one name twice, scales that do not fit or are not positive."""
    a = Channel("a")
    for build, message in [
        (lambda: Schema(()), "at least one channel"),
        (lambda: Schema(0), "channels must be a whole number of at least 1, got 0"),
        (lambda: Schema((a, a)), "'a' more than once"),
        (lambda: Schema((a,), scaling=Scaling((0.0, 0.0), (1.0, 1.0))), "cover 1 channels, got 2"),
        (lambda: Scaling((0.0,), (1.0, 1.0)), "1 and 2"),
        (lambda: Scaling((0.0,), (0.0,)), "positive"),
        (lambda: Scaling((np.nan,), (1.0,)), "finite"),
        (lambda: Schema((a,), half_life=0.0), "positive time"),
        (lambda: Schema((a,), center="median"), '"fleet", "own" or "none"'),
    ]:
        with pytest.raises(UsageError, match=message):
            build()
    with pytest.raises(ShapeError, match=r"\(n, 1\), got \(2, 3\)"):
        Schema((a,)).lift(np.ones((2, 3)))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'"form"',
        Schema.anonymous(3).canonical.replace(b'"form":1', b'"form":2'),
        Schema.anonymous(3).canonical.replace(b"identity", b"fourier"),
        Schema.anonymous(3).canonical.replace(b"fleet", b"elsewhere"),
        Schema.anonymous(3).canonical.replace(b'"channels":3', b'"channels":[1]'),
        Schema.anonymous(3).canonical.replace(b'"channels":3', b'"channels":-3'),
        Schema.anonymous(3).canonical[:-1] + b',"more":1}',
        b" " + Schema.anonymous(3).canonical,
        Schema.anonymous(3).canonical.replace(b'"channels":3', b'"channels":true'),
        Schema.anonymous(3).canonical.replace(b'"channels":3', b'"channels":"abc"'),
        Schema.anonymous(3).canonical.replace(b'"channels":3', b'"channels":[[1,2],[3,null]]'),
        Schema.anonymous(3).canonical.replace(b'"channels":3', b'"channels":[["\\ud800","V"]]'),
        Schema.anonymous(3).canonical.replace(b'"half_life":null', b'"half_life":"0x1p99999"'),
        b"[" * 200_000,
        Schema(8, features=QUASI).canonical.replace(b'"channels":8', b'"channels":9'),
        Schema(8, features=QUASI).canonical.replace(b'"features":8', b'"features":7'),
        Schema(8, features=QUASI).canonical.replace(b'"quasi"', b'"sobol"'),
        Schema(8, features=QUASI).canonical.replace(b'"seed":0', b'"seed":-1'),
    ],
)
def test_foreign_text_is_refused(text):
    """Anything that is not a canonical text is a peer's error."""
    with pytest.raises(PeerError, match="expected a schema's canonical text"):
        Schema.parse(text)

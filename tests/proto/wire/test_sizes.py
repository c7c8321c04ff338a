"""A sum is brought within what every receiver accepts, and nothing else is changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError, Schema, Subspace, merge
from submerge.stats.moments import Moments, pooled
from submerge_proto.wire import columns, parts
from submerge_proto.wire.sizes import LARGEST, saturated
from support.wild import wild, wild_moments
from support.wire import subspace_of

SCHEMA = Schema(4)


def read(subspace: Subspace) -> Subspace:
    """Return what a receiver has of it."""
    return columns.unpacked(columns.packed(subspace), SCHEMA.fingerprint)


@given(st.integers(0, 2**32))
def test_what_is_accepted_is_sent_on_as_it_is(seed):
    """Or else a row in a store would differ from the row in memory."""
    subspace = wild(np.random.default_rng(seed), SCHEMA, 2.0**53)

    assert saturated(subspace) is subspace


def test_too_much_weight_fades_the_whole_summary():
    """Weight, sigma, energy and bound by one factor; the mean stays."""
    heavy = subspace_of(4, [3e19, 1e19], weight=3e38)
    heavy = merge(heavy, heavy, rank=4)
    sent = read(heavy)
    factor = sent.weight / heavy.weight

    assert 0.5 < factor < 0.6
    np.testing.assert_allclose(sent.sigma, heavy.sigma * factor**0.5)
    np.testing.assert_allclose(
        [sent.energy, sent.spectral_bound], [heavy.energy * factor, heavy.spectral_bound * factor]
    )
    np.testing.assert_array_equal(sent.mean, heavy.mean)


def test_energy_is_at_least_what_sigma_holds():
    """Columns a little too long, energy a little too low: each accepted, and their sum as well."""
    part = subspace_of(4, [1.0, 1.0], lost=0.0, schema=SCHEMA)
    longer = part.basis * np.float32(1 + 4.9e-6)
    part = read(replace(part, basis=longer, energy=part.energy * (1 - 9.9e-6), spectral_bound=0.0))
    both = merge(part, part, rank=4)
    assert both.energy < float(both.sigma @ both.sigma) * (1 - 1e-5)

    assert read(both).energy == float(both.sigma @ both.sigma)


@pytest.mark.parametrize("center", ["fleet", "own"])
def test_mean_squares_at_the_bound_stay_within_it(center):
    """Rounding passes the bound in one merge of five: all readings are then a little smaller."""
    over = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        parts_of_all = []
        for _ in range(3):
            mean = rng.uniform(-1, 1, 4) * 1e19
            weight = float(rng.integers(1, 10**9))
            part = replace(subspace_of(4, [], weight=weight, schema=SCHEMA), mean=mean)
            energy = weight * (4 * LARGEST - float(mean @ mean))
            parts_of_all.append(_largest(part, energy))
        merged = merge(*parts_of_all, rank=4, center=center)
        over += saturated(merged) is not merged
        np.testing.assert_allclose(read(merged).mean, merged.mean, rtol=1e-8)
    assert over or center == "own"


def _largest(part: Subspace, energy: float) -> Subspace:
    """Return a part with that energy, or just so much less that it is accepted."""
    for _ in range(99):
        try:
            return read(replace(part, energy=energy))
        except PeerError:
            energy *= 1 - 2e-16
    raise AssertionError("no such energy is accepted")


def test_a_mean_of_zero_at_the_bound():
    """All of the mean square is energy."""
    part = replace(subspace_of(4, [], weight=1.0, schema=SCHEMA), mean=np.zeros(4))

    assert read(replace(part, energy=4.1 * LARGEST)).energy < 4 * LARGEST


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_moments_at_the_bound_can_be_pooled_and_sent(seed, n):
    """Four levels, one after another."""
    rng = np.random.default_rng(seed)
    children: list[Moments] = []
    while len(children) < n:
        try:
            children.append(parts.MOMENTS.read(parts.MOMENTS.made(wild_moments(rng, 9, 2**53))))
        except PeerError:
            continue  # a little too wild
    for _ in range(4):
        above = parts.MOMENTS.read(parts.MOMENTS.made(pooled(*children)))
        children = [above, *children[1:]]

"""Bounded influence: a node moves a model no further than an honest one of its age could."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from submerge import Schema, Subspace
from submerge.aggregator.rows.influence import ChildBounds, ChildSummary, InfluenceRule
from submerge.robust.influence import (
    Readings,
    Spread,
    allowed_energy,
    bound_of,
    effective_age,
    node_excess,
    row_rates,
    spread,
)
from support import influence, liars
from support.influence import DAY, RATE, Told, displaced, placed, same_bytes
from support.liars import RANK

DIM = 6
SCHEMA = Schema.anonymous(DIM)
LIAR = "liar"

sizes = st.floats(1e-3, 1e3)
"""Of numbers that are not forged."""


def told(node: Told) -> Subspace:
    """Return a summary that says so: all energy along one direction."""
    basis = np.eye(len(node.mean))[:, :1].astype(np.float32)
    sigma = np.array([node.energy**0.5]) if node.energy else np.empty(0)
    basis = basis[:, : len(sigma)]
    return Subspace(SCHEMA.fingerprint, basis, sigma, node.mean, node.rows, node.energy, 0.0)


@st.composite
def nodes(draw, least: int = 3, most: int = 14):
    """Draw what some nodes have reported: honest, forged, young, old, silent."""
    found = {}
    for i in range(draw(st.integers(least, most))):
        age = draw(st.sampled_from([0.0, 60.0, DAY - 1, DAY, 3 * DAY, 1000 * DAY]))
        rows = draw(sizes) * max(age, 60.0) * RATE
        mean = draw(st.sampled_from([0.0, 0.5, 30.0])) * np.eye(DIM)[i % DIM]
        energy = rows * draw(st.sampled_from([0.0, 0.5, 1.0, 2.9, 3.1, 50.0]))
        found[f"n{i}"] = Told(rows, energy, mean, age, draw(st.sampled_from([0.0, 600.0, 1e9])))
    return found


@settings(max_examples=30)
@given(nodes(), st.sampled_from([None, 600.0, 40 * DAY]))
def test_the_fast_bounds_are_the_slow_ones(found, half_life):
    """For any fleet, whatever its ages, rates, energies and silences."""
    schema = replace(SCHEMA, half_life=half_life)
    bounds = ChildBounds(schema, InfluenceRule())
    bounds.measure(
        {name: ChildSummary(told(node), True, 1.0, -node.silent) for name, node in found.items()}
    )
    fast = bounds.bounds(lambda name: found[name].age, 0.0)
    slow = influence.factors(found, half_life=half_life)

    for name, factor in slow.items():
        seen = fast[name].factor if name in fast else 1.0
        assert seen == pytest.approx(factor, rel=1e-8)


# -- honest fleets ---------------------------------------------------------------------


def honest(seed: int, n: int, ages: list[float], louder: list[float]) -> dict[str, Subspace]:
    """Summaries of nodes of these ages, whose energies are within 3 times the median."""
    rng = np.random.default_rng(seed)
    parts = {}
    for i in range(n):
        X = rng.standard_normal((40, DIM)) * np.arange(DIM, 0, -1)
        part = Subspace.of(X * louder[i] ** 0.5, SCHEMA, rank=4)
        parts[f"n{i}"] = part.faded(RATE * ages[i] / part.weight)
    return parts


@settings(max_examples=10)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 1000), min_size=1, max_size=40),
    st.data(),
)
def test_an_honest_fleet_is_untouched(seed, ages, data):
    """Ages 1 to 1000, energies within 3 times the median: the same bytes with and without."""
    n = len(ages)
    louder = data.draw(st.lists(st.floats(0.2, 2.0), min_size=n, max_size=n))
    seconds = [DAY * age for age in ages]
    parts = honest(seed, n, seconds, louder)
    energies = [
        part.energy / part.weight + float(np.sum((part.mean - _middle(parts)) ** 2))
        for part in parts.values()
    ]
    assume(max(energies) <= 3 * np.median(energies))
    heard = dict(zip(parts, seconds, strict=True))
    with_bounds, placement = placed(parts, heard, schema=SCHEMA)
    without, _ = placed(parts, heard, schema=SCHEMA, bounds=False)

    assert {} == placement.bounds
    assert same_bytes(without, with_bounds)


def _middle(parts) -> np.ndarray:
    return np.median([part.mean for part in parts.values()], axis=0)


@settings(max_examples=10)
@given(st.permutations(range(12)), st.integers(0, 1000))
def test_no_order_matters(order, seed):
    """To the last bit."""
    parts, ages = lying(seed, lambda part, *_: part.faded(50.0))
    names = sorted(parts)
    one, _ = placed(parts, ages, schema=SCHEMA)
    other, _ = placed({names[i]: parts[names[i]] for i in order}, ages, schema=SCHEMA)

    assert same_bytes(one, other)


def lying(seed: int, lie, *, n: int = 12, age: float = 30 * DAY) -> tuple[dict, dict]:
    """A fleet of ages of 1 to 1000 days, whose node 0 lies; return summaries and ages."""
    rng = np.random.default_rng(seed)
    ages = [age, *(DAY * np.round(np.exp(rng.uniform(0, np.log(1000), n - 1))))]
    parts = honest(seed, n, ages, [1.0] * n)
    parts["n0"] = lie(parts["n0"], rng)
    return parts, dict(zip(parts, map(float, ages), strict=True))


# -- one liar ----------------------------------------------------------------------------


def forged(part: Subspace, *, rows: float, energy: float, shift: float, rng) -> Subspace:
    """A summary of so many times the readings and the energy, its mean as far off."""
    k = int(rng.integers(1, 5))
    basis = np.linalg.qr(rng.standard_normal((DIM, k)))[0]
    sigma = np.sort(rng.uniform(0.1, 1, k))[::-1]
    total = part.energy * energy
    sigma *= (total / float(sigma @ sigma)) ** 0.5
    mean = part.mean + shift * rng.standard_normal(DIM)
    return Subspace(SCHEMA.fingerprint, basis, sigma, mean, part.weight * rows, total, total)


@settings(max_examples=10)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0.01, 1.0, 1.2, 30.0, 1e30]),
    st.sampled_from([0.0, 1.0, 3.0, 30.0, 1e30]),
    st.sampled_from([0.0, 1.0, 100.0, 1e30]),
)
def test_a_liar_has_no_more_than_an_honest_node_could(seed, rows, energy, shift):
    """No more energy about the middle than 3 times the median at its age, nor a larger shift."""
    rng = np.random.default_rng(seed)
    lie = lambda part, _: forged(part, rows=rows, energy=energy, shift=shift, rng=rng)  # noqa: E731
    parts, ages = lying(seed, lie)
    _, placement = placed(parts, ages, schema=SCHEMA)
    factor = placement.bounds["n0"].factor if "n0" in placement.bounds else 1.0
    middle = _middle(parts)
    offset = float(np.sum((parts["n0"].mean - middle) ** 2))
    usual = np.median(
        [p.energy / p.weight + float(np.sum((p.mean - middle) ** 2)) for p in parts.values()]
    )
    earned, held = RATE * ages["n0"], parts["n0"].weight * factor

    assert held <= 1.25 * earned * (1 + 1e-6)
    assert factor * parts["n0"].energy + held * offset <= 3 * usual * earned * (1 + 1e-6)
    assert held * offset**0.5 <= earned * (3 * usual) ** 0.5 * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("variances", [liars.VARIANCES, np.array([1.3, 1.2, 1.1, 1.0])])
@pytest.mark.parametrize("how", liars.NAMED | liars.OTHERS | liars.CLEVER)
def test_a_liar_turns_a_model_no_further_than_the_most_energetic_honest_node(how, variances):
    """1 of 40, the same age: 3 times the median energy, in the direction that does most harm."""
    attack = (liars.NAMED | liars.OTHERS | liars.CLEVER)[how]
    fleet = liars.fleet(3, lambda _: 1000, nodes=40, variances=variances)
    ages = dict.fromkeys(fleet.parts, 1000 / RATE)
    parts, who = fleet.lying(attack, 1)
    (liar,) = who
    others = {name: part for name, part in parts.items() if name != liar}
    before, _ = placed(others, ages)
    degrees, shift = displaced(before, placed(parts, ages)[0])
    worst = [
        displaced(before, placed(others | {liar: each}, ages, bounds=False)[0])
        for each in loudest(fleet, fleet.parts[liar])
    ]

    assert degrees <= max(each[0] for each in worst) + 1e-3
    assert shift <= max(each[1] for each in worst) + 1e-6


def loudest(fleet: liars.Fleet, part: Subspace) -> list[Subspace]:
    """Honest nodes could be these: 3 times the median energy, in one direction or in the mean."""
    median = float(np.median([p.energy / p.weight for p in fleet.parts.values()]))
    total = 3 * median * part.weight
    found = []
    for degrees in range(0, 95, 5):
        u = liars.turned(fleet, degrees, 1)[:, -1:]
        basis, sigma = u.astype(np.float32), np.array([total**0.5])
        found.append(replace(part, basis=basis, sigma=sigma, energy=total, spectral_bound=0.0))
        shifted = part.mean + (3 * median) ** 0.5 * u[:, 0]
        nothing = np.empty((len(part.mean), 0), np.float32), np.empty(0)
        found.append(Subspace(part.schema, *nothing, shifted, part.weight, 0.0, 0.0))
    return found


def test_a_plain_group_bears_a_kit_with_twenty_times_the_sigma():
    """Honest counts, 1 of 40: 90 degrees without bounds, and next to none with them."""
    fleet = liars.fleet(1, lambda _: 1000, nodes=40)
    ages = dict.fromkeys(fleet.parts, 1000 / RATE)
    parts, who = fleet.lying(
        lambda p, f, _: liars.message(p, f.off[:, :RANK], 400 * liars.VARIANCES), 1
    )
    before, _ = placed({name: p for name, p in parts.items() if name not in who}, ages)

    assert displaced(before, placed(parts, ages, bounds=False)[0])[0] > 85
    bounded, placement = placed(parts, ages)
    assert who == placement.bounds.keys()
    assert displaced(before, bounded)[0] < 1
    assert same_bytes(
        placed(parts, ages, trusted=("node-*",))[0], placed(parts, ages, bounds=False)[0]
    )


# -- ages, rates, spreads ------------------------------------------------------------------


@settings(max_examples=10)
@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=6, unique=True), st.integers(0, 99))
def test_a_node_counts_for_more_as_it_ages(ages, seed):
    """Readings that an honest node cannot have yet weigh more each day, up to all of them."""
    factors = []
    for age in sorted(ages):
        parts, heard = lying(seed, lambda part, _: part.faded(50 * DAY / part.weight))
        heard["n0"] = float(age)
        _, placement = placed(parts, heard, schema=SCHEMA)
        factors.append(placement.bounds["n0"].factor if "n0" in placement.bounds else 1.0)

    assert factors == sorted(factors)


def test_no_bound_until_five_nodes_are_known():
    """Four old ones, and any number of young ones, say nothing about a row rate."""
    parts, ages = lying(0, lambda part, _: part.faded(1e6))
    for name in sorted(ages)[:8]:
        ages[name] = DAY - 1
    assert {} == placed(parts, ages, schema=SCHEMA)[1].bounds
    ages["n1"] = DAY
    assert "n0" in placed(parts, ages, schema=SCHEMA)[1].bounds


@given(st.integers(6, 30), st.floats(2, 1e9))
def test_no_node_raises_its_own_rate_nor_that_of_others(n, times):
    """Nor do two, of six or more; five others do."""
    rows, ages = np.ones(n), np.ones(n)
    known = np.ones(n, dtype=bool)
    rows[:2] = times
    assert (row_rates(rows, ages, ages, known) == 1).all()
    if n >= 11:
        rows[:6] = times
        assert (row_rates(rows, ages, ages, known)[:6] == times).all()


def test_five_others_like_it_let_a_loud_node_count_in_full():
    """Beyond three times the median; four do not."""
    quiet = np.ones(20)
    for loud, allowed in ((5, 3.0), (6, 1.25 * 10.0)):
        energy = np.concatenate([np.full(loud, 10.0), quiet])
        assert allowed_energy(energy)[0] == allowed


def test_a_silent_node_keeps_its_rate():
    """A week away is not a week at work; a clock that is years off halves its age at most."""
    rows, ages, known = np.full(7, 10.0), np.full(7, 20.0), np.ones(7, dtype=bool)
    assert (row_rates(rows, ages, np.full(7, 10.0), known) == 1).all()
    assert (row_rates(rows, ages, np.full(7, -1e9), known) == 1).all()


def test_forged_numbers_give_a_bound_and_no_error():
    """Whatever fits into a float64."""
    part = spread(
        [replace(told(Told(1.0, 1.0, np.full(DIM, 1e69), DAY)), weight=1e-300, energy=1e139)] * 5,
        np.ones(5),
        means=True,
    )
    excess = node_excess(part, Readings.of(np.zeros(5), 100.0))
    bound = bound_of(np.array([np.inf, 1e300, 2.0]).clip(max=1e300))

    assert np.isfinite(excess).all()
    assert bound is not None
    assert bound.factor > 0
    assert bound_of(np.ones(3)) is None


def test_the_age_that_counts_is_what_is_left_of_it():
    """A node of one reading a second, faded each second."""
    for half_life in (50.0, 1e4):
        weight = 0.0
        for _ in range(1000):
            weight = weight * 2 ** (-1 / half_life) + 2 ** (-0.5 / half_life)
        assert effective_age(np.array([1000.0]), half_life)[0] == pytest.approx(weight, rel=1e-3)


def test_the_tolerance_of_readings_moves_no_mean():
    """A quarter more readings, all of the energy in the mean: they shift it no further."""
    rows, ones = np.array([1.25, *[1.0] * 9]), np.ones(10)
    part = Spread(1000 * rows, 3 * ones, np.array([3.0, *[0.0] * 9]))
    part = part._replace(energy=np.array([3 / 1.25, *[1.0] * 9]), offset=part.offset / 1.25)
    excess = node_excess(part, Readings.of(1000 * ones, 100.0))

    assert excess[0] == pytest.approx([1.0, 1.0, 1.25**0.5])
    assert (excess[1:] <= 1).all()


def test_aggregators_are_bounded_by_energy_per_sample_alone():
    """Five of them or more; a site may have any number of clients."""
    parts, ages = lying(0, lambda part, _: part.faded(1e6), n=6)
    sites = frozenset(parts)
    assert {} == placed(parts, ages, schema=SCHEMA, sites=sites)[1].bounds
    parts["n0"] = replace(parts["n0"], energy=400 * parts["n0"].energy)
    assert {"n0"} == placed(parts, ages, schema=SCHEMA, sites=sites)[1].bounds.keys()
    few = {name: parts[name] for name in sorted(parts)[:4]}
    assert {} == placed(few, ages, schema=SCHEMA, sites=sites)[1].bounds


def test_means_do_not_count_where_each_node_has_its_own():
    """center = "own": a fleet of very different means is honest."""
    own = replace(SCHEMA, center="own")
    parts, ages = lying(0, lambda part, _: replace(part, mean=part.mean + 1e6))
    there = {name: replace(part, schema=own.fingerprint) for name, part in parts.items()}

    assert {"n0"} == placed(parts, ages, schema=SCHEMA)[1].bounds.keys()
    assert {} == placed(there, ages, schema=own)[1].bounds


@pytest.mark.parametrize("fence", [False, True])
@pytest.mark.parametrize("how", liars.NAMED | liars.OTHERS | liars.CLEVER)
def test_one_of_forty_turns_a_robust_group_by_five_degrees_at_most(how, fence):
    """And moves its mean by half a deviation, as a client or with a fence, also without bounds."""
    attack = (liars.NAMED | liars.OTHERS | liars.CLEVER)[how]
    fleet = liars.fleet(5, nodes=40)
    parts, who = fleet.lying(attack, 1)
    others = {name: part for name, part in parts.items() if name not in who}
    ages = dict.fromkeys(parts, 300 / RATE)
    sites = frozenset(who) if fence else frozenset()
    before, _ = placed(others, ages, bounds=False)
    after, _ = placed(parts, ages, robust=True, bounds=False, sites=sites)
    degrees, shift = displaced(before, after)

    assert degrees <= 5
    assert shift <= 0.5


def test_the_words_of_a_bound_say_how_much_and_why():
    """For a person who reads the list of nodes."""
    bound = bound_of(np.array([2.0, 40.0, 0.5]))

    assert bound is not None
    assert bound.words == (
        "counts 0.025: 2 times the readings of a node of its age, 40 times the energy allowed"
    )

"""Bounded influence: a node moves a model no further than an honest one of its age could."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from submerge import Schema, Subspace
from submerge.aggregator.rows.influence import ChildBounds, ChildSummary, InfluenceRule
from submerge.pca.factor import Precision
from submerge.pca.score import spe
from submerge.pca.whole_scatter import WholeScatter
from submerge.robust.influence import (
    LIKE,
    Loudness,
    Readings,
    Spread,
    allowed_energy,
    bound_of,
    by_chance,
    effective_age,
    loudness,
    node_excess,
    row_rates,
    spread,
)
from support import influence, liars, oracle
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
    parts = [told(node) for _, node in sorted(found.items())]
    ratio, most = slow_loudness(parts, means=True)
    ratios = dict(zip(sorted(found), ratio / most, strict=True))
    slow = influence.factors(found, ratios, half_life=half_life)

    for name, factor in slow.items():
        seen = fast[name].factor if name in fast else 1.0
        assert seen == pytest.approx(factor, rel=1e-6)


def slow_loudness(parts: list, *, means: bool) -> tuple[np.ndarray, np.ndarray]:
    """Each child's variance over that of all, by whole scatters and their eigenvalues."""
    n, dim = len(parts), len(parts[0].mean)
    rows = np.array([part.weight for part in parts])
    voices, middle = np.minimum(rows, np.median(rows)), np.median([p.mean for p in parts], axis=0)
    scatters, factors = [], np.ones(n)
    for part in parts:
        off = (part.mean - middle) * means
        held = part.scatter if isinstance(part, WholeScatter) else oracle.scatter_of(part)
        scatters.append(held / part.weight + np.outer(off, off))
    rests = [max(p.energy - np.trace(oracle.scatter_of(p)), 0) / p.weight / max(dim - p.rank, 1)
             if isinstance(p, Subspace) and p.rank < dim else 0.0 for p in parts]  # fmt: skip
    chance = np.array([(1 + (dim / max(each, 1.0)) ** 0.5) ** 2 for each in rows])
    for _ in range(12):
        shares = voices * factors / (voices * factors).sum()
        total = sum(share * each for share, each in zip(shares, scatters, strict=True))
        rest = 0.01 * np.trace(total) / dim + float(shares @ rests) + 1e-300
        total = total + rest * np.eye(dim)
        ratio = np.zeros(n)
        for i, each in enumerate(scatters):
            values = np.linalg.eigvals(np.linalg.solve(total, each)).real
            ratio[i] = float(values.max())
        heard = ratio / chance
        typical = 3 * float(np.median([each for each in heard if each > 0] or [0.0]))
        most = np.full(n, typical)
        for i in range(n):
            louder = sorted(np.delete(heard, i), reverse=True)
            if n > LIKE and louder[LIKE - 1] > typical:
                most[i] = 1.25 * louder[LIKE - 1]
        most = 1.25 * most
        new = np.minimum(1.0, np.maximum(most, 1e-300) / np.maximum(heard, 1e-300))
        settled = np.abs(new / factors - 1).max() <= 1e-2
        factors = np.maximum(new, 1e-300)
        if settled:
            break
    return ratio, np.maximum(most, 1e-300)


@pytest.mark.parametrize("how", [{}, {"turned": 0.5}, {"shifted": 3.0}, {"louder": 0.5}])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("liars_of", [0, 1, 3])
def test_the_fast_variances_are_the_slow_ones(how, whole, liars_of):
    """Of directions and of whole scatters, honest or not, with the shifts of means or without."""
    fleet = liars.fleet(4, lambda rng: int(rng.integers(20, 900)), nodes=12, dim=9, **how)
    parts, _ = fleet.lying(liars.OTHERS["all energy in one direction"], liars_of)
    some = [WholeScatter.of(each) if whole else each for each in parts.values()]
    for means in (True, False):
        fast = loudness(some, np.array([each.weight for each in some]), means=means)
        ratio, most = slow_loudness(some, means=means)

        assert ratio == pytest.approx(list(fast.ratio), rel=0.08)
        assert most == pytest.approx(list(fast.most), rel=0.04)


def test_wide_children_are_held_against_each_other_along_the_leading_directions():
    """Beyond 128 columns by a span: within a tenth of what the whole scatter says."""
    fleet = liars.fleet(2, lambda _: 600, nodes=20, dim=129)
    parts, who = fleet.lying(liars.OTHERS["all energy in one direction"], 1)
    some, rows = list(parts.values()), np.full(20, 600.0)
    fast, (ratio, _) = loudness(some, rows, means=True), slow_loudness(some, means=True)
    liar = np.array([name in who for name in parts])

    assert ratio[liar] == pytest.approx(list(fast.ratio[liar]), rel=0.1)
    assert ratio[~liar] == pytest.approx(list(fast.ratio[~liar]), rel=0.2)
    beyond = fast.ratio / (fast.most * by_chance(rows, 129))
    assert (beyond[~liar] < 1).all()
    assert (beyond[liar] > 20).all()


def quiet(n: int) -> Loudness:
    """Children that are no louder than others."""
    return Loudness(np.zeros(n), np.ones(n), DIM)


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


# -- what a liar hides -------------------------------------------------------------------

WEAK = np.array([4.0, 3.0, 2.0, 0.2])
"""A spectrum whose last direction is weak: it is the first that a liar takes."""


def seen(model: Subspace, fleet: liars.Fleet, deviations: float, rng) -> tuple[float, float]:
    """Return the shares of faults found at another node, by distance and by SPE, one in 1000."""
    rows = rng.standard_normal((1500, RANK)) * np.sqrt(WEAK) @ fleet.true.T
    rows += liars.NOISE * rng.standard_normal(rows.shape)
    faulty = rows[:500] + deviations * liars.NOISE * fleet.off[:, 0]
    shown, precision = model.truncated(RANK), Precision.of(model)
    scores = (lambda X: precision.measure(X - model.mean)[1]), (lambda X: spe(X, shown))
    one, other = (float((f(faulty) > np.quantile(f(rows), 0.999)).mean()) for f in scores)
    return one, other


@pytest.mark.parametrize(("count", "times"), [(1, 1.0), (1, 2.99), (3, 2.99)])
def test_a_liar_hides_no_faults_at_other_nodes(count, times):
    """One and three of 40, the energy of an honest node and 2.99 times that: ten deviations."""
    fleet = liars.fleet(7, lambda _: 1000, nodes=40, variances=WEAK)
    ages, usual = dict.fromkeys(fleet.parts, 1000 / RATE), times * (WEAK.sum() + 26 * 0.04)
    parts, _ = fleet.lying(lambda p, f, _: liars.message(p, f.off[:, :1], [usual / 1.02]), count)
    honest, _ = placed(fleet.parts, ages)
    model, placement = placed(parts, ages)
    rng = np.random.default_rng(0)
    usually, now = (seen(each, fleet, 10.0, rng) for each in (honest, model))

    assert min(now) >= 0.9 * min(usually) > 0.85
    assert all(bound.variance > 1 for bound in placement.bounds.values())
    assert displaced(honest, model)[0] < 5


@pytest.mark.parametrize("least", [1, 1000])
@pytest.mark.parametrize(
    "how", [{"turned": 0.2}, {"turned": 0.5, "shifted": 3.0}, {"shifted": 1.0}, {"louder": 0.1}]
)
def test_machines_that_differ_are_untouched(how, least):
    """Each with directions, means and amplitudes of its own, of one age and of 1 to 1,000 days."""
    rows = lambda rng: round(10 * np.exp(rng.uniform(np.log(least), np.log(1000))))  # noqa: E731
    fleet = liars.fleet(least, rows, nodes=40, **how)
    ages = {name: part.weight * DAY / 10 for name, part in fleet.parts.items()}

    assert {} == placed(fleet.parts, ages)[1].bounds


def test_a_channel_that_only_one_node_moves_does_not_shut_it_out():
    """Its rows count for less, and not for nothing: a hundredth of a column's mean is allowed."""
    parts, ages = lying(0, lambda part, _: part)
    rng = np.random.default_rng(0)
    for name in parts:
        X = rng.standard_normal((400, DIM)) * [3, 2, 1, 1, 1, 1.0 if name == "n0" else 0.0]
        parts[name] = Subspace.of(X, SCHEMA, rank=DIM).faded(parts[name].weight / 400)
    _, placement = placed(parts, ages, schema=SCHEMA)

    assert {"n0"} == placement.bounds.keys()
    assert 0.01 < placement.bounds["n0"].factor < 0.2


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
    loud = loudness(
        [replace(told(Told(1.0, 1.0, np.full(DIM, 1e69), DAY)), weight=1e-300)] * 5,
        np.ones(5),
        means=True,
    )
    excess = node_excess(part, loud, Readings.of(np.zeros(5), 100.0))
    bound = bound_of(np.array([np.inf, 1e300, 2.0, 1.0]).clip(max=1e300))

    assert np.isfinite(excess).all()
    assert bound is not None
    assert bound.factor > 0
    assert bound_of(np.ones(4)) is None


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
    excess = node_excess(part, quiet(10), Readings.of(1000 * ones, 100.0))

    assert excess[0] == pytest.approx([1.0, 1.0, 1.25**0.5, 0.0])
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
    bound = bound_of(np.array([2.0, 40.0, 0.5, 6.0]))

    assert bound is not None
    assert bound.words == (
        "counts 0.025: 2 times the readings of a node of its age, 40 times the energy allowed,"
        " 6 times the variance allowed along a direction, by that of the others"
    )

"""Robust merging: liars leave, honest nodes stay, and nothing but the rows decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import MergeTree, Schema, Subspace
from submerge.robust.outliers import (
    ENERGY,
    LEAST,
    NO_OUTLIERS,
    WEIGHT,
    Projector,
    of_points,
    of_projectors,
    screen,
)
from support import liars, oracle
from support.liars import CLEVER, NAMED, OTHERS, RANK

HARMLESS = {
    "stuck at 0",
    "bounds that lie, honest directions",
    "huge energy, honest directions",
}
"""Lies that turn no direction."""


def merged(parts, verdict) -> np.ndarray:
    """The model's directions once the verdict is carried out."""
    left = {
        name: part.faded(verdict.factors.get(name, 1.0))
        for name, part in parts.items()
        if name not in verdict.outliers
    }
    return liars.merged(left)


def honest_of(parts, who) -> np.ndarray:
    """The directions of the model that honest nodes would have had."""
    return liars.merged({name: part for name, part in parts.items() if name not in who})


# -- geometric medians -----------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**16), st.integers(1, 12), st.integers(1, 6))
def test_the_median_of_points_is_the_nearest_to_all(seed, n, dim):
    """No farther from all points together than its slow twin, but for the least distance.

    With it the sum is at most n `TOUCHING` median distances more: sqrt(d^2 + t^2) <= d + t. And n
    times the median is at most twice the sum, or a little more where n is odd.
    """
    rng = np.random.default_rng(seed)
    points = 1e3 + rng.standard_normal((n, dim)) * 10.0 ** rng.integers(-2, 3, (n, 1))

    found = oracle.summed_distance(points, of_points(points))

    assert found <= oracle.summed_distance(points, oracle.geometric_median(points)) * 1.003


@settings(max_examples=25)
@given(st.integers(0, 2**16), st.integers(1, 9), st.integers(1, 8))
def test_the_median_of_projectors_is_that_of_their_matrices(seed, n, dim):
    """As if all dim x dim matrices had been formed: no farther from them together."""
    rng = np.random.default_rng(seed)
    members = []
    for _ in range(n):
        k = int(rng.integers(1, dim + 1))
        basis = np.linalg.qr(rng.standard_normal((dim, k)))[0]
        members.append(Projector(basis, rng.uniform(0.1, 1, k)))
    points = np.array([((m.basis * m.shares) @ m.basis.T).ravel() for m in members])

    found = oracle.summed_distance(points, of_projectors(members).within(np.eye(dim)).ravel())

    slow = oracle.summed_distance(points, oracle.geometric_median(points))
    assert found <= slow * 1.0001 + 2e-3  # a member that is the median counts as so near


def test_the_median_is_looked_for_where_many_are():
    """In 80 dimensions, on a span of some 20: two in three share a plane, each has its own too."""
    rng = np.random.default_rng(0)
    common, members = np.linalg.qr(rng.standard_normal((80, 2)))[0], []
    for i in range(30):
        first = common if i % 3 else rng.standard_normal((80, 2))
        basis = np.linalg.qr(np.hstack([first, rng.standard_normal((80, 1))]))[0]
        members.append(Projector(basis, np.ones(3)))
    points = np.array([(m.basis @ m.basis.T).ravel() for m in members])

    middle = of_projectors(members)

    assert middle.span.shape[1] < 25
    slow = oracle.geometric_median(points).reshape(80, 80)
    assert np.linalg.norm(middle.within(np.eye(80)) - slow, 2) < 0.05
    assert oracle.angle(common, np.linalg.eigh(slow)[1][:, -2:]) < 3


# -- liars -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 10, 20])
@pytest.mark.parametrize("how", [how for how in NAMED | OTHERS if how not in HARMLESS])
def test_liars_are_left_out_and_nobody_else(how, number):
    """Up to a third of the fleet, together or each on its own."""
    parts, who = liars.fleet(1).lying((NAMED | OTHERS)[how], number)

    assert who == screen(parts, rank=RANK).outliers.keys()


@pytest.mark.parametrize("how", NAMED)
def test_twenty_colluders_turn_the_model_by_three_degrees_at_most(how):
    """Where the plain merge is at 90."""
    parts, who = liars.fleet(2).lying(NAMED[how], 20)

    assert oracle.angle(honest_of(parts, who), liars.merged(parts)) > 85
    assert oracle.angle(honest_of(parts, who), merged(parts, screen(parts, rank=RANK))) <= 3


@pytest.mark.parametrize("how", sorted(HARMLESS))
def test_lies_along_honest_directions_are_capped(how):
    """They stay in: a stuck sensor, an amplitude that cannot be; directions stay as they are."""
    parts, who = liars.fleet(3).lying(OTHERS[how], 20)

    verdict = screen(parts, rank=RANK)

    assert not verdict.outliers
    assert oracle.angle(honest_of(parts, who), merged(parts, verdict)) < 1


@pytest.mark.parametrize("how", CLEVER)
def test_clever_liars_turn_the_model_by_no_more_than_they_may(how):
    """A third of the fleet, below every limit: the harm is bounded, and is done."""
    parts, who = liars.fleet(4).lying(CLEVER[how], 20)

    assert oracle.angle(honest_of(parts, who), merged(parts, screen(parts, rank=RANK))) < 15


def test_who_is_left_out_moves_nothing():
    """The model is, byte by byte, what it would be had they never been."""
    parts, who = liars.fleet(5).lying(NAMED["huge sigma"], 20)
    tree, without = MergeTree(rank=9), MergeTree(rank=9)
    verdict = screen(parts, rank=RANK)
    alone = screen({name: parts[name] for name in parts.keys() - who}, rank=RANK)
    for name, part in parts.items():
        if name not in verdict.outliers:
            tree[name] = part.faded(verdict.factors.get(name, 1.0))
        if name not in who:
            without[name] = part.faded(alone.factors.get(name, 1.0))

    assert without.root().basis.tobytes() == tree.root().basis.tobytes()
    assert without.root().energy == tree.root().energy


@pytest.mark.parametrize("claims", ["weight", "energy"])
def test_nobody_counts_for_more_than_the_cap(claims):
    """An honest direction, and a million times the weight or the energy."""
    parts = liars.fleet(6, lambda _: 200).parts
    part = parts["node-07"]
    if claims == "weight":
        part = part.faded(1e6)
    else:
        part = replace(part, sigma=1e3 * part.sigma, energy=1e6 * part.energy)
    most = WEIGHT if claims == "weight" else ENERGY
    typical = np.median([each.energy for each in parts.values()])

    verdict = screen(parts | {"node-07": part}, rank=RANK)

    assert {"node-07"} == verdict.factors.keys()
    assert pytest.approx(most, rel=0.1) == part.energy * verdict.factors["node-07"] / typical


# -- all are honest --------------------------------------------------------------------


@settings(max_examples=30)
@given(
    st.integers(0, 2**16),
    st.integers(LEAST, 25),
    st.sampled_from([(2, 20), (20, 300), (300, 301), (5, 2000)]),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 10.0]),
)
def test_honest_nodes_of_one_law_all_stay(seed, nodes, rows, noise, turned, shifted):
    """Few rows or many, little noise or much, machines that differ, means that differ."""
    fleet = liars.fleet(
        seed,
        lambda rng: int(np.exp(rng.uniform(*np.log(rows)))),
        nodes=nodes,
        noise=noise,
        turned=turned,
        shifted=shifted,
    )

    # One of the fleet may be an outlier by chance; never several.
    assert len(screen(fleet.parts, rank=RANK).outliers) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_it_costs_nothing_when_nobody_lies(seed):
    """At most a tenth of a degree."""
    parts = liars.fleet(seed).parts

    verdict = screen(parts, rank=RANK)

    assert not verdict.outliers
    assert oracle.angle(liars.merged(parts), merged(parts, verdict)) <= 0.1


def test_a_fleet_without_a_gap_is_left_alone():
    """With noise in all directions no child has the right ones."""
    fleet = liars.fleet(0, variances=np.ones(30), noise=0.0)

    assert screen(fleet.parts, rank=RANK) == NO_OUTLIERS


def test_a_node_that_lacks_a_direction_is_no_liar():
    """A pump that stands still varies along fewer."""
    fleet = liars.fleet(7)
    part = fleet.parts["node-03"]
    still = liars.message(part, fleet.true[:, :2], liars.VARIANCES[:2])

    assert not screen(fleet.parts | {"node-03": still}, rank=RANK).outliers


def test_of_two_kinds_the_smaller_is_left_out():
    """Two kinds of pumps in one group, 36 and 24: it cannot know that they are honest."""
    fleet = liars.fleet(8)
    parts, others = fleet.lying(NAMED["orthogonal, in bounds"], 24)

    assert others == screen(parts, rank=RANK).outliers.keys()


def test_between_two_halves_nobody_decides():
    """30 against 30: all stay."""
    parts, _ = liars.fleet(8).lying(NAMED["orthogonal, in bounds"], 30)

    assert not screen(parts, rank=RANK).outliers


@pytest.mark.parametrize("nodes", range(LEAST))
def test_below_three_nodes_nobody_is_judged(nodes):
    """One of two is a liar: which?"""
    fleet = liars.fleet(0, nodes=2)
    parts, _ = fleet.lying(NAMED["huge sigma"], 1)

    assert screen(dict(sorted(parts.items())[:nodes]), rank=RANK) == NO_OUTLIERS


def test_young_nodes_are_not_held_to_directions_that_they_cannot_know():
    """Half of the fleet has 3 rows: their directions are some of the right ones, mixed."""
    fleet = liars.fleet(9, lambda rng: 3 if rng.random() < 0.4 else 300, noise=1.0)

    assert not screen(fleet.parts, rank=RANK).outliers


# -- of the rows alone -------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(0, 99), st.integers(0, 8), st.randoms(use_true_random=False))
def test_the_order_does_not_matter(seed, number, random):
    """To the last bit."""
    parts, _ = liars.fleet(seed, nodes=12).lying(CLEVER["turned by 14 degrees"], number)
    names = list(parts)
    random.shuffle(names)

    assert screen(parts, rank=RANK) == screen({name: parts[name] for name in names}, rank=RANK)


@settings(max_examples=10)
@given(st.integers(0, 99), st.sampled_from([2.0**-40, 2.0**30]), st.sampled_from([2.0**-60, 64.0]))
def test_units_do_not_matter(seed, scale, fading):
    """Readings in other units, rows faded to another time: the same verdict."""
    parts, _ = liars.fleet(seed, nodes=12).lying(NAMED["huge sigma"], 3)
    scaled = {
        name: replace(
            part,
            sigma=scale * part.sigma,
            mean=scale * part.mean,
            energy=scale**2 * part.energy,
            spectral_bound=scale**2 * part.spectral_bound,
        ).faded(fading)
        for name, part in parts.items()
    }

    one, other = screen(parts, rank=RANK), screen(scaled, rank=RANK, unit=fading)

    assert one.outliers.keys() == other.outliers.keys()
    assert len(one.outliers) == 3
    assert one.factors.keys() == other.factors.keys()


def test_means_are_not_judged_where_they_do_not_merge():
    """center = "own": every node has its own mean, wherever it is."""
    parts, who = liars.fleet(10).lying(OTHERS["mean 10 deviations off"], 5)

    assert who == screen(parts, rank=RANK).outliers.keys()
    assert not screen(parts, rank=RANK, means=False).outliers


WILD = {
    "energy": {"energy": 1e280, "sigma": np.array([1e139])},
    "weight": {"weight": 1e280},
    "feather": {"weight": 1e-300},
    "mean": {"mean": np.full(30, 1e139)},
    "bound": {"spectral_bound": 1e280},
    "all": {"energy": 1e280, "weight": 1e280, "mean": np.full(30, -1e139)},
    "both": {"energy": 1e280, "weight": 1e-280, "sigma": np.array([1e139])},
    "nothing": {"energy": 0.0, "sigma": np.empty(0)},
}


@pytest.mark.parametrize("number", [1, 9])
@pytest.mark.parametrize("how", WILD)
def test_wild_numbers_make_no_wild_verdicts(how, number):
    """What a message may just hold: factors that can be faded by, and no warning."""
    fleet = liars.fleet(11, nodes=12)
    parts = dict(fleet.parts)
    for name in sorted(parts)[:number]:
        wild = WILD[how]
        k = len(wild.get("sigma", parts[name].sigma))
        parts[name] = replace(parts[name], basis=parts[name].basis[:, :k], **wild)

    verdict = screen(parts, rank=RANK)

    for name, factor in verdict.factors.items():
        assert parts[name].faded(factor).weight < parts[name].weight  # nor is it refused
    assert len(verdict.outliers) <= 6


def test_nodes_that_have_nothing_to_say_are_passed_over():
    """Empty summaries, and a fleet of them."""
    schema = Schema.anonymous(liars.DIM)
    nothing = {f"empty-{i}": Subspace.empty(schema) for i in range(4)}

    assert screen(nothing, rank=RANK) == NO_OUTLIERS
    assert not screen(liars.fleet(0).parts | nothing, rank=RANK).outliers

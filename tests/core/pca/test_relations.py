"""Relations: a planted change is named with its size, and nothing else is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.pca.relations import Change, Reference, changes, gains, unlike
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Schema

DIM, CAUSES = 8, 3
NAMES = tuple("abcdefgh")
LOADINGS = np.random.default_rng(7).normal(size=(CAUSES, DIM))


def rows(seed: int, n: int = 1500, noise: float = 0.2, use: float = 1.0, keep: float = 0.9):
    """Rows of a machine (n, DIM): causes that change slowly, and noise of sensors."""
    draw = np.random.default_rng(seed)
    causes = draw.normal(size=(n, CAUSES))
    for i in range(1, n):
        causes[i] = keep * causes[i - 1] + (1 - keep**2) ** 0.5 * causes[i]
    return use * causes @ LOADINGS + noise * draw.normal(size=(n, DIM))


def with_gain(of: np.ndarray, channel: int, ratio: float) -> np.ndarray:
    changed = of.copy()
    changed[:, channel] *= ratio
    return changed


def whole(of: np.ndarray) -> WholeScatter:
    return WholeScatter.of_rows(of, "")


def covariance(of: np.ndarray) -> np.ndarray:
    return np.cov(of.T, bias=True)


@given(seed=st.integers(0, 1 << 30), channel=st.integers(0, DIM - 1))
def test_a_gain_is_the_slope_on_what_the_others_say(seed, channel):
    """As least squares of rows find it, twice: of a channel on the others, and on that."""
    before, after = (rows(each, 200, keep=0.0) for each in (seed, seed + 1))
    others = np.delete(before - before.mean(axis=0), channel, axis=1)
    slopes = np.linalg.lstsq(others, before[:, channel] - before[:, channel].mean(), rcond=None)[0]
    centered = after - after.mean(axis=0)
    said = np.delete(centered, channel, axis=1) @ slopes
    expected = said @ centered[:, channel] / (said @ said)

    found = gains(covariance(after), 200, Reference.of(covariance(before)))

    assert expected == pytest.approx(found.gain[channel], abs=1e-3)


@pytest.mark.parametrize("ratio", [0.7, 1.3, 0.5])
def test_a_planted_change_is_named_within_a_tenth_of_its_size(ratio):
    """Between two models, also where all variation differs, and the sensors' noise."""
    right = 0
    for seed in range(20):
        channel = seed % DIM
        first, second = rows(seed), with_gain(rows(seed + 100, use=1.5), channel, ratio)
        found = changes(whole(first), whole(second))
        right += [channel] == [each.channel for each in found] and abs(
            found[0].ratio - ratio
        ) < 0.1 * abs(ratio - 1)

    assert right >= 18


def test_two_changes_are_both_named():
    first, second = rows(1), with_gain(with_gain(rows(2), 2, 0.6), 5, 1.5)
    found = {each.channel: each.ratio for each in changes(whole(first), whole(second))}

    assert {2: pytest.approx(0.6, rel=0.05), 5: pytest.approx(1.5, rel=0.05)} == found


def test_between_halves_of_stationary_rows_nothing_changed():
    """In at least 19 of 20, few rows and many."""
    for n in (200, 2000):
        halves = [np.split(rows(seed, n), 2) for seed in range(20)]
        assert sum(not changes(whole(a), whole(b)) for a, b in halves) >= 19


def test_levels_use_and_noise_are_no_changes_of_relations():
    """Other means, twice the use, a noisy sensor: each channel follows the others as before."""
    noisy = rows(2, use=2.0) + 50.0
    noisy[:, 3] += np.random.default_rng(3).normal(size=len(noisy))

    assert [] == changes(whole(rows(1)), whole(noisy))


def test_summaries_of_directions_say_the_same():
    """Where a group is too wide for whole scatters, by the factors of its directions."""
    schema = Schema.anonymous(DIM)
    first, second = (
        Subspace.of(each - each.mean(axis=0), schema, rank=CAUSES)
        for each in (rows(1), with_gain(rows(2), 4, 0.6))
    )
    (found,) = changes(first, second)

    assert (4, pytest.approx(0.6, rel=0.05)) == (found.channel, found.ratio)


def machines(seed: int, n: int = 40) -> dict[str, np.ndarray]:
    """Machines whose sensors' gains differ by 3 %."""
    draw = np.random.default_rng(seed)
    return {
        f"m{i}": rows(1000 * seed + i, 400) * (1 + 0.03 * draw.normal(size=DIM)) for i in range(n)
    }


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.7, 1.3])
def test_the_odd_one_of_forty_is_first(ratio):
    """A gain that is off by .3, without an alarm: first, and its channel, in 9 of 10."""
    first = 0
    for seed in range(10):
        fleet = machines(seed)
        fleet["m17"] = with_gain(fleet["m17"], seed % DIM, ratio)
        node, change = unlike({name: whole(each) for name, each in fleet.items()}).nodes[0]
        first += (node, change.channel) == ("m17", seed % DIM)

    assert first >= 9


def test_machines_that_are_alike_are_all_near_what_is_usual():
    """And they are of one kind."""
    for seed in range(5):
        found = unlike({name: whole(each) for name, each in machines(seed).items()})
        assert found.kinds is None
        assert found.nodes[0][1].times < 6


@pytest.mark.parametrize(("all_", "few"), [(40, 15), (12, 6), (10, 3)])
def test_two_kinds_of_machines_are_told_as_such(all_, few):
    """With what differs between them; and each machine is compared with its own kind."""
    fleet = machines(3, all_)
    second = [f"m{i}" for i in range(few)]
    for name in second:
        fleet[name] = with_gain(fleet[name], 6, 0.5)
    found = unlike({name: whole(each) for name, each in fleet.items()})

    assert found.kinds is not None
    if 2 * few < all_:
        assert second == sorted(found.kinds.nodes, key=lambda each: int(each[1:]))
        assert (6, pytest.approx(0.5, rel=0.1)) == (
            found.kinds.change.channel,
            found.kinds.change.ratio,
        )
    assert all(change.times < 12 for _, change in found.nodes)


def test_few_machines_and_few_rows_say_nothing():
    """Three machines, a machine with few rows, channels that nothing tells."""
    three = {f"m{i}": whole(rows(i)) for i in range(3)}
    assert () == unlike(three).nodes
    five = {f"m{i}": whole(rows(i)) for i in range(5)}
    assert five.keys() == {name for name, _ in unlike(five | {"new": whole(rows(9, 10))}).nodes}
    draw = np.random.default_rng(0)
    alone = {f"m{i}": whole(draw.normal(size=(500, DIM))) for i in range(5)}
    assert () == unlike(alone).nodes
    assert [] == changes(alone["m0"], alone["m1"])


def test_a_change_is_a_sentence():
    assert "a follows c 0.5 times as much" == Change(0, 2, 0.5, 7.0).words(NAMES)

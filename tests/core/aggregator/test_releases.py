"""Releases: a tree of noises, whose cost never passes what may be spent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.aggregator.rows.releases import GROWTH, LEVELS, released
from submerge.protocol.messages import Told, most_told
from submerge_lab.simulator.samples import NumberedNoise, Samples, SampleSets

SETS = SampleSets()


def ids(n: int) -> Samples:
    return Samples((1 << n) - 1)


def of(left: int, fingerprint: str = "ab") -> tuple[str, int]:
    return fingerprint, left


def numbers(release) -> dict[int, int]:
    return {level: int(drawn[0]) for level, drawn in release.noises.items()}


def test_each_release_carries_the_noises_of_its_number():
    """One for each bit that is set, and one of them new."""
    noise, last = NumberedNoise(), None
    for n in range(1, 40):
        last = released(last, ids(n), of(0), SETS, noise)
        assert {level for level in range(LEVELS) if n >> level & 1} == last.noises.keys()
        assert n == len(noise.costs)
        assert n - 1 in numbers(last).values()


def test_it_goes_out_again_once_rows_have_grown():
    noise = NumberedNoise()
    first = released(None, ids(2000), of(0), SETS, noise)

    assert first is released(first, ids(2001), of(0), SETS, noise)
    assert 2 == released(first, ids(round(2000 * GROWTH)), of(0), SETS, noise).number


@given(st.lists(st.sampled_from(["rows", "left", "restored", "told"]), max_size=60))
def test_all_trees_together_spend_no_more_than_may_be_spent(what):
    """Whatever leaves, and however old the store is that a root begins from."""
    noise, last, n, left, kept, said = NumberedNoise(), None, 1, 0, None, Told()
    for each in ["rows", *what]:
        if each == "left":
            left += 1
        elif each == "restored":
            last = kept
        n += 1
        told = said if each in ("restored", "told") else None
        before = last
        last = released(last, ids(n), of(left), SETS, noise, told=told)
        kept = before if each == "rows" else kept
        assert last.spent_in_all >= (0.0 if before is None else before.spent_in_all)
        assert last.spent + last.share <= last.told.committed <= noise.rho
        said = most_told(said, last.told)


def test_where_rows_leave_a_tree_ends_and_the_next_has_half_of_what_is_left():
    noise = NumberedNoise()
    first = released(None, ids(5), of(0), SETS, noise)
    second = released(first, ids(4), of(1), SETS, noise)

    assert (noise.rho / 2, 1, {0: 0}) == (first.share, first.number, numbers(first))
    assert (1, {0: 1}) == (second.number, numbers(second))
    assert second.share == pytest.approx((noise.rho - first.spent_in_all) / 2)
    assert 2 == second.told.releases


def test_a_store_that_is_older_than_what_was_told_counts_all_of_it_as_spent():
    noise = NumberedNoise()
    old = released(None, ids(5), of(0), SETS, noise)
    after = released(old, ids(6), of(0), SETS, noise, told=Told(9, noise.rho / 2))

    assert (1, 10) == (after.number, after.told.releases)
    assert after.spent == noise.rho / 2


def test_nothing_is_left_once_all_is_spent():
    noise = NumberedNoise()
    old = released(None, ids(5), of(0), SETS, noise)

    assert old is released(old, ids(9), of(0), SETS, noise, told=Told(9, noise.rho))
    assert released(None, ids(9), of(0), SETS, noise, told=Told(9, noise.rho)) is None


def test_what_a_noise_costs_is_its_part_of_the_tree():
    """Fifteen of them cost a row the whole of it."""
    noise = NumberedNoise()
    released(None, ids(5), of(0), SETS, noise)

    assert LEVELS * noise.costs[0] == pytest.approx(noise.rho / 2)
    assert np.isfinite(noise.costs[0])


def test_another_schema_begins_another_tree():
    noise = NumberedNoise()
    first = released(None, ids(5), of(0), SETS, noise)
    second = released(first, ids(5), of(0, "cd"), SETS, noise)

    assert (1, "cd") == (second.number, second.fingerprint)


def test_who_lowers_epsilon_loses_nothing_that_was_not_spent():
    """Nodes go on saying what was allowed before."""
    noise = NumberedNoise()
    old = released(None, ids(5), of(0), SETS, noise)
    noise.rho *= 0.45
    new = released(old, ids(6), of(0), SETS, noise, told=old.told)
    later = released(new, ids(7), of(0), SETS, noise, told=old.told)

    assert new.spent == old.spent_in_all
    assert new.share == pytest.approx((noise.rho - new.spent) / 2)
    assert 2 == later.number

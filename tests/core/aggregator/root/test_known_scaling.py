"""What is known of a new schema's scaling before anything is measured, and what that opens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submerge import Schema
from submerge.aggregator.plan import GroupPlan, carried_over, known_scaling, with_known
from submerge.protocol.summaries import Subspaces
from submerge.schema import Channel, Scaling

KIND = Subspaces(2)


def open_of(names: str, **fields: object) -> Schema:
    """Channels whose scaling is to be measured."""
    return Schema(tuple(map(Channel, names)), **fields)


def settled_of(names: str, first: float = 1.0, **fields: object) -> Schema:
    """The same with offsets and scales that follow from the place and from `first`."""
    numbers = tuple(first + i for i in range(len(names)))
    return replace(open_of(names, **fields), scaling=Scaling(numbers, numbers))


def known(configured: Schema, *earlier: Schema, **given: tuple[float, float]) -> dict:
    return dict(known_scaling(configured, earlier, given))


def test_the_newest_schema_that_has_a_channel_says_how_it_is_measured():
    """Of those that are left to measure nothing is said; what is given is for new channels."""
    earlier = settled_of("ab", 5.0), settled_of("bca", 1.0)

    assert {"a": (5.0, 5.0), "b": (6.0, 6.0), "c": (2.0, 2.0)} == known(open_of("xcab"), *earlier)
    found = known(open_of("ax"), *earlier, a=(9.0, 9.0), x=(7.0, 8.0))
    assert {"a": (5.0, 5.0), "x": (7.0, 8.0)} == found
    assert {} == known(open_of("xy"), *earlier)


@pytest.mark.parametrize(
    "other",
    [
        open_of("ab"),
        settled_of("ab", center="own"),
        settled_of("ab", half_life=60.0),
        replace(settled_of("ab"), channels=(Channel("a", "K"), Channel("b", "K"))),
    ],
    ids=["open", "center", "half-life", "units"],
)
def test_other_measures_are_no_measure(other):
    """A channel in another unit is another channel, and another family has other means."""
    assert {} == known(open_of("ab"), other)


def test_a_schema_is_carried_over_if_all_of_it_is_known():
    """Otherwise the rest is measured, and what is known stays as it is."""
    numbers = {"a": (1.0, 2.0), "b": (3.0, 4.0)}
    assert carried_over(open_of("abc"), numbers) is None
    assert carried_over(open_of("ba"), numbers).scaling == Scaling((3.0, 1.0), (4.0, 2.0))

    measured = with_known(settled_of("xab"), numbers)
    assert measured.scaling == Scaling((1.0, 1.0, 3.0), (1.0, 2.0, 4.0))
    assert with_known(open_of("ab"), numbers) == open_of("ab")


# -- what a root starts with ------------------------------------------------------------


def opens(configured: Schema, kept: Schema, before: Schema, **plan: object) -> Schema:
    text = GroupPlan(KIND, configured, **plan).opens_with(
        kept.canonical, before.canonical, top=True
    )
    return Schema.parse(text)


def test_channels_that_go_leave_a_schema_that_is_settled():
    """Nothing is measured, and the fleet goes on at once."""
    found = opens(open_of("ca"), settled_of("abc"), open_of("abc"), learns_scaling=True)

    assert found == replace(open_of("ca"), scaling=Scaling((3.0, 1.0), (3.0, 1.0)))


def test_a_channel_that_comes_is_measured_unless_its_scaling_is_given():
    """In the configuration of the group."""
    change = open_of("abx"), settled_of("ab"), open_of("ab")
    assert opens(*change, learns_scaling=True) == open_of("abx")

    found = opens(*change, learns_scaling=True, given={"x": (7.0, 8.0)})
    assert found.scaling == Scaling((1.0, 2.0, 7.0), (1.0, 2.0, 8.0))


def test_the_same_configuration_goes_on_with_what_was_settled():
    """Given numbers are for new channels: they change none that was measured."""
    kept, given = settled_of("ab"), {"a": (9.0, 9.0)}

    assert kept == opens(open_of("ab"), kept, open_of("ab"), learns_scaling=True, given=given)


@pytest.mark.parametrize(
    ("configured", "plan"),
    [
        (settled_of("abx", 4.0), {}),
        (open_of("abx"), {}),
        (open_of("abx", center="own"), {"learns_scaling": True}),
        (open_of("abx", half_life=9.0), {"learns_scaling": True}),
    ],
    ids=["scaled by hand", "not scaled", "center", "half-life"],
)
def test_the_configuration_goes_before_what_was_settled(configured, plan):
    """Nothing carries over to another family, or where nothing is to be learnt."""
    assert configured == opens(configured, settled_of("ab"), open_of("ab"), **plan)


def test_below_the_root_the_kept_schema_holds_until_the_parent_says_otherwise():
    """An aggregator is configured with none."""
    plan = GroupPlan(KIND, None, learns_scaling=True)

    assert plan.opens_with(b"kept", b"", top=False) == b"kept"

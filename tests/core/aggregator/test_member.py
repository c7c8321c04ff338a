"""Membership: what is remembered of closed incarnations and fences, by itself."""

from __future__ import annotations

from submerge.aggregator.rows.ledger import CLOSED, FENCES, Membership
from support.nodes import new_incarnation


def test_the_oldest_closed_incarnation_makes_way_and_lifts_the_floor():
    """What falls off the list is over all the same: it was created below the floor."""
    member = Membership()
    for i in range(CLOSED + 1):
        member = member.with_closed(new_incarnation(i), i)

    assert CLOSED == len(member.closed)
    assert new_incarnation(0) not in member.closed
    assert 0 == member.closed_seq(new_incarnation(0))
    assert CLOSED == member.closed_seq(new_incarnation(CLOSED))
    assert None is member.closed_seq(new_incarnation(CLOSED + 1))


def test_the_one_just_closed_stays_however_old_it_is():
    """Its last message may come again."""
    member = Membership()
    for i in range(1, CLOSED + 1):
        member = member.with_closed(new_incarnation(i), i)
    member = member.with_closed(new_incarnation(0), 7)

    assert 7 == member.closed_seq(new_incarnation(0))


def test_fences_of_incarnations_without_a_row_make_way():
    """Those that have a row stay, however many there are."""
    member = Membership()
    for i in range(FENCES + 3):
        member = member.with_fence(
            new_incarnation(i), bytes([i]) * 16, live=(new_incarnation(0), new_incarnation(1))
        )

    assert {
        new_incarnation(0),
        new_incarnation(1),
        new_incarnation(FENCES + 2),
    } <= member.fences.keys()
    assert FENCES + 2 == len(member.fences)


def test_a_copy_of_a_store_may_not_speak():
    """It does not know the fence of the process that came after it, nor what that has said."""
    ours, other = b"o" * 16, b"x" * 16
    member = Membership(fences={new_incarnation(1): ours})

    assert member.admits(new_incarnation(1), ours, {}, (ours, 5))
    assert member.admits(new_incarnation(1), other, {ours: 5}, (ours, 5))
    assert not member.admits(new_incarnation(1), other, {ours: 4}, (ours, 5))
    assert not member.admits(new_incarnation(1), other, {}, None)

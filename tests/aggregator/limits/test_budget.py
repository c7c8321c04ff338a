"""Bytes of messages that wait: bounded over all senders, and for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from submerge_aggregator.limits import SHARES, SHORT, MessageBudget

LIMIT = 8 * SHORT * SHARES


def test_a_sender_that_floods_leaves_room_for_the_others():
    """It holds an eighth; a message of another one is taken."""
    budget = MessageBudget(LIMIT)
    taken = sum(budget.takes("wild", SHORT) for _ in range(1000))

    assert LIMIT // SHARES == taken * SHORT == budget.used
    assert budget.takes("honest", SHORT)


def test_one_large_message_is_taken_of_each_as_long_as_there_is_room():
    """Also where it is larger than a share; the last eighth is left to short ones."""
    budget = MessageBudget(LIMIT)
    taken = [budget.takes(f"{i}", LIMIT // 4) for i in range(5)]

    assert [True, True, True, False, False] == taken
    assert budget.takes("honest", SHORT)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, LIMIT))))
def test_what_is_held_never_passes_the_limit_and_is_given_back_whole(messages):
    """For any sender, and any number of bytes."""
    budget = MessageBudget(LIMIT)
    taken = [(who, size) for who, size in messages if budget.takes(who, size)]

    assert sum(size for _, size in taken) == budget.used <= LIMIT
    for who, size in taken:
        budget.release(who, size)
    assert (0, {}) == (budget.used, budget._held)

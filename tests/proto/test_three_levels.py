"""What is accepted gives messages that are accepted, from level to level up to the model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import fuzz
from support.fuzz_extremes import ABOVE, BELOW, CLIENTS, Extremes, Outcome, through_three_levels
from support.fuzz_golden import GoldenWorld

clients = st.tuples(st.sampled_from(["r", *ABOVE]), st.sampled_from(CLIENTS))
aggregators = st.tuples(st.sampled_from(["r", "g"]), st.just(BELOW))
puts = st.lists(
    st.tuples(clients | aggregators, st.integers(0, 2), st.integers(0, 2**32)), max_size=8
)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**32), puts)
def test_any_accepted_reports_give_a_model_and_reports_that_can_be_read(seed, puts):
    """Through three levels, with other clocks, schemas and half-lives, as bytes."""
    outcome = Outcome()
    world = Extremes(seed, outcome)
    for i, ((label, node), number, drawn) in enumerate(puts):
        world.put(label, node, number, i + 1, np.random.default_rng(drawn))
        world.table.passes(50.0 * (drawn % 7))
    world.table.passes(2500)

    # The short form below shows that there are messages.
    assert [] == outcome.unreadable


@pytest.mark.slow
def test_extreme_reports_through_three_levels_in_short():
    """`python tests/support/fuzz.py --extremes 10000` is the long form."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome = through_three_levels(1000, 150)

    assert ([], []) == (outcome.unreadable, outcome.errors)
    assert 150 <= outcome.accepted
    assert min(outcome.models, outcome.upward) > 100


@pytest.mark.slow
def test_mutants_of_golden_messages_in_short():
    """`python tests/support/fuzz.py --mutants 200000` is the long form."""
    tally = fuzz.Tally()
    fuzz.fuzz(1000, tally, executions=1500, make=GoldenWorld)

    # Or else it would show nothing: many come as far as a node, and many are refused.
    assert sum(tally.taken.values()) > 500
    assert {"malformed", "name", "version", "range", "shape"} <= set(tally.refused)
    assert tally.answers["ack"] > 100

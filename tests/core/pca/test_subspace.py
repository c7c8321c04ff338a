"""Subspace: a value with laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Channel, Scaling, Schema, Subspace, UsageError
from submerge.errors import ValuesError
from support import checks, oracle
from support.strategies import rows_of, streams


@given(streams(), st.integers(1, 24), st.sampled_from(["fleet", "own", "none"]))
def test_a_block_in_one_go_keeps_every_law(X, rank, center):
    """Exact at full rank, never overstating below it."""
    schema = Schema.anonymous(X.shape[1], center=center)

    found = Subspace.of(X, schema, rank=rank)

    checks.never_overstates(found, oracle.twin(X, center=center != "none"), blocks=1)


@given(streams(), st.integers(1, 24), st.integers(1, 24))
def test_showing_fewer_adds_to_the_bounds(X, rank, fewer):
    """truncated() keeps the laws: dropped directions go into the bounds."""
    found = Subspace.of(X, Schema.anonymous(X.shape[1]), rank=rank).truncated(fewer)

    assert found.rank <= fewer
    checks.never_overstates(found, oracle.twin(X), blocks=1)


@given(streams(), st.floats(0.01, 10))
def test_fading_is_weighing(X, factor):
    """faded(f) is the memory of rows that weigh f each."""
    found = Subspace.of(X, Schema.anonymous(X.shape[1]), rank=3).faded(factor)

    checks.never_overstates(found, oracle.twin(X, np.full(len(X), factor)), blocks=1)


def test_readings_are_lifted():
    """A schema's scaling applies before anything is measured."""
    X = rows_of("noise", 50, 2, seed=0) * [10, 0.1] + [20, 3]
    schema = Schema((Channel("a"), Channel("b")), scaling=Scaling((20.0, 3.0), (10.0, 0.1)))

    found = Subspace.of(X, schema, rank=2)

    checks.never_overstates(found, oracle.twin((X - [20, 3]) / [10, 0.1]), blocks=1)
    assert schema.fingerprint == found.schema


def test_the_sign_rule_holds():
    """The entry of largest size in each column is positive."""
    found = Subspace.of(rows_of("noise", 60, 9, seed=1), Schema.anonymous(9), rank=9)

    largest = np.abs(found.basis).argmax(axis=0)
    assert (found.basis[largest, range(found.rank)] > 0).all()


def test_no_rows_and_one_row():
    """Nothing is the empty memory; one row is a mean without variation."""
    schema = Schema.anonymous(3)

    assert Subspace.of(np.empty((0, 3)), schema, rank=2).weight == 0
    one = Subspace.of(np.array([1.0, 2.0, 3.0]), schema, rank=2)
    assert (one.weight, one.rank, one.energy) == (1.0, 0, 0.0)
    np.testing.assert_array_equal(one.mean, [1, 2, 3])


def test_it_cannot_be_changed():
    """A value: its fields are not assigned to."""
    with pytest.raises(AttributeError):
        Subspace.empty(Schema.anonymous(2)).weight = 5.0


def test_what_means_nothing_is_refused():
    """Ranks below one, factors that are not positive, readings that are not numbers."""
    found = Subspace.of(np.eye(3), Schema.anonymous(3), rank=2)
    for factor in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(UsageError, match="positive and leave weight and energy finite"):
            found.faded(factor)
    with pytest.raises(UsageError, match="at least 1"):
        found.truncated(0)
    with pytest.raises(ValuesError, match="row 0, column 1"):
        Subspace.of(np.array([[1, np.nan, 2]]), Schema.anonymous(3), rank=1)

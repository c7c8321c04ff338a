"""What was heard: counts, rates and units, of a bounded number of names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge_client.sensors.mqtt.decoder import Heard


def test_a_field_has_its_count_its_rate_and_its_range() -> None:
    """And how often it differed from the reading before."""
    heard = Heard()
    first = [heard.add("a/t", value, now) for now, value in ((10.0, 5.0), (20.0, 5.0), (70.0, 3.0))]
    field = heard.fields["a/t"]

    assert [True, False, False] == first
    assert (3, 1, 1, 30.0) == (field.count, field.changes, field.falls, field.every_s)
    assert (3, 1, 30.0, 50.0) == (field.count, field.changes, field.every_s, field.longest_s)
    assert (3.0, 5.0, 3.0) == (field.lowest, field.highest, field.last)


def test_a_rate_takes_two_readings() -> None:
    """One says nothing."""
    heard = Heard()
    heard.add("a/t", 5.0, 10.0)

    assert heard.fields["a/t"].every_s is None


def test_a_unit_may_come_before_the_first_reading_or_after_it() -> None:
    """Descriptions are retained, or come late."""
    heard = Heard()
    heard.set_unit("a/t", "C")
    heard.add("a/t", 5.0, 10.0)
    heard.add("a/p", 5.0, 10.0)
    heard.set_unit("a/p", "bar")

    assert ["C", "bar"] == [field.unit for field in heard.fields.values()]


def test_further_names_are_counted_and_not_remembered() -> None:
    """A device can make up as many as it likes."""
    heard = Heard(most=2)
    for i in range(5):
        heard.add(f"a/{i}", 1.0, 0.0)
        heard.set_unit(f"b/{i}", "C")

    assert (["a/0", "a/1"], 3) == (list(heard.fields), heard.crowded)
    assert 2 == len(heard._units)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_a_field_has_the_mean_and_the_deviation_of_its_values(values) -> None:
    """Without remembering them."""
    heard = Heard()
    for value in values:
        heard.add("a/t", value, 0.0)
    field = heard.fields["a/t"]

    assert np.mean(values) == pytest.approx(field.mean, rel=1e-9, abs=1e-6)
    assert np.std(values) == pytest.approx(field.deviation, rel=1e-6, abs=1e-5)


def test_numbers_that_no_engine_takes_are_not_remembered() -> None:
    """Their squares would be infinite."""
    heard = Heard()
    for value in (np.inf, -np.inf, np.nan, 1e300):
        heard.add("a/t", value, 0.0)

    assert not heard.fields


def test_copies_do_not_change() -> None:
    """Another thread reads them."""
    heard = Heard()
    heard.add("a/t", 1.0, 0.0)
    heard.add("b/t", 1.0, 0.0)
    (copy,) = heard.copies(lambda name: name == "a/t")
    heard.add("a/t", 3.0, 5.0)

    assert ("a/t", 1, 1.0) == (copy.name, copy.count, copy.mean)

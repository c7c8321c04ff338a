"""HighestSoFar: provisional limits of a node's own rows."""

from __future__ import annotations

import numpy as np
import pytest

from submerge.client.alarms.highest import LEAST_ROWS, HighestSoFar
from submerge.client.alarms.limits import AlarmLimits


def test_the_limit_is_beyond_the_highest_value_and_a_third_as_often_exceeded():
    """From sixty-four rows on; however they are dealt, and whatever rows bring nothing new."""
    values = np.random.default_rng(0).exponential(1.0, (1, 200))
    seen = HighestSoFar().after({"spe": values[0, :150]}, values[:, :150])
    seen = seen.after({"spe": values[0, 150:]}, values[:, 150:]).after({"spe": np.ones(50)}, None)
    limits = seen.over(AlarmLimits(armed_in_s=7.0), 2.0)

    mean = (values.sum() + 50) / 250
    beyond = values.max() + (values.max() - mean) * np.log(3) / np.log(250 / 4)
    assert limits.known == {"spe": pytest.approx(beyond)}
    assert 250 * 3 * 2.0 == pytest.approx(limits.provisional_s)
    assert (True, False, 7.0) == (limits.of_node, limits.promised, limits.armed_in_s)
    few = HighestSoFar().after({"spe": np.ones(LEAST_ROWS - 1)}, np.ones((1, LEAST_ROWS - 1)))
    assert not few.over(AlarmLimits(), 2.0).known


def test_limits_are_exceeded_no_more_often_than_was_stated():
    """Of statistics with an exponential tail, and of any whose tail falls faster."""
    records, stated = 0, 0.0
    for seed in range(100):
        values = np.random.default_rng(seed).exponential(1.0, 600)
        seen = HighestSoFar().after({"spe": values[:64]}, values[None, :64])
        for value in values[64:]:
            limits = seen.over(AlarmLimits(), 1.0)
            stated += 1 / limits.provisional_s
            records += value > limits.known["spe"]
            seen = seen.after({"spe": np.array([value])}, np.array([[value]]))

    assert 0.5 * stated < records < 1.5 * stated


def test_limits_of_the_group_go_first_once_they_are_rarer():
    """And promised limits always do."""
    seen = HighestSoFar().after({"spe": np.ones(100)}, np.ones((1, 100)))
    often = AlarmLimits({"spe": 3.0}, {"spe": 1.0}, 5.0, 290.0)
    rarely = AlarmLimits({"spe": 3.0}, {"spe": 1.0}, 5.0, 310.0)
    promised = AlarmLimits({"spe": 3.0}, {"spe": 1.0})

    assert seen.over(often, 1.0).of_node
    assert rarely is seen.over(rarely, 1.0)
    assert promised is seen.over(promised, 1.0)


def test_a_new_statistic_does_not_raise_the_stated_rate():
    """It gets a limit once it has been watched for three quarters of the time of the others."""
    seen = HighestSoFar().after({"spe": np.ones(400)}, np.ones((1, 400)))
    both = {"spe": np.ones(400), "channel": np.ones(400)}
    assert {"spe"} == set(seen.after(both, np.ones((2, 400))).over(AlarmLimits(), 1.0).known)
    for _ in range(3):
        seen = seen.after(both, np.ones((2, 400)))

    assert {"spe", "channel"} == set(seen.over(AlarmLimits(), 1.0).known)


def test_parts_are_pooled_as_one():
    """The highest value and the mean are those of the rows of all parts."""
    values = np.random.default_rng(1).exponential(1.0, (1, 300))
    cuts = [HighestSoFar().after({"spe": part[0]}, part) for part in np.split(values, [40, 130], 1)]
    whole, pooled = HighestSoFar().after({"spe": values[0]}, values), HighestSoFar.pooled(cuts)

    assert (whole.rows, whole.values) == (pooled.rows, pooled.values)
    assert whole.means["spe"] == pytest.approx(pooled.means["spe"])


def test_what_a_young_model_scored_is_forgotten_once_it_has_twice_the_rows():
    """Rows since it was last aged stay; without enough of them, all do."""
    wild, usual = np.full((1, 100), 900.0), np.full((1, 100), 9.0)
    seen = HighestSoFar().after({"ewma": wild[0]}, wild).aged()
    few = seen.after({"ewma": usual[0, :9]}, usual[:, :9])
    seen = seen.after({"ewma": usual[0]}, usual)
    aged = seen.aged()
    again = aged.after({"ewma": np.ones(100)}, None).at_least({"ewma": 12.0}).aged()

    assert few is few.aged()
    assert ({"ewma": 200}, {"ewma": 900.0}) == (seen.rows, seen.values)
    assert ({"ewma": 100}, {"ewma": 9.0}) == (aged.rows, aged.values)
    assert ({"ewma": 100}, {"ewma": 12.0}) == (again.rows, again.values)
    assert aged.over(AlarmLimits(), 1.0).known["ewma"] < 20.0
    assert 8.0 > aged.least_news("ewma")  # a row below the highest is news to the newest

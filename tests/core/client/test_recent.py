"""The newest rows of a client as people look at them: scores, readings, what is expected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import UsageError
from submerge.client.monitor import MOST_ROWS
from submerge.client.recent_rows import BLAMED, recent_readings, recent_statistics
from submerge.judge.prepare import prepare
from submerge.schema import Scaling
from support import oracle
from support.drilled import ALONE, DIM, EPOCH, SCHEMA, SETTINGS, SixChannels, draw

ROW_S = 600.0


def test_scores_are_those_that_limits_are_for():
    """Of the moving average; oldest first, and when they came."""
    client = SixChannels()
    monitor = client.intake.monitor
    task, found = monitor.drill_task(), recent_statistics(monitor)
    distances = task.model.score(task.rows).even["distance"]

    averages = oracle.ewma(distances.tolist(), task.limits["ewma"])
    assert averages == pytest.approx(found.values["ewma"])
    assert task.limits == {kind: limit for kind, limit in found.limits.items() if limit is not None}
    assert {"ewma", "channel"} >= set(found.values)
    last = EPOCH + client.steady
    assert [last - ROW_S * i for i in reversed(range(MOST_ROWS))] == pytest.approx(found.at)
    assert (1, False) == (found.version, found.provisional)


def test_a_row_that_is_off_names_its_channel():
    """First, with the largest share; three are named at most."""
    client = SixChannels()
    off = draw(1, 9)
    off[0, 1] += 30.0
    client.steady += ROW_S
    client.intake.read(off, client.current, client.model, client.now)
    blame = recent_statistics(client.intake.monitor).blame

    assert 1 == blame[-1][0][0]
    assert blame[-1][0][1] > 0.5
    assert all(len(row) <= BLAMED for row in blame)
    assert all(sorted((share for _, share in row), reverse=True) for row in blame)


def test_an_expected_value_is_what_fills_a_gap_there():
    """By all other channels of the row; and readings are off by about `sd`."""
    client = SixChannels()
    monitor = client.intake.monitor
    task, found = monitor.drill_task(), recent_readings(monitor, SCHEMA, 20 * DIM)
    for channel in range(DIM):
        holed = task.rows[-20:].copy()
        holed[:, channel] = np.nan
        filled = task.model.scoring.filled(holed, task.model.own)
        assert filled[:, channel] == pytest.approx(found.expected[:, channel], abs=1e-6)
    assert np.array_equal(task.rows[-20:], found.values)


def test_readings_are_off_by_about_their_sd():
    """By the model at first: 1 / F_jj is its variance. Once a day was seen, as measured here."""
    young, old = SixChannels().intake.monitor, SixChannels(rows=700).intake.monitor
    task = young.drill_task()
    predicted = np.sqrt(task.model.score(task.rows).expected)
    assert predicted == pytest.approx(recent_readings(young, SCHEMA, 600).sd)

    found = recent_readings(old, SCHEMA, MOST_ROWS * DIM)
    off = np.sqrt(np.mean((found.values - found.expected) ** 2, axis=0))
    assert off == pytest.approx(found.sd, rel=0.15)
    assert found.sd[ALONE] == max(found.sd)


def test_readings_are_in_their_units():
    """And so are what is expected, and by how much it is off."""
    monitor = SixChannels().intake.monitor
    offset, scale = np.arange(6.0), np.array([1.0, 2.0, 3.0, 1e3, 1e-3, 1.0])
    scaled = recent_readings(monitor, SCHEMA, 600)
    schema = replace(SCHEMA, scaling=Scaling(tuple(offset), tuple(scale)))
    found = recent_readings(monitor, schema, 600)

    assert (scaled.values * scale + offset) == pytest.approx(found.values)
    assert (scaled.expected * scale + offset) == pytest.approx(found.expected)
    assert (scaled.sd * scale) == pytest.approx(found.sd)


def test_a_gap_is_a_gap_and_something_is_expected_of_it():
    client = SixChannels()
    rows = draw(3, 9)
    rows[1, 2] = np.nan
    client.steady += 3 * ROW_S
    client.intake._settings = replace(SETTINGS, fills_gaps=True)
    client.intake.read(rows, client.current, client.model, client.now)
    found = recent_readings(client.intake.monitor, SCHEMA, 3 * DIM)

    assert [(1, 2)] == [tuple(each) for each in np.argwhere(np.isnan(found.values)).tolist()]
    assert np.isfinite(found.expected).all()


@pytest.mark.parametrize(("numbers", "rows"), [(1, 1), (DIM * 7, 7), (10**9, MOST_ROWS)])
def test_the_newest_rows_are_as_many_as_there_is_room_for(numbers, rows):
    found = recent_readings(SixChannels().intake.monitor, SCHEMA, numbers)
    assert (rows, DIM) == found.values.shape == found.expected.shape
    assert rows == len(found.at)


def test_looking_changes_nothing():
    from submerge_proto.kept import records

    client = SixChannels()
    before = records.pack(("lookout",), client.intake.kept)
    recent_statistics(client.intake.monitor)
    recent_readings(client.intake.monitor, SCHEMA, 600)
    assert before == records.pack(("lookout",), client.intake.kept)


def test_without_a_score_it_says_why():
    for client, why in [
        (SixChannels(rows=0), "no row has come yet"),
        (SixChannels(rows=6), "waiting for a mean of its own"),
    ]:
        with pytest.raises(UsageError, match=why):
            recent_statistics(client.intake.monitor)
        with pytest.raises(UsageError, match=why):
            recent_readings(client.intake.monitor, SCHEMA, 600)


def test_rows_that_are_left_out_take_their_time():
    """A row with a gap that is not filled came when it came, and the others when they did."""
    client = SixChannels()
    rows = draw(4, 9)
    rows[2] = np.nan
    client.steady += 4 * ROW_S
    client.intake.read(rows, client.current, client.model, client.now)
    assert prepare(rows, SCHEMA, fill=None).left_out == 1
    last = EPOCH + client.steady
    times = client.intake.monitor.recent_rows.times[-3:]
    assert [last - 3 * ROW_S, last - 2 * ROW_S, last] == pytest.approx(times)

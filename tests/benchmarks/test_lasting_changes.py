"""A lasting change, in a fleet of real clients below a real root, in virtual time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fleet_in_time import HOUR_S, Fleet
from submerge import Schema
from submerge.protocol.settings import AlarmSettings

NODES, CHANNELS, RANK, PERIOD_S = 6, 8, 2, 600.0
ROWS = int(8 * 86400 / PERIOD_S)
DAY = int(86400 / PERIOD_S)
SHIFT, SECOND = 4 * DAY, 5 * DAY + 6
"""A change that stays begins at node 0; a second fault begins a day and an hour later."""

ALARMS = AlarmSettings(at_most_per_s=1 / (4 * 86400), settle_s=86400.0)


def plant(center: str) -> SimpleNamespace:
    """Return a plant of nodes that vary alike, with a day of their own each."""
    rng = np.random.default_rng(5)
    mixing = rng.normal(size=(RANK, CHANNELS))
    places = 3 * rng.normal(size=(NODES, CHANNELS)) * (center == "own")
    when = np.arange(ROWS) * PERIOD_S / 86400
    cycle = np.sin(2 * np.pi * when)[:, None] * [1.0, 0.5]
    values = places[:, None] + (cycle + rng.normal(size=(NODES, ROWS, RANK))) @ mixing
    values += 0.3 * rng.normal(size=values.shape)
    values[0, SHIFT:, 2] += 4.0
    values[0, SECOND:, 5] += 4.0
    return SimpleNamespace(
        nodes=NODES,
        n_rows=ROWS,
        period_s=PERIOD_S,
        rank=RANK,
        schema=Schema(CHANNELS, center=center),
        rows=lambda node, start, stop: values[node, start:stop],
    )


@pytest.mark.slow
@pytest.mark.parametrize("center", ["own", "fleet"])
def test_a_second_fault_on_the_same_node_is_alarmed_a_day_later(center):
    """The first alarm is shown as settled; the second names its own channel at its onset."""
    fleet = Fleet(plant(center), ALARMS)
    hours = int(SECOND * PERIOD_S / HOUR_S) + 12
    for _ in range(hours):
        fleet.passes()
    changed = [
        alarm
        for _, alarm in sorted(fleet.members[0].alarms.items())
        if fleet.row_at(alarm.began) >= SHIFT
    ]
    first, second = changed[0], changed[-1]

    assert SHIFT <= fleet.row_at(first.began) <= SHIFT + 10
    assert (True, "", "x2") == (first.settled, first.verdict, first.first[0][0])
    assert SECOND <= fleet.row_at(second.began) <= SECOND + 10
    assert second.is_open
    assert "x5" in dict(second.first)
    (off,) = [each for each in second.deviations if each.channel == "x5"]
    assert off.difference == pytest.approx(4.0, abs=1.5)
    # The fleet's other nodes go on as before.
    assert not any(each.settled for m in fleet.members[1:] for each in m.alarms.values())

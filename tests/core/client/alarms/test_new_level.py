"""NewLevel: when the rows of an open alarm keep to a new level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge.client.alarms.detector import AlarmDetector
from submerge.client.alarms.new_level import LONGEST_S, NewLevel
from submerge.judge.prepare import RowTime
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.node_mean import OwnMean
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.statistic import raised_by
from support.scored import a_block, row_scores

HOUR = 6
"""Rows."""

SETTINGS = AlarmSettings(period_s=600.0)
USUAL = QuantileSketch.of(np.repeat([2.0, 4.0], 4000), FINE)
DETECTOR = AlarmDetector.of("pump-1", SETTINGS, ("flow", "temp")).with_maxima(
    BlockMaxima(USUAL, USUAL, empty(FINE), longest=4000)
)
LIMIT = DETECTOR.limit("spe", settled=True)


def passing(level: NewLevel, hours: float, spe: float = 0.5, others: int = 0) -> NewLevel:
    """Return the level after hours of rows with such scores about it.

    others : so many rows of a block come before those of the alarm
    """
    rows = int(hours * HOUR)
    for _ in range(0, rows, 3):
        n = 3 + others
        block = a_block(np.repeat([[9.0, 9.0], [5.0, 1.0]], [others, 3], axis=0), time=TIME)
        about = row_scores(n * [spe], n * [0.0], np.zeros((n, 2))) if level.mean.ready else None
        alarmed = np.arange(n) >= others
        level = level.after(block, alarmed, about, DETECTOR)
    return level


TIME = RowTime(600.0)
NEW = NewLevel(OwnMean.none(2, None))


def test_a_level_holds_after_a_day():
    """It is the mean of the alarm's rows alone, whatever block they came in."""
    assert not passing(NEW, 23.5).holds(8)
    level = passing(NEW, 24.5, others=2)

    assert level.holds(8)
    assert [5.0, 1.0] == level.mean.rows.tolist()
    assert 12 * 3600 <= level.half.span_s < 13 * 3600


def test_a_score_over_its_limit_takes_half_a_day():
    """The mean stays, for the level may still hold."""
    level = passing(passing(NEW, 30), 1, spe=1.5 * LIMIT)
    assert not level.holds(8)
    assert not passing(level, 11.5).holds(8)
    assert passing(level, 14).holds(8)


def test_a_score_of_twice_its_limit_begins_the_level_again():
    """Readings are somewhere else: the mean of both places is no level."""
    level = passing(passing(NEW, 30), 1.5, spe=2.5 * LIMIT)
    assert level.mean.count < 10
    assert level.half is None
    assert not passing(level, 20).holds(8)


def test_a_level_is_not_sought_for_ever():
    """Where scores pass their limit again and again, the mean does not grow old."""
    level = NEW
    for _ in range(10):
        level = passing(passing(level, 10), 1, spe=1.5 * LIMIT)
        assert level.mean.span_s <= LONGEST_S
        assert not level.holds(8)


@pytest.mark.parametrize("of", [1, 2, 3])
def test_few_rows_a_statistic_are_enough(of):
    """A moving average follows from the one before, however few an alarm needs."""
    settings = AlarmSettings(period_s=600.0, after=1, of=of)
    maxima = BlockMaxima(empty(FINE), empty(FINE), empty(FINE), 4000, ewma=USUAL)
    detector = AlarmDetector.of("pump-1", settings, ("flow", "temp"))
    detector, level = detector.with_maxima(maxima, raised_by(factors=True)), NEW
    for _ in range(60):
        rows = np.tile([5.0, 1.0], (3, 1))
        about = row_scores(3 * [0.0], 3 * [0.0], np.zeros((3, 2)))
        about = replace(about, even={"distance": np.full(3, 0.5)})
        level = level.after(a_block(rows, time=TIME), np.ones(3, dtype=bool), about, detector)

    assert level.holds(of)

"""Rows read to coarser steps than the history's, and channels that never varied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from submerge import Model
from submerge.history.detection import HistoryDetector
from submerge.history.fit import Fitted, fit
from submerge.history.recording import Recorded
from submerge.history.settings import SOON

NAMES, PERIOD, CONSTANT = list("abcdef"), 60.0, 21.123456789


def readings(n: int, seed: int, decimals: int) -> np.ndarray:
    """Four channels with two causes, and two that stand still, one of them by a sum."""
    rng, at = np.random.default_rng(seed), np.arange(n)
    causes = np.column_stack([np.sin(at / 300), np.cos(at / 170)])
    mixed = 0.3 * causes @ np.array([[1, 0.5, -0.4, 0.2], [0.3, -0.6, 0.8, 1]])
    rows = mixed + 0.01 * rng.standard_normal((n, 4)) + [21, 5, 1013, 0.7]
    return np.round(np.column_stack([rows, np.full((n, 2), [CONSTANT, 0.1 + 0.2])]), decimals)


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """What is known of ten days with nine decimals."""
    rows = readings(14_400, 1, 9)
    return fit(lambda: [Recorded("m", rows, PERIOD * np.arange(len(rows)))], NAMES)


def alarms(
    fitted: Fitted, rows: np.ndarray, *, remembers: bool = True
) -> list[tuple[int, str, float]]:
    """The row in which each alarm begins, the channel to blame first, and how high it goes."""
    known = fitted.states["m"] if remembers else None
    detector = HistoryDetector(fitted.model, known, PERIOD, SOON, machine="m")
    times = PERIOD * (20_000 + np.arange(len(rows)))
    for _ in detector.add(Recorded("m", rows, times)):
        pass
    return [
        (found.began.row - 1, found.alarm.first[0][0], found.alarm.worst)
        for found in detector.found.values()
    ]


@pytest.mark.parametrize("decimals", [2, 3])
def test_fewer_decimals_are_no_fault_and_hide_none(fitted, decimals):
    """A constant that is read otherwise is not infinitely far; b that is 0.5 too high is far."""
    rows = readings(2000, 2, decimals)
    assert alarms(fitted, rows) == []

    rows[1000:1100, 1] += 0.5
    ((began, _, worst),) = alarms(fitted, rows)
    assert 1000 <= began < 1010
    assert 100 < worst < 1000


def test_a_channel_that_never_varied_counts_by_its_own_step(fitted):
    """A setpoint that moves is an alarm of its own, and not 1e12 times its limit."""
    rows = readings(2000, 2, 9)
    rows[1000:, 4] = 19.5
    ((began, channel, worst),) = alarms(fitted, rows)

    assert 1000 <= began < 1010
    assert channel == "e"
    assert worst < 10


@pytest.mark.parametrize("remembers", [False, True])
def test_the_first_move_of_a_channel_is_no_step_of_it(remembers):
    """A setpoint that now and then moves by 0.1, and stands still until it is off by 50."""
    rng, n = np.random.default_rng(3), 14_400
    moves = (rng.random(n) < 1 / 400) * rng.choice([-0.1, 0.1], n)
    rows = readings(n, 1, 9)
    rows[:, 4] = 20 + np.clip(np.cumsum(moves), -0.5, 0.5)
    fitted = fit(lambda: [Recorded("m", rows, PERIOD * np.arange(n))], NAMES)
    later = readings(2000, 2, 9)
    later[:, 4] = 20.0
    later[1000:1060, 4] += 50
    found = alarms(fitted, later, remembers=remembers)

    assert [(began, channel) for began, channel, worst in found if worst > 100] == [(1000, "e")]


def by_the_class(rows: np.ndarray) -> tuple[Any, list[Any]]:
    """What the class says of rows, after the history with nine decimals."""
    model = Model.fit(readings(14_400, 1, 9), names=NAMES)
    return model.score(rows), list(model.detect(rows))


def test_scores_agree_with_the_alarms():
    """Of rows with two decimals: none is far off, and there is no alarm."""
    with pytest.warns(UserWarning, match="in all rows"):
        scores, found = by_the_class(readings(2000, 2, 2))

    assert found == []
    assert np.nanmax(scores["distance"]) < 50

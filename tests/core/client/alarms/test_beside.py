"""Alarms of channels that say nothing, or stay at a state, beside those of rows."""

from __future__ import annotations

import numpy as np

from submerge.client.alarms.log import AlarmLog


def of(*channels: int) -> np.ndarray:
    return np.isin(np.arange(3), channels)


def test_an_open_alarm_is_not_pushed_out_by_later_ones() -> None:
    """A channel that stays silent is announced once: its end and its verdict need it."""
    log = AlarmLog("n", ("a", "b", "c"), 60.0).hear("silent", of(0), of(0), 1.0, 1)
    for i in range(30):
        log = log.hear("duty", of(1), of(1), 10.0 + i, 1)
        log = log.hear("duty", of(), of(), 10.5 + i, 1)
        assert ["silent"] == [alarm.cause for alarm in log.beside if alarm.is_open]
        assert len(log.beside) <= 8

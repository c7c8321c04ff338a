"""Arrivals: which channels have no value, and for how long there was no row.

A misspelt channel or topic is no error: the device may speak later. So the line says what is
missing, and a person sees why nothing is learnt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from submerge_client.config.sensor_kind import SensorKind
from submerge_client.sensors.newest_values import NewestValues

PERIODS, LEAST_S = 3.0, 30.0
"""Periods and seconds without a row that are nothing to speak of."""


class Arrivals:
    """What has come from a sensor since the line before.

    names : Of the channels.
    now : Seconds on any steady clock.

    absent : Channels without a value in all rows between the last two calls of `mark`.
    never : Those of them that have had none since the start.
    """

    def __init__(self, names: Sequence[str], sensor: SensorKind, now: float) -> None:
        self._names = tuple(names)
        self._sensor = sensor
        self._usual_s = max(LEAST_S, PERIODS * sensor.every_s)
        self._rows = self._marked = 0
        self._at = now
        self.absent: tuple[str, ...] = ()
        self.never: tuple[str, ...] = ()

    def look(self, rows: int, now: float) -> None:
        """Take the number of rows so far."""
        if rows != self._rows:
            self._rows, self._at = rows, now

    def mark(self, rows: int, newest: NewestValues) -> None:
        """Take the newest values; without rows nothing is known."""
        if rows > self._marked:
            gone = np.flatnonzero(newest.at <= self._marked)
            self.absent = tuple(self._names[place] for place in gone)
            self.never = tuple(self._names[place] for place in gone if not newest.at[place])
            self._marked = rows

    def quiet_s(self, now: float) -> float:
        """Return for how long there was no row; 0 while that is usual."""
        passed = now - self._at
        return passed if passed > self._usual_s else 0.0

    @property
    def advice(self) -> str:
        """What to look at when there was no row at all."""
        if self._rows:
            return ""
        return self._sensor.advice

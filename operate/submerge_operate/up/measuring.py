"""MeasuringPace: how long it takes at the present rate until enough rows have been measured."""

from __future__ import annotations

from collections import deque

LEAST_S, POINTS = 5.0, 60
"""Seconds between two points, and how many are remembered: the rate is that of five minutes, or of
sixty rows where they come more seldom."""


class MeasuringPace:
    """The rate of measured rows.

    period_s : Seconds between rows; 0 if unknown.
    """

    def __init__(self, period_s: float = 0.0) -> None:
        self._every = max(LEAST_S, period_s)
        self._points: deque[tuple[float, int]] = deque(maxlen=POINTS)

    def take(self, measured: int, now: float) -> None:
        """Take the number of rows so far, at a time on any steady clock."""
        if self._points and measured < self._points[-1][1]:
            self._points.clear()  # other channels are measured now
        if not self._points or now >= self._points[-1][0] + self._every:
            self._points.append((now, measured))

    def left_s(self, measured: int, needed: int, now: float) -> float:
        """Return the time until there are `needed` rows; -1 if none has come of late."""
        if measured >= needed:
            return 0.0
        if not self._points:
            return -1.0
        at, before = self._points[0]
        return (needed - measured) * (now - at) / (measured - before) if measured > before else -1.0

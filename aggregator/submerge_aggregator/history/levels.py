"""Levels of minutes, as the history keeps and shows them: hours of 60 bytes, and steps of minutes.

A level is a byte as in `submerge.protocol.score_trail`; where two are known of one minute, the
higher one is true. So trails that overlap, and reports that come twice, change nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

HOUR = 60
"""Minutes in an hour."""


def hours_of(first: int, levels: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the hours that consecutive minutes touch, with 60 levels each.

    first : the minute of the first level: wall time in seconds, divided by 60 and rounded down
    """
    at = 0
    while at < len(levels):
        hour, offset = divmod(first + at, HOUR)
        part = levels[at : at + HOUR - offset]
        yield hour, bytes(offset) + part + bytes(HOUR - offset - len(part))
        at += len(part)


def higher(one: bytes, other: bytes) -> bytes:
    """Return the higher of two levels, minute by minute."""
    return one if one == other else bytes(map(max, one, other))


def steps_of(hours: Mapping[int, bytes], first: int, step: int, count: int) -> bytes:
    """Return the highest level of each step.

    hours : 60 levels for each hour that is known
    first : the minute with which the first step begins
    step : minutes in a step
    count : steps
    """
    minutes = np.zeros(step * count, np.uint8)
    for hour, levels in hours.items():
        begin = hour * HOUR - first
        low, high = max(begin, 0), min(begin + HOUR, len(minutes))
        if low < high:
            minutes[low:high] = np.frombuffer(levels, np.uint8)[low - begin : high - begin]
    highest: np.ndarray = minutes.reshape(count, step).max(axis=1)
    return highest.tobytes()

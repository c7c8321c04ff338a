"""What the history says, as plain values, as in `questions.views`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

HOUR = 60
"""Minutes in an hour."""


def hours_of(first: int, levels: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the hours that consecutive minutes (Unix time / 60) touch, with 60 levels each."""
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
    """Return the highest level in each of `count` steps of `step` minutes from `first` on."""
    minutes = np.zeros(step * count, np.uint8)
    for hour, levels in hours.items():
        begin = hour * HOUR - first
        low, high = max(begin, 0), min(begin + HOUR, len(minutes))
        if low < high:
            minutes[low:high] = np.frombuffer(levels, np.uint8)[low - begin : high - begin]
    highest: np.ndarray = minutes.reshape(count, step).max(axis=1)
    return highest.tobytes()


@dataclass(frozen=True, slots=True)
class NodeLevels:
    """The levels of a node, a byte a step: `submerge.protocol.score_trail` says what they mean."""

    node: str
    levels: bytes


@dataclass(frozen=True, slots=True)
class ScoresPage:
    """How close the nodes that report to one aggregator came to alarms, over time.

    step_s : Seconds of a step, a multiple of 60. Its level is the highest of its minutes.
    first_s : When the first step begins, Unix seconds, a multiple of `step_s`.
    """

    aggregator: str
    group: str
    step_s: int
    first_s: int
    nodes: list[NodeLevels]
    more: bool = False


@dataclass(frozen=True, slots=True)
class VersionView:
    """A version of a group's model.

    angle_deg : Largest principal angle to the version that was kept before; None where that is not
        known, or of another schema.
    spectrum : Variance along each direction, the largest first, at most 32.
    """

    version: int
    created_s: float
    rank: int
    nodes: int
    readings: int
    angle_deg: float | None
    spectrum: list[float]

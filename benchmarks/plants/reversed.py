"""A fault that only correlations show: sensors whose polarity is reversed.

Each of the fault's channels reads 2 m - x instead of x, clipped to [low, high]. m, low and high are
the mean and the range of its own readings in the two days before the fault. So every channel stays
within its own normal range, with its own spectrum; what breaks is how it moves with the others. A
thermocouple that is connected the wrong way round reads like this, and so does an input whose sign
was changed with the software.

The fault is between the process and the recorded readings: controllers act on the true reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from plants.faults import DAY_S, Draw, Injected, Where, place_faults
from submerge import Array, UsageError

KIND = "reversed"

BEFORE_DAYS = 2.0
"""Of a channel's own readings, which its mirrored readings have the mean and the range of."""


class Usual(NamedTuple):
    """Mean, lowest and highest of each of the fault's channels, (channels,) each."""

    mean: Array
    low: Array
    high: Array


@dataclass
class ReversedSensors:
    """The faults of this kind in a plant.

    faults : All of the plant's; other kinds are passed over.
    names : Channels, in the order of columns.
    read : Rows `start` to `stop` of a node without these faults, (stop - start, channels).
    """

    faults: Sequence[Injected]
    names: Sequence[str]
    period_s: float
    read: Callable[[int, int, int], Array]
    _usual: dict[Injected, Usual] = field(default_factory=dict)

    def rows(self, node: int, start: int, stop: int) -> Array:
        """Return rows `start` to `stop` of a node with its faults, (stop - start, channels)."""
        rows = self.read(node, start, stop)
        for fault in self.faults:
            first, last = max(start, fault.start), min(stop, fault.end)
            if fault.kind == KIND and fault.node == node and first < last:
                columns = [self.names.index(name) for name in fault.channels]
                place = np.ix_(np.arange(first - start, last - start), np.array(columns))
                usual = self._of(fault, columns)
                rows[place] = np.clip(2 * usual.mean - rows[place], usual.low, usual.high)
        return rows

    def _of(self, fault: Injected, columns: list[int]) -> Usual:
        """Return how its channels read before the fault."""
        if fault not in self._usual:
            first = max(0, fault.start - round(BEFORE_DAYS * DAY_S / self.period_s))
            before = self.read(fault.node, first, fault.start)[:, columns]
            if np.isnan(before).all(axis=0).any():
                raise UsageError(
                    f"a fault that is {KIND} needs readings before it, got start {fault.start}"
                )
            self._usual[fault] = Usual(
                np.nanmean(before, axis=0), np.nanmin(before, axis=0), np.nanmax(before, axis=0)
            )
        return self._usual[fault]


def with_reversed(
    rng: np.random.Generator, faults: Sequence[Injected], draw: Draw, where: Where
) -> tuple[Injected, ...]:
    """Return faults, with one of this kind added at a tenth of the nodes, which have no other."""
    free = sorted(set(range(where.nodes)) - {fault.node for fault in faults})
    count = min(where.nodes // 10, len(free))
    drawn = place_faults(rng, (KIND,), draw, where._replace(nodes=len(free)), count=count)
    placed = [replace(each, node=free[each.node]) for each in drawn]
    return tuple(sorted([*faults, *placed], key=lambda fault: (fault.start, fault.node)))

"""Faults of a generated plant's nodes, as plain records.

A fault holds from row `start` up to, not including, `end`; then it is repaired. Four kinds are of
sensors, the same at every plant; docs/plants.md describes the others. Sizes are in the channel's
scale, as in the plant's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from submerge import Array, UsageError
from submerge.drill.drill import shape

SENSOR_KINDS = ("bias", "drift", "stuck", "noise")
"""A sensor is `size` off; drifts by `size` a day; repeats one reading; has noise of that size."""

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault of one node, which alarms are compared with.

    node : From 0.
    channels : tuple of str
        Channels that are right to name: the faulty sensor, or what the fault acts on first. For
        a sensor's fault the first one is the sensor.
    start, end : Rows, half open.
    size : 0 if the kind has none.
    """

    node: int
    kind: str
    channels: tuple[str, ...]
    start: int
    end: int
    size: float = 0.0

    def __post_init__(self) -> None:
        if self.node < 0:
            raise UsageError(f"a fault's node must be at least 0, got {self.node}")
        if not self.channels:
            raise UsageError("a fault must say which channels are right to name, got none")
        if not 0 <= self.start < self.end:
            raise UsageError(f"a fault must end after it starts, got {self.start} to {self.end}")


Draw = Callable[[np.random.Generator, str], tuple[tuple[str, ...], float, float]]
"""Draws channels, size and days for a kind."""


class Where(NamedTuple):
    """Where faults may be: on which of the nodes, and within rows `first` to `last`."""

    nodes: int
    first: int
    last: int
    period_s: float


def place_faults(
    rng: np.random.Generator, kinds: Sequence[str], draw: Draw, where: Where, *, count: int
) -> tuple[Injected, ...]:
    """Draw `count` faults, the kinds in turn, each on a node of its own, by their start.

    None where there is no room for any.
    """
    nodes, first, last, period_s = where
    if not 0 <= count <= nodes:
        raise UsageError(f"n_faults must be from 0 to {nodes}, a node each, got {count}")
    faults = []
    for i, node in enumerate(rng.permutation(nodes)[:count]):
        kind = kinds[i % len(kinds)]
        channels, size, days = draw(rng, kind)
        length = round(days * DAY_S / period_s)
        share = rng.random()
        if last - first >= length:
            start = first + int(share * (last - first - length))
            faults.append(
                Injected(int(node), kind, channels, start, start + length, round(size, 4))
            )
    return tuple(sorted(faults, key=lambda fault: (fault.start, fault.node)))


def offsets_of(fault: Injected, rows: Array, period_s: float, noise: Array) -> Array:
    """Return what a sensor's fault adds at rows (n,), which may be fractions, in scales.

    noise : (n,), standard normal

    Zero outside of the fault's span, and for a kind that does not add.
    """
    inside = (rows >= fault.start) & (rows < fault.end)
    days = (rows - fault.start) * (period_s / DAY_S)
    one = shape(fault.kind, days, noise)
    return np.zeros_like(rows) if one is None else np.where(inside, fault.size * one, 0.0)


def check_faults(
    faults: Sequence[Injected], *, kinds: Sequence[str], nodes: int, names: Sequence[str]
) -> tuple[Injected, ...]:
    """Return a plant's faults by their start; refuse any that it cannot have."""
    for fault in faults:
        if fault.kind not in kinds:
            raise UsageError(f"a fault's kind must be one of {', '.join(kinds)}, got {fault.kind}")
        if fault.node >= nodes:
            raise UsageError(f"a fault's node must be below {nodes}, got {fault.node}")
        unknown = [name for name in fault.channels if name not in names]
        if unknown:
            raise UsageError(f"a fault's channels must be the plant's, got {unknown[0]!r}")
    return tuple(sorted(faults, key=lambda fault: (fault.start, fault.node)))


class Readable(Protocol):
    """A plant with rows of nodes."""

    nodes: int
    n_rows: int


def check_range(plant: Readable, node: int, start: int, stop: int) -> None:
    """Refuse rows that a plant does not have."""
    if not 0 <= start <= stop <= plant.n_rows or not 0 <= node < plant.nodes:
        raise UsageError(
            f"rows must lie in 0 to {plant.n_rows} of nodes 0 to {plant.nodes - 1},"
            f" got {start} to {stop} of node {node}"
        )

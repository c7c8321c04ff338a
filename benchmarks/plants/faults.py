"""What goes wrong at a generated plant's nodes, as plain records: the truth on file.

A fault holds from row `start` up to, not including, `end`; then someone has mended it. Four
kinds befall any sensor, the same at every plant; the others belong to a plant and are told in
docs/plants.md. Sizes are in the channel's scale, as the plant's schema has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from submerge import Array, UsageError

SENSOR_KINDS = ("bias", "drift", "stuck", "noise")
"""Is `size` off; moves away at `size` a day; repeats one reading; gains noise of that size."""

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Injected:
    """One fault of one node: what a detector is held against.

    Attributes
    ----------
    node : int
        From 0.
    kind : str
    channels : tuple of str
        Those that are right to name: the sensor that is out of order, or what the fault acts on
        first. Of a sensor's fault the first one is the sensor.
    start, end : int
        Rows, half open.
    size : float
        0 where the kind has none.
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
"""Draws for a kind which channels, how large, and for how many days."""


def placed(
    rng: np.random.Generator,
    kinds: Sequence[str],
    draw: Draw,
    *,
    nodes: int,
    count: int,
    first: int,
    last: int,
    period_s: float,
) -> tuple[Injected, ...]:
    """Draw `count` faults, the kinds in turn, each on a node of its own, by their start.

    All lie within rows `first` to `last`; none where there is no room for any.
    """
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


def added(fault: Injected, rows: Array, period_s: float, noise: Array) -> Array:
    """Return what a sensor's fault adds at rows (n,), not all of them whole, in scales.

    noise : (n,), standard normal

    Nothing outside the fault's span, nor by a kind that does not add.
    """
    inside = (rows >= fault.start) & (rows < fault.end)
    days = (rows - fault.start) * (period_s / DAY_S)
    shape = {"bias": np.ones_like(rows), "drift": days, "noise": noise}.get(fault.kind)
    return np.zeros_like(rows) if shape is None else np.where(inside, fault.size * shape, 0.0)


def checked(
    faults: Sequence[Injected], *, kinds: Sequence[str], nodes: int, names: Sequence[str]
) -> tuple[Injected, ...]:
    """Return a plant's faults by their start; refuse any that cannot befall it."""
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
    """What has rows of nodes."""

    nodes: int
    n_rows: int


def within(plant: Readable, node: int, start: int, stop: int) -> None:
    """Refuse rows that a plant does not have."""
    if not 0 <= start <= stop <= plant.n_rows or not 0 <= node < plant.nodes:
        raise UsageError(
            f"rows must lie in 0 to {plant.n_rows} of nodes 0 to {plant.nodes - 1},"
            f" got {start} to {stop} of node {node}"
        )

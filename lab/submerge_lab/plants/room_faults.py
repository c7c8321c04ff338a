"""Faults of motes, as plain records, and their effects on readings. A fault holds from snapshot
`start` up to, not including, `end`; then the mote is repaired. It acts on readings before some are
lost on the air, so a dropout hides a fault too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from submerge import Array, UsageError
from submerge_lab.plants.room_plan import MOTES

Kind = Literal["stuck", "drift", "noise", "offset", "dying"]
KINDS: tuple[Kind, ...] = get_args(Kind)
QUANTITIES = ("temperature", "humidity", "light", "voltage")

SNAPSHOT_S = 31.0
DYING_S = 6 * 3600.0
"""How long a low battery takes to move a mote's readings to their final values."""

FLAT = {"temperature": 122.15, "humidity": -4.0, "voltage": 2.0}
"""These final values: what the Berkeley motes reported with a flat battery."""

SIZES: dict[Kind, dict[str, tuple[float, float]]] = {
    "drift": {"temperature": (4.0, 8.0), "humidity": (10.0, 20.0), "voltage": (0.10, 0.20)},
    "noise": {
        "temperature": (1.0, 2.5),
        "humidity": (3.0, 6.0),
        "light": (120.0, 250.0),
        "voltage": (0.04, 0.08),
    },
    "offset": {"temperature": (3.0, 6.0), "humidity": (8.0, 15.0), "voltage": (0.10, 0.20)},
    "stuck": {"temperature": (0.0, 0.0), "humidity": (0.0, 0.0), "light": (0.0, 0.0)},
    "dying": {"temperature": (0.0, 0.0)},
}
"""Ranges of sizes by kind and quantity, in its unit (drift: a day)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a mote, which alarms are compared with.

    mote : From 1.
    quantity : The quantity that it shows in; with a dying mote also humidity and voltage.
    kind : The sensor repeats one reading; drifts by `size` a day; has noise of standard deviation
        `size`; is `size` off; or its battery is low and its temperature runs away.
    start, end : Snapshots, half open.
    size : In the quantity's unit; 0 if the kind has none.
    """

    mote: int
    quantity: str
    kind: Kind
    start: int
    end: int
    size: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.mote <= MOTES:
            raise UsageError(f"a fault's mote must be from 1 to {MOTES}, got {self.mote}")
        if self.quantity not in SIZES.get(self.kind, ()):
            raise UsageError(
                f"a fault of kind {self.kind!r} is of {', '.join(SIZES.get(self.kind, KINDS))},"
                f" got {self.quantity!r}"
            )
        if not 0 <= self.start < self.end:
            raise UsageError(f"a fault must end after it starts, got {self.start} to {self.end}")

    @property
    def quantities(self) -> tuple[str, ...]:
        """The quantities that it changes."""
        return tuple(FLAT) if self.kind == "dying" else (self.quantity,)

    @property
    def channel(self) -> str:
        """Name of the channel that it shows in."""
        return f"mote{self.mote:02d}.{self.quantity}"


def draw_faults(
    rng: np.random.Generator, *, count: int, first: int, last: int
) -> tuple[Fault, ...]:
    """Draw `count` faults, the kinds in turn, each on a mote of its own."""
    # They begin in the first three quarters of the span from `first` to `last`, and hold for one to
    # two days or until `last`.
    day = round(24 * 3600 / SNAPSHOT_S)
    faults = []
    for i, mote in enumerate(rng.permutation(MOTES)[:count] + 1):
        kind = KINDS[i % len(KINDS)]
        quantity = str(rng.choice(list(SIZES[kind])))
        low, high = SIZES[kind][quantity]
        size, sign = float(rng.uniform(low, high)), int(rng.choice([-1, 1]))
        if kind in ("drift", "offset"):
            size *= -1 if quantity == "voltage" else sign  # batteries do not charge
        start = int(rng.integers(first, first + max(1, (last - first) * 3 // 4)))
        end = min(last, start + int(day * rng.uniform(1.0, 2.0)))
        faults.append(Fault(int(mote), quantity, kind, start, end, round(size, 3)))
    return tuple(sorted(faults, key=lambda fault: fault.start))


def spoil(
    sound: Array,
    fault: Fault,
    *,
    first: int,
    sound_at: Callable[[int], Array],
    rng: np.random.Generator,
) -> None:
    """Apply a fault in place to `sound` (n, motes, quantities), from snapshot `first` on."""
    # `rng` is a new one: noise is drawn for the whole span, so that pages agree.
    rows = slice(max(0, fault.start - first), max(0, fault.end - first))
    age = np.arange(first, first + len(sound))[rows] - fault.start
    if not len(age):
        return
    place = fault.mote - 1, QUANTITIES.index(fault.quantity)
    column = sound[rows, *place]
    match fault.kind:
        case "stuck":
            column[:] = sound_at(fault.start)[place]
        case "drift":
            column += fault.size * age * SNAPSHOT_S / (24 * 3600)
        case "offset":
            column += fault.size
        case "noise":
            column += fault.size * rng.standard_normal(fault.end - fault.start)[age]
        case "dying":
            gone = np.minimum(1.0, age * SNAPSHOT_S / DYING_S)
            for quantity, flat in FLAT.items():
                # The voltage falls first; the others follow.
                share = gone if quantity == "voltage" else gone**2
                series = sound[rows, fault.mote - 1, QUANTITIES.index(quantity)]
                series += share * (flat - series)

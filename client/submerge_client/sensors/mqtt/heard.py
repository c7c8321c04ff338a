"""Heard: which fields were heard, how often, and with which units.

`submerge init` proposes channels from it; the sensor names in the log what its schema lacks. Names
come from any device of the network, so their number is bounded: further ones are counted only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from submerge.pca.subspace import LARGEST

MOST_NAMES = 2048
"""Fields that are remembered."""


@dataclass(slots=True)
class HeardField:
    """A field of a device.

    name : `device/field`.
    count : Readings of it.
    changes : Readings that differed from the one before.
    first_s, last_s : When the first and the last came, in seconds on the caller's clock.
    lowest, highest, last : Of its values.
    unit : "" while none is known.
    falls : Readings that were lower than the one before.
    longest_s : The longest time between two readings.
    mean, squares : Of its values, and the sum of their squared differences from it.
    """

    name: str
    count: int
    changes: int
    first_s: float
    last_s: float
    lowest: float
    highest: float
    last: float
    unit: str = ""
    falls: int = 0
    longest_s: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of its values; 0 after one reading."""
        return math.sqrt(self.squares / self.count)

    @property
    def every_s(self) -> float | None:
        """The mean time between readings; None before the second."""
        return (self.last_s - self.first_s) / (self.count - 1) if self.count > 1 else None


class Heard:
    """The fields that were heard.

    most : Names that are remembered.

    fields : By name, in the order in which they were first heard.
    crowded : Readings of names beyond `most`.
    """

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._units: dict[str, str] = {}
        self.fields: dict[str, HeardField] = {}
        self.crowded = 0

    def add(self, name: str, value: float, now: float, *, unit: str = "") -> bool:
        """Take a reading that an engine can take; return whether it is the first of its name."""
        if not abs(value) <= LARGEST:
            return False
        known = self.fields.get(name)
        if known is None:
            if len(self.fields) >= self._most:
                self.crowded += 1
                return False
            unit = unit or self._units.get(name, "")
            self.fields[name] = HeardField(
                name, 1, 0, now, now, value, value, value, unit, mean=value
            )
            return True
        known.count += 1
        known.changes += value != known.last
        known.falls += value < known.last
        known.longest_s = max(known.longest_s, now - known.last_s)
        known.last_s, known.last = now, value
        known.lowest, known.highest = min(known.lowest, value), max(known.highest, value)
        known.unit = unit or known.unit
        off = value - known.mean
        known.mean += off / known.count
        known.squares += off * (value - known.mean)
        return False

    def copies(self, wanted: Callable[[str], bool]) -> list[HeardField]:
        """Return the fields whose names are wanted, as they are now."""
        return [replace(field) for name, field in self.fields.items() if wanted(name)]

    def set_unit(self, name: str, unit: str) -> None:
        """Take a unit from a description, which may come before the first reading."""
        if name in self.fields:
            self.fields[name].unit = unit
        elif len(self._units) < self._most or name in self._units:
            self._units[name] = unit

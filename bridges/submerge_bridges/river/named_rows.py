"""NamedRows: river's rows, which are features by name, as rows of one width.

1. The channels are the features of the first rows, in a fixed order that does not depend on the
   order in which a row has them.
2. A feature that a row lacks, or that is None, NaN or masked, is a gap.
3. A feature that is no channel is left out, and counted when its row is learnt.
4. What is not a number is refused, and nothing of its row is taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from river import base

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.history.settings import MOST_CHANNELS


class OfNamedRows:
    """An estimator whose rows are `NamedRows`."""

    _rows: NamedRows

    @property
    def channels(self) -> tuple[base.typing.FeatureName, ...]:
        """The features that are learnt, sorted by name."""
        return self._rows.channels

    @property
    def unknown(self) -> int:
        """Values that were left out because their feature is not learnt."""
        return self._rows.unknown


class NamedRows:
    """Collects rows, and hands them on in blocks.

    first, block : Rows of the first block; every other one ends at a multiple of so many rows.
    channels : Names of the channels; empty before the first block is full.
    unknown : Values of learnt rows that were left out because their feature is no channel.
    """

    def __init__(self, *, first: int, block: int) -> None:
        self._first, self._block = first, block
        self._waiting: list[dict[Hashable, float]] = []
        self._names: set[Hashable] = set()
        self._rows: list[Array] = []
        self._seen = 0
        self.channels: tuple[Hashable, ...] = ()
        self.unknown = 0

    def add(self, x: Mapping[Any, Any]) -> Array | None:
        """Take a row; return the block (n, channels) that it completes, if it completes one."""
        if not self.channels:
            return self._look(x)
        self._rows.append(self.row(x)[0])
        self._seen += 1
        if x.keys() != self._names:
            self.unknown += len(x.keys() - self._names)
        if self._seen % self._block:
            return None
        block, self._rows = np.array(self._rows), []
        return block

    def row(self, x: Mapping[Any, Any]) -> Array:
        """Return the channels of a row, (1, channels), NaN where it has none."""
        values = [*map(x.get, self.channels)]
        try:
            found = np.array(values)
        except ValueError:  # lists of several lengths
            found = np.array(None)
        if found.dtype.kind not in "fiub" or found.ndim != 1:
            found = np.array([_number(*each) for each in zip(self.channels, values, strict=True)])
        return found.astype(np.float64, copy=False)[None, :]

    def _look(self, x: Mapping[Any, Any]) -> Array | None:
        """Take one of the first rows, by which channels are named."""
        row = {name: _number(name, value) for name, value in x.items()}
        names = self._names | row.keys()
        if len(names) > MOST_CHANNELS:
            raise UsageError(
                f"expected at most {MOST_CHANNELS} features, got {len(names)}: select some before"
            )
        if not names:
            return None  # nothing to hold: there may be any number of empty rows
        self._names = names
        self._waiting.append(row)
        self._seen += 1
        if len(self._waiting) < self._first:
            return None
        self.channels = tuple(sorted(names, key=lambda name: (type(name).__name__, str(name))))
        block = np.concatenate([self.row(each) for each in self._waiting])
        self._waiting = []
        return block


def _number(name: Hashable, value: object) -> float:
    if value is None or value is np.ma.masked:
        return np.nan
    if not isinstance(value, Real | np.bool_):
        raise UsageError(
            f"feature {name!r} must be a number, got {value!r}: select numbers before, for example"
            " by compose.SelectType(numbers.Number)"
        )
    try:
        return float(value)
    except OverflowError:  # a whole number without end is as large as any
        return -np.inf if value <= 0 else np.inf

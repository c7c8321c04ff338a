"""NewestRows: the last rows of a history, for a drill."""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.judge.prepare import Block

MOST_ROWS = 4096
"""Rows that are held."""


class NewestRows:
    """Holds the newest prepared rows of the machine that came last.

    machine : As in `Cell`; None before the first rows.
    """

    def __init__(self) -> None:
        self.machine: int | None = None
        self._parts: list[Array] = []

    def add(self, machine: int, block: Block) -> None:
        """Take rows that follow those before."""
        if machine != self.machine:
            self.machine, self._parts = machine, []
        rows = block.rows if block.gaps is None else np.where(block.gaps, np.nan, block.rows)
        self._parts.append(rows)
        while sum(map(len, self._parts[1:])) >= MOST_ROWS:
            del self._parts[0]

    @property
    def rows(self) -> Array:
        """(n, channels), scaled, oldest first; NaN is a gap."""
        return np.concatenate(self._parts)[-MOST_ROWS:] if self._parts else np.empty((0, 0))

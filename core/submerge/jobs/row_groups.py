"""RowGroups: a sample of a stream's rows, in groups of eight that come, go and are held out whole.

What jobs are told are sums. Those of two jobs differ by whole groups, however each splits the rows
that a node holds and whatever has come between them: by no single row (docs/privacy.md).
"""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import ShapeError, whole
from submerge.features.draws import uniforms
from submerge.protocol.names import RandomSource

GROUP = 8


class RowGroups:
    """At most `most` rows of a stream, each as likely as any other."""

    def __init__(self, most: int, width: int, rng: RandomSource) -> None:
        self._rng = rng
        self._most = whole("most", most, least=1) // GROUP
        self._groups: Array = np.empty((self._most, GROUP, width))
        self._order = np.empty(self._most)
        self._next = np.empty((GROUP, width))
        self._waiting = self._held = self.seen = 0

    def __len__(self) -> int:
        return GROUP * self._held

    @property
    def rows(self) -> Array:
        """A copy of its rows, (n, width), group by group."""
        return self._groups[: self._held].reshape(-1, self._groups.shape[2]).copy()

    @property
    def order(self) -> Array:
        """(n,), a secret number of (0, 1) for each row: its group's, for as long as it is held."""
        return np.repeat(self._order[: self._held], GROUP)

    def add(self, rows: Array) -> None:
        """Let rows (n, width) into the sample, as far as they are drawn."""
        if rows.ndim != 2 or rows.shape[1] != self._next.shape[1]:
            raise ShapeError("rows", expected=f"(n, {self._next.shape[1]})", got=rows.shape)
        if not self._most:
            return
        seen = self.seen + np.arange(1, len(rows) + 1)
        self.seen += len(rows)
        for row in rows[self._draw(len(rows)) * seen < GROUP * self._most]:
            self._next[self._waiting] = row
            self._waiting += 1
            if self._waiting == GROUP:
                self._take()

    def _take(self) -> None:
        """Take the group that is full, for one by chance where there is no room."""
        place, self._waiting = self._held, 0
        if self._held < self._most:
            self._held += 1
        else:
            place = int(self._draw(1)[0] * self._most)
        self._groups[place], self._order[place] = self._next, self._draw(1)[0]

    def _draw(self, n: int) -> Array:
        return uniforms(np.frombuffer(self._rng.bytes(8 * n), dtype="<u8"))

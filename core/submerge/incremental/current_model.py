"""CurrentModel: a model for rows that are scored one by one, made again as rows come.

To make a model takes as long as to score some hundred rows. So it is made when the rows are
`GROWTH` times as many as those of the last one, and never because it is read: which model scores a
row follows from the rows before it alone.

With a window, two histories learn at once. When the newer one has as many rows as the window, the
older one is dropped and another begins: the model is of the last `window` to twice as many rows.
"""

from __future__ import annotations

from submerge._linalg import Array
from submerge.errors import NothingLearnt
from submerge.history.settings import FitSettings
from submerge.incremental.row_history import GROWTH, RowHistory
from submerge.incremental.row_model import RowModel

QUICK = FitSettings(rank=1)
"""Distances do not depend on the rank that is shown, and to choose one takes the most time."""


class CurrentModel:
    """Learns rows in the order of time, and has a model of them.

    width : Channels of a row.
    first : Rows of the first model.
    window : Rows that the model is of at least, once there were so many; it is of at most twice as
        many. By default it is of all rows.

    model : None before `first` rows, and while nothing varies.
    start, stop : The model is of the rows from `start` up to `stop`, counted from the first that
        came.
    """

    def __init__(self, width: int, *, first: int, window: int | None = None) -> None:
        self._width, self._first, self._window = width, first, window
        self._histories = [self._empty()]
        self._seen = 0
        self.model: RowModel | None = None
        self.start = self.stop = 0

    def add(self, rows: Array) -> None:
        """Learn rows (n, channels) in their units, after those before; NaN is a gap."""
        newest = self._histories[-1]
        if self._window is not None and newest.seen >= self._window:
            self._histories = [newest, self._empty()]
        for history in self._histories:
            history.add(rows)
        self._seen += len(rows)
        self._make()

    def _empty(self) -> RowHistory:
        return RowHistory([f"x{i}" for i in range(self._width)], QUICK, measures=False)

    def _make(self) -> None:
        oldest = self._histories[0]
        start = self._seen - oldest.seen
        enough = self._first if start != self.start else GROWTH * (self.stop - self.start)
        if oldest.seen < max(self._first, enough):
            return
        try:
            self.model = oldest.model
        except NothingLearnt:
            return  # rows that vary may come
        self.start, self.stop = start, self._seen

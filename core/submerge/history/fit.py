"""fit(): a history becomes a model with limits, in two passes over its rows.

    times of all rows   ->  layout of cells
    rows                ->  summaries of cells, keys of chunks
    folds of all cells  ->  rows again: scores of rows that were not learnt

Rows are read by a `HistoryRows`: here, as one part, or part by part by workers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.monitor_state import MonitorState
from submerge.errors import NothingLearnt, UsageError
from submerge.history.first_pass import FirstPass
from submerge.history.folds import Folds, HeldOut, HistorySpan, folds_of, spans_of
from submerge.history.knowledge import model_of, summaries_of
from submerge.history.layout import Layout
from submerge.history.recording import Recorded
from submerge.history.second_pass import JudgedHistory, NewestRows, Peaks, SecondPass
from submerge.history.settings import FitSettings
from submerge.judge.prepare import none_left
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.history import Chunk
from submerge.protocol.messages import Counts, Model, ScoreSketches
from submerge.schema import Channel

CHUNK = 65536  # most rows of a chunk

FORM = b"submerge chunk 1\n"


class ChunkKeys:
    """Makes the chunks of rows, of channels with such names, that come file by file."""

    def __init__(self, names: Sequence[str]) -> None:
        self._head = FORM + json.dumps(list(names)).encode() + b"\n"
        self._hash = hashlib.sha256(self._head)
        self._open: Chunk | None = None
        self._done: list[Chunk] = []

    def add(self, recorded: Recorded) -> None:
        """Take rows that follow those before, or the first of another file."""
        start = 0
        while start < len(recorded.rows):
            chunk = self._open
            if chunk is not None and (_whence(chunk) != _whence(recorded) or chunk.rows == CHUNK):
                self._close()
                chunk = None
            stop = min(len(recorded.rows), start + CHUNK - (0 if chunk is None else chunk.rows))
            times = None if recorded.times is None else recorded.times[start:stop]
            if chunk is None:
                self._hash.update(b"rows\n" if times is None else b"times and rows\n")
            self._hash.update(_bytes(recorded.rows[start:stop], times).data)
            last = np.nan if times is None else float(times[-1])
            if chunk is None:
                first = np.nan if times is None else float(times[0])
                chunk = Chunk(b"", recorded.machine, 0, first, last, recorded.file)
            self._open = replace(chunk, rows=chunk.rows + stop - start, last=last)
            start = stop

    def end(self) -> tuple[Chunk, ...]:
        """Return all chunks, by key; the same rows once."""
        self._close()
        by_key = {chunk.key: chunk for chunk in reversed(self._done)}
        return tuple(by_key[key] for key in sorted(by_key))

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(replace(self._open, key=self._hash.digest()))
        self._hash, self._open = hashlib.sha256(self._head), None


def _whence(rows: Chunk | Recorded) -> tuple[str, str]:
    return rows.machine, rows.file


def _bytes(rows: Array, times: Array | None) -> npt.NDArray[np.float64]:
    """Return rows as what is hashed; a gap is a gap, whatever its bits are, and so is zero."""
    first = 0 if times is None else 1
    plain = np.empty((len(rows), first + rows.shape[1]), dtype="<f8")
    if times is not None:
        np.add(times, 0.0, out=plain[:, 0])
    np.add(rows, 0.0, out=plain[:, first:])
    gaps = np.isnan(plain)
    if gaps.any():
        plain[gaps] = np.nan
    return plain


FAR_ABOVE = 6.0
"""Times a usual block's highest score from which limits are said to be far above it: where rows
are alike, they are 2 to 4 times that, and up to 5 where what they vary by lasts for an hour."""

RAISING = 0.5  # share of the highest score of all cells from which a cell has raised the limits
Read = Callable[[], Iterable[Recorded]]  # reads a history from its start

Look = Callable[[], Iterable[Recorded]]
"""Reads its times from its start: rows of any width, with those channels alone that a condition
asks for."""

Advance = Callable[[int], None]  # takes numbers of rows that were read


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A history that was learnt: what scores, the scatter of all, scaled, and its pass."""

    model: Model
    scatter: WholeScatter
    folds: Folds
    first: FirstPass
    sketches: ScoreSketches
    states: Mapping[str, MonitorState]  # of each machine
    chunks: tuple[Chunk, ...] = ()
    newest: NewestRows = field(default_factory=NewestRows)  # to try faults on
    peaks: Peaks = field(default_factory=dict)  # the largest scores of each cell

    @property
    def explained(self) -> float:
        """Share of the variance along the directions that SPE and T2 are of."""
        shown = self.scatter.directions(self.folds.rank)
        return float(np.square(shown.sigma).sum()) / self.scatter.energy

    def raised(self, limits: AlarmLimits) -> tuple[float, tuple[HistorySpan, ...]]:
        """Return how many times a usual block's highest score limits are, and which rows did it."""
        seen = {kind for each in self.peaks.values() for kind in each}
        times = {
            kind: limits.known[kind] / usual
            for kind, usual in limits.ordinary.items()
            if usual and kind in seen
        }
        kind, most = max(times.items(), key=lambda each: each[1], default=(None, 1.0))
        # 1 where nothing is known of blocks.
        if kind is None or most <= FAR_ABOVE:
            return most, ()
        peaks = {cell: each[kind] for cell, each in self.peaks.items() if kind in each}
        least = RAISING * max(peaks.values())
        raising = {cell: 0.0 for cell, peak in peaks.items() if peak >= least}
        return most, spans_of(raising, self.folds.cells)


class HistoryRows(Protocol):
    """The rows of a history, wherever they are read."""

    def look(self, layout: Layout) -> None:
        """Show their times to a layout."""

    def learn(self, first: FirstPass) -> tuple[Chunk, ...]:
        """Give them to a first pass; return their chunks, by key."""

    def judge(self, second: SecondPass) -> None:
        """Give them to a second pass, as far as it needs them."""


@dataclass
class LocalRows:
    """Rows that are read in this process, and `seen` as they are."""

    read: Read
    times: Look
    seen: Callable[[Recorded], None] = lambda _: None

    def look(self, layout: Layout) -> None:
        for recorded in self.times():
            layout.add(recorded)

    def learn(self, first: FirstPass) -> tuple[Chunk, ...]:
        keys = ChunkKeys(first.names)
        for recorded in self.read():
            self.seen(recorded)
            first.add(recorded)
            keys.add(recorded)
        return keys.end()

    def judge(self, second: SecondPass) -> None:
        for recorded in self.read():
            self.seen(recorded)
            second.add(recorded)
            if second.is_done:
                return


def fit(
    read: Read,
    channels: Sequence[Channel | str],
    settings: FitSettings | None = None,
    *,
    look: Look | None = None,
    advance: Advance = lambda _: None,
) -> Fitted:
    """Learn a history; `read` is called two to four times, for the same rows in the same order."""
    # `look` reads the times alone, where that is cheaper.
    rows = LocalRows(read, look or read, lambda recorded: advance(len(recorded.rows)))
    return fit_rows(rows, channels, settings or FitSettings())


def fit_rows(rows: HistoryRows, channels: Sequence[Channel | str], settings: FitSettings) -> Fitted:
    """Learn a history, wherever its rows are read; NothingLearnt if none, or all alike."""
    known = [Channel(each) if isinstance(each, str) else each for each in channels]
    names = [channel.name for channel in known]
    FirstPass(names, settings)  # refuses too many channels, before rows are read
    layout = Layout(len(names), settings)
    rows.look(layout)
    laid = layout.laid_out()
    if laid is None:
        raise NothingLearnt("expected rows that can be learnt, got none")
    first = FirstPass(names, settings, laid)
    chunks = rows.learn(first)
    first.end()
    if fills := first.known_once_more():
        first = FirstPass(names, settings, laid, fills)
        rows.learn(first)
        first.end()
    _check(first, settings)
    folds = folds_of(first.cells, known, settings)
    _check_varying(folds)
    first.cells.clear()
    judge = HeldOut.of(folds, laid)
    # How long scores stay alike, and so how long a block is, a part of the rows says.
    second = SecondPass(judge, settings, last_fold=0)
    rows.judge(second)
    block_s = second.end().block_s
    second = SecondPass(judge.of_blocks(block_s), settings)
    rows.judge(second)
    return fitted(first, folds, second.end(), settings, block_s, chunks)


def _check(first: FirstPass, settings: FitSettings) -> None:
    """Refuse a history without rows to learn, or with fewer of them than channels."""
    learnt = round(sum(cell.weight for cell in first.cells.values()))
    if not learnt:
        none = none_left(first.rows, first.left_out, settings.when)
        raise NothingLearnt(f"expected rows that can be learnt, got {none}")
    width = len(first.names)
    if learnt < width:
        raise UsageError(
            f"expected more rows than channels, got {learnt:,} rows that can be learnt, of {width}"
            " channels: give more rows, or fewer channels; a table may lie on its side"
        )


def _check_varying(folds: Folds) -> None:
    """Refuse channels of which one alone varies: none says what another should be."""
    names = folds.schema.names
    varying = [name for name, each in zip(names, folds.moments.variance, strict=True) if each > 0]
    if len(varying) < 2 <= len(names):
        raise UsageError(
            f"expected two channels that vary, got {varying[0]} alone, and the other"
            f" {len(names) - 1} constant: give more columns, or rows in which they vary"
        )


def fitted(
    first: FirstPass,
    folds: Folds,
    judged: JudgedHistory,
    settings: FitSettings,
    block_s: float,
    chunks: tuple[Chunk, ...],
) -> Fitted:
    """Put together what both passes have come to; `block_s`: of the blocks that were counted."""
    scatter, names = folds.whole, first.machines
    model = model_of(
        scatter,
        folds.schema,
        summaries_of(folds.rank, settings),
        rank=folds.rank,
        version=1,
        nodes=len({cell.machine for cell in folds.cells}),
        scores=judged.sketches,
        counts=Counts(round(scatter.weight), first.rows - round(scatter.weight)),
        block_s=block_s,
        # Rows without times have NaN.
        at=max((cell.last for cell in folds.cells.values() if cell.last == cell.last), default=0.0),
    )
    # A single fold has learnt all rows, and a mean of less than a day says nothing of others,
    # unless all are: runs that are short, and will be.
    known = [each for each in judged.states.values() if each.own is None or each.own.settled]
    known = known or [*judged.states.values()]
    parts = [each.detector.highest for each in known if folds.count > 1]
    highest = HighestSoFar.pooled(parts)
    states = {
        names[machine]: replace(
            state,
            detector=replace(state.detector, highest=highest),
            desired=DesiredState(names[machine], 0),
        )
        for machine, state in judged.states.items()
    }
    newest, peaks = judged.newest, judged.peaks
    return Fitted(model, scatter, folds, first, judged.sketches, states, chunks, newest, peaks)

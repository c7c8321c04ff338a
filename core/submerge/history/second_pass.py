"""SecondPass: the rows of a history, judged machine by machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.client.alarms.detector import DetectorState
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.monitor import NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.history.folds import HeldOut
from submerge.history.knowledge import follow
from submerge.history.layout import Cell, CellBlock, CellBlocks
from submerge.history.models import summaries_of
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings
from submerge.judge.prepare import Block, RowTime, prepare
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.settings import ClientSettings
from submerge.stats.block_length import group_block_s
from submerge.stats.block_maxima import (
    KINDS,
    WINDOW_S,
    BlockMaxima,
    BlockMaximaTally,
    By,
    pooled,
)
from submerge.stats.quantile_sketch import QuantileSketch, SketchTally, merged, quantile

# A monitor remembers, so rows are judged one after another. So a machine with more than
# `judged_rows` rows is judged in spans of so many, each by a monitor of its own.


# Rows pass the client's own monitor: scores, block maxima and the habits of channels are what a
# client would have reported. A monitor remembers, so the rows of a machine are judged one after
# another; machines have nothing to do with each other, and may be judged apart.


MOST_ROWS = 4096
"""Rows that are held."""


class NewestRows:
    """Holds the newest prepared rows of the machine that came last; None before the first."""

    def __init__(self) -> None:
        self.machine: int | None = None
        self._parts: list[Array] = []

    @classmethod
    def of(cls, machine: int | None, rows: Array) -> NewestRows:
        """Return what holds the rows (n, channels) of a machine."""
        held = cls()
        held.machine, held._parts = machine, [rows] if len(rows) else []
        return held

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


Peaks = Mapping[Cell, Mapping[By, float]]
"""The largest block maximum of each kind of score in each cell."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedMachine:
    """What came of one machine's rows: sketches with block maxima, and its state.

    `lengths` is 1 at the length of a block that its rows call for, as in `BlockMaxima.lengths`;
    `peaks` are the largest block maxima of each cell.
    """

    sketches: ScoreSketches
    lengths: tuple[int, ...]
    state: MonitorState
    newest: NewestRows
    peaks: Peaks


@dataclass
class MachinePass:
    """Takes the rows of one machine, in the order of time; `taken` count."""

    judge: HeldOut
    settings: FitSettings
    newest: NewestRows = field(default_factory=NewestRows)
    taken: int = 0
    _maxima: list[BlockMaxima] = field(default_factory=list)
    _peaks: dict[Cell, dict[By, float]] = field(default_factory=dict)
    _rows: int = 0

    def __post_init__(self) -> None:
        row_s = self.judge.row_s
        # All rows count: none is held to the provisional limits of the rows before it.
        alarms = replace(self.settings.alarms, period_s=row_s, max_withheld_s=0.0)
        client = ClientSettings("machine", "history", "file", alarms=alarms, fills_gaps=True)
        summaries = summaries_of(self.judge.rank, self.settings)
        self._monitor = NodeMonitor(client, self.judge.schema, summaries)
        self._spe, self._t2, self._distance = _tallies()

    def take(self, block: CellBlock, fold: int) -> None:
        """Judge rows of a fold."""
        model, self.taken = self.judge.model(fold, self.settings), self.taken + len(block.rows)
        most = max(1, int(WINDOW_S / self.judge.row_s))
        for first in range(0, len(block.rows), most):
            times = None if block.times is None else block.times[first : first + most]
            self._judge(CellBlock(block.cell, block.rows[first : first + most], times), model)
            self._take_maxima(block.cell)

    def forget_counts(self) -> None:
        """Count from zero, but for the open block: only what the monitor has learnt stays."""
        self.taken, self._maxima, self._peaks = 0, [], {}
        if self._monitor.detector is not None:
            self._monitor.detector = replace(self._monitor.detector, highest=HighestSoFar())
        self._spe, self._t2, self._distance = _tallies()

    def end(self) -> JudgedMachine:
        """Return what came of them."""
        maxima = None
        if self._maxima:
            # Cells are one after another.
            longest = sum(each.longest for each in self._maxima)
            maxima = replace(pooled(*self._maxima), longest=longest, lengths=self.lengths)
        spe, t2, distance = self._spe.sketch, self._t2.sketch, self._distance.sketch
        kept = self._monitor.kept
        state = replace(
            kept,
            detector=DetectorState(highest=kept.detector.highest),
            reference=None,
            held=None,
            level=None,
            offset=None,
        )
        sketches = ScoreSketches(spe, t2, None, maxima, distance)
        return JudgedMachine(sketches, self.lengths, state, self.newest, self._peaks)

    @property
    def lengths(self) -> tuple[int, ...]:
        """As in `JudgedMachine`."""
        detector = self._monitor.detector
        return () if detector is None else detector.hours.correlation.lengths

    def _judge(self, block: CellBlock, model: Model) -> None:
        rows, times, monitor = block.rows, block.times, self._monitor
        self._rows += len(rows)
        steady = self._rows * self.judge.row_s
        now = Now(steady, steady if times is None else float(times[-1]))
        prepared = prepare(
            rows,
            self.judge.schema,
            fill=lambda gappy: monitor.filled(gappy, model),
            when=self.settings.when,
            time=RowTime(self.judge.row_s),
        )
        if not len(prepared):
            return
        ready = monitor.own is None or monitor.own.ready
        judged = monitor.judge(prepared, model, now)
        follow(monitor, prepared, judged if ready else None)
        if not ready:
            return
        self.newest.add(block.cell.machine, prepared)
        even = judged.scores.even
        self._spe.add(even["spe"])
        self._t2.add(even["t2"])
        if "distance" in even:
            self._distance.add(even["distance"])

    def _take_maxima(self, cell: Cell) -> None:
        """Put the maxima of a cell aside: a node forgets those of more than some weeks."""
        monitor = self._monitor
        detector = monitor.detector
        if detector is None or detector.hours.tally.blocks == 0:
            return
        hours = detector.hours
        maxima, peaks = hours.tally.maxima, self._peaks.setdefault(cell, {})
        self._maxima.append(maxima)
        for kind in KINDS:
            if maxima.of(kind).n:
                peaks[kind] = max(peaks.get(kind, 0.0), quantile(maxima.of(kind), 1.0))
        # The block that has not ended goes on.
        tally = BlockMaximaTally(None, 0, hours.tally.block_s)
        monitor.detector = replace(detector, hours=replace(hours, tally=tally))


def _tallies() -> tuple[SketchTally, SketchTally, SketchTally]:
    most = 2**62
    return SketchTally(most), SketchTally(most), SketchTally(most)


LEAD = 16
"""A lead is a span over this."""


class RowSpan(NamedTuple):
    """Rows of a machine judged in one go, numbered from 0: a lead, then those that count."""

    number: int
    lead: int
    begin: int
    end: int


def spans_over(first: int, last: int, judged_rows: int) -> Iterator[RowSpan]:
    """Yield the spans that have some of the rows `first` to `last` - 1, or lead into them."""
    lead = judged_rows // LEAD
    for number in range(first // judged_rows, (last - 1 + lead) // judged_rows + 1):
        begin = number * judged_rows
        yield RowSpan(number, max(0, begin - lead), begin, begin + judged_rows)


def joined(spans: Mapping[int, JudgedMachine]) -> JudgedMachine:
    """Return what came of a machine's spans; what is known of it is what the last one knows."""
    ordered = [spans[number] for number in sorted(spans)]
    last = ordered[-1]
    if len(ordered) == 1:
        return last
    state, runs = last.state, last.state.run_lengths
    for each in reversed(ordered[:-1]):
        if runs is not None and each.state.run_lengths is not None:
            runs = runs.with_range_of(each.state.run_lengths)
    sketches = [each.sketches for each in ordered]
    maxima = tuple(each.maxima for each in sketches if each.maxima is not None)
    together = ScoreSketches(
        merged(*(each.spe for each in sketches)),
        merged(*(each.t2 for each in sketches)),
        None,
        # Spans are one after another.
        in_a_row(maxima, last.lengths),
        merged(*known(each.distance for each in sketches)),
    )
    highest = HighestSoFar.pooled(each.state.detector.highest for each in ordered)
    state = replace(state, run_lengths=runs, detector=DetectorState(highest=highest))
    peaks = {cell: each for judged in ordered for cell, each in judged.peaks.items()}
    return JudgedMachine(together, last.lengths, state, last.newest, peaks)


def in_a_row(parts: Sequence[BlockMaxima], lengths: tuple[int, ...]) -> BlockMaxima | None:
    """Return the maxima of parts of one machine that are one after another."""
    if not parts:
        return None
    return replace(pooled(*parts), longest=sum(each.longest for each in parts), lengths=lengths)


def known(sketches: Iterator[QuantileSketch | None]) -> Iterator[QuantileSketch]:
    """Yield the sketches that there are."""
    return (sketch for sketch in sketches if sketch is not None)


class SpanPass:
    """Takes the rows of one span, from its lead on, but those of folds after `last_fold`."""

    def __init__(
        self,
        judge: HeldOut,
        settings: FitSettings,
        span: RowSpan,
        last_fold: int | None = None,
    ) -> None:
        self._judge, self._span, self._last_fold = judge, span, last_fold
        self._blocks = CellBlocks(judge.grid, settings.without, judge.laid)
        self._pass = MachinePass(judge, settings)
        self._at, self._counts = span.lead, False
        self.is_past = False

    def add(self, recorded: Recorded) -> None:
        """Take rows that follow those before, the first being that of the lead."""
        n, span = len(recorded.rows), self._span
        lead = min(n, max(0, span.begin - self._at))
        end = min(n, span.end - self._at)
        self._at += n
        if lead:
            self._take(self._blocks.add(recorded.part(0, lead)))
        if lead < end:
            if not self._counts and span.lead < span.begin:
                # A block is of the lead or of the span.
                self._take(self._blocks.end())
                self._pass.forget_counts()
            self._counts = True
            self._take(
                self._blocks.add(recorded.part(lead, end) if lead else recorded.part(0, end))
            )

    def end(self) -> JudgedMachine | None:
        """Return what came of it; None if no row of the span was in a fold."""
        self._take(self._blocks.end())
        return self._pass.end() if self._counts and self._pass.taken else None

    def _take(self, blocks: Iterable[CellBlock]) -> None:
        for block in blocks:
            fold = self._judge.fold_of.get(block.cell)
            if fold is None:
                continue  # it is left out
            if self._last_fold is not None and fold > self._last_fold:
                self.is_past = True
            else:
                self._pass.take(block, fold)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedHistory:
    """What came of all machines: sketches with block maxima, and states by number in `Cell`."""

    sketches: ScoreSketches
    block_s: float
    states: Mapping[int, MonitorState]
    newest: NewestRows
    peaks: Peaks

    @classmethod
    def of(cls, machines: Mapping[int, JudgedMachine], block_s: float) -> JudgedHistory:
        """Put machines together: the same, however they were judged apart."""
        ordered = [machines[number] for number in sorted(machines)]
        lengths = _summed([each.lengths for each in ordered])
        parts = [each.sketches.maxima for each in ordered if each.sketches.maxima is not None]
        maxima = None
        if parts:
            # Machines are side by side.
            longest = max(part.longest for part in parts)
            maxima = replace(pooled(*parts), longest=longest, lengths=lengths)
        sketches = ScoreSketches(
            merged(*(each.sketches.spe for each in ordered)),
            merged(*(each.sketches.t2 for each in ordered)),
            None,
            maxima,
            merged(*known(each.sketches.distance for each in ordered)),
        )
        last = [each.newest for each in ordered if each.newest.machine is not None]
        return cls(
            sketches,
            group_block_s(lengths, block_s),
            {number: machines[number].state for number in sorted(machines)},
            last[-1] if last else NewestRows(),
            {cell: each for judged in ordered for cell, each in judged.peaks.items()},
        )


@dataclass
class SecondPass:
    """Takes the rows of a history again, in order, but for those of folds after `last_fold`."""

    judge: HeldOut
    settings: FitSettings
    last_fold: int | None = None
    is_done: bool = False
    _open: dict[tuple[int, int], SpanPass] = field(default_factory=dict)
    _judged: dict[int, dict[int, JudgedMachine]] = field(default_factory=dict)
    _at: dict[int, int] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, recorded: Recorded) -> None:
        """Take in rows that follow those before."""
        n, machine = len(recorded.rows), self._number(recorded.machine)
        at = self._at.get(machine, 0)
        self._at[machine] = at + n
        for span in spans_over(at, at + n, self.settings.judged_rows) if n else ():
            key = machine, span.number
            if key not in self._open:
                self._open[key] = SpanPass(self.judge, self.settings, span, self.last_fold)
            first, last = max(0, span.lead - at), min(n, span.end - at)
            self._open[key].add(recorded.part(first, last))
            # Of several machines, the next one's first rows are still to come.
            if self._open[key].is_past and len(self.judge.laid.machines) == 1:
                self.is_done = True
        for key in [key for key in self._open if key[0] != machine]:
            self._close(*key)
        for key in [key for key in self._open if self._at[machine] >= self._end(key[1])]:
            self._close(*key)

    def end(self) -> JudgedHistory:
        """Return what came of all machines, once all rows are in."""
        for key in list(self._open):
            self._close(*key)
        machines = {number: joined(spans) for number, spans in self._judged.items()}
        return JudgedHistory.of(machines, self.judge.block_s)

    def _number(self, machine: str) -> int:
        return self._numbers.setdefault(machine, self.judge.laid.machines.index(machine))

    def _end(self, span: int) -> int:
        return (span + 1) * self.settings.judged_rows

    def _close(self, machine: int, span: int) -> None:
        """Put what came of a span beside the others."""
        judged = self._open.pop((machine, span)).end()
        if judged is not None:
            self._judged.setdefault(machine, {})[span] = judged


def _summed(counts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(each) for each in zip_longest(*counts, fillvalue=0))

"""SecondPass: the rows of a history, judged machine by machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.client.alarms.blocks import KeptBlocks
from submerge.client.alarms.detector import DetectorState
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.monitor import NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.history.folds import HeldOut
from submerge.history.knowledge import follow, summaries_of
from submerge.history.layout import Cell, CellBlock, CellBlocks
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings
from submerge.judge.prepare import Block, RowTime, prepare
from submerge.judge.score import RowScores
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.settings import ClientSettings
from submerge.stats.block_length import group_block_s
from submerge.stats.block_maxima import WINDOW_S, BlockMaxima, BlockMaximaTally, pooled
from submerge.stats.node_mean import READY
from submerge.stats.quantile_sketch import SketchTally, merged, quantile
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.statistic import KINDS, By

# A monitor remembers, so rows are judged one after another. So a machine with more than
# `judged_rows` rows is judged in spans of so many, each by a monitor of its own.


# Rows pass the client's own monitor: scores, block maxima and the habits of channels are what a
# client would have reported. A monitor remembers, so the rows of a machine are judged one after
# another; machines have nothing to do with each other, and may be judged apart.

MOST_ROWS = 4096  # rows that are held


class NewestRows:
    """Holds the newest prepared rows of the machine that came last; None before the first."""

    def __init__(self) -> None:
        self.machine: int | None = None
        self.model: Model | None = None  # it had not learnt these rows; None if that is not known
        self._parts: list[Array] = []
        self._scales: list[ResidualScale | None] = []  # of errors by each model, where known

    def add(
        self,
        machine: int,
        block: Block,
        model: Model | None = None,
        scores: RowScores | None = None,
    ) -> None:
        """Take rows that follow those before; of another machine or model, these alone."""
        rows = block.rows if block.gaps is None else np.where(block.gaps, np.nan, block.rows)
        if machine != self.machine:
            self._scales = []
        if machine != self.machine or model is not self.model:
            self.machine, self.model, self._parts = machine, model, []
            self._scales.append(None)
        if scores is not None:
            errors = scores.sure_errors
            errors = np.where(np.isnan(rows[:, : errors.shape[1]]), np.nan, errors)
            scale = self._scales[-1] or ResidualScale.none(errors.shape[1])
            self._scales[-1] = scale.after(errors, block.time.seen_s(len(block.why)))
        self._parts.append(rows)
        while sum(map(len, self._parts[1:])) >= MOST_ROWS:
            del self._parts[0]

    def later_scale(self, known: ResidualScale) -> ResidualScale:
        """Return typical errors as large as the later half of the models saw them at most."""
        # Rows to come are held out too, and what is typical of a channel follows them.
        later = [each.squares for each in self._scales[len(self._scales) // 2 :] if each]
        return replace(known, squares=np.max([known.squares, *later], axis=0))

    @property
    def rows(self) -> Array:
        """(n, channels), scaled, oldest first; NaN is a gap."""
        return np.concatenate(self._parts)[-MOST_ROWS:] if self._parts else np.empty((0, 0))


Peaks = Mapping[Cell, Mapping[By, float]]
"""The largest block maximum of each kind of score in each cell."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedMachine:
    """What came of one machine's rows: sketches with block maxima, and its state."""

    sketches: ScoreSketches
    lengths: tuple[int, ...]  # 1 at the one that its rows call for, as in `BlockMaxima`
    state: MonitorState
    newest: NewestRows
    peaks: Peaks  # the largest block maxima of each cell


LEAD = 16  # a lead is a span over this


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
    # Spans are one after another.
    sketches = merged_sketches([each.sketches for each in ordered], sum, last.lengths)
    highest = HighestSoFar.pooled(each.state.detector.highest for each in ordered)
    hours = KeptBlocks.of(sketches.maxima)
    state = replace(state, run_lengths=runs, detector=DetectorState(highest=highest, hours=hours))
    peaks = {cell: each for judged in ordered for cell, each in judged.peaks.items()}
    return JudgedMachine(sketches, last.lengths, state, last.newest, peaks)


Longest = Callable[[Iterable[int]], int]
"""`sum` of parts that are one after another, `max` of such as are side by side."""


def together(
    parts: Sequence[BlockMaxima], longest: Longest, lengths: tuple[int, ...]
) -> BlockMaxima | None:
    """Return the maxima of all parts; None if there is none."""
    if not parts:
        return None
    return replace(
        pooled(*parts), longest=longest([each.longest for each in parts]), lengths=lengths
    )


def merged_sketches(
    parts: Sequence[ScoreSketches], longest: Longest, lengths: tuple[int, ...]
) -> ScoreSketches:
    """Return the sketches of all parts, with their block maxima."""
    return ScoreSketches(
        merged(*(each.spe for each in parts)),
        merged(*(each.t2 for each in parts)),
        None,
        together([each.maxima for each in parts if each.maxima is not None], longest, lengths),
        merged(*(each.distance for each in parts if each.distance is not None)),
    )


class SpanPass:
    """Judges the rows of one span, from its lead on, but those of folds after `last_fold`."""

    def __init__(
        self, judge: HeldOut, settings: FitSettings, span: RowSpan, last_fold: int | None = None
    ) -> None:
        self._held_out, self._settings = judge, settings
        self._span, self._last_fold = span, last_fold
        self._blocks, self._newest = CellBlocks(judge.laid, settings.without), NewestRows()
        # All rows count: none is held to the provisional limits of the rows before it.
        alarms = replace(settings.alarms, period_s=judge.row_s, max_withheld_s=0.0)
        client = ClientSettings("machine", "history", "file", alarms=alarms, fills_gaps=True)
        summaries = summaries_of(judge.rank, settings)
        self._monitor = NodeMonitor(client, judge.schema, summaries)
        self._at, self._rows, self._counts = span.lead, 0, False
        self.is_past = False
        self._count_from_here()

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
                self._count_from_here()
            self._counts = True
            self._take(
                self._blocks.add(recorded.part(lead, end) if lead else recorded.part(0, end))
            )

    def end(self) -> JudgedMachine | None:
        """Return what came of it; None if no row of the span was in a fold."""
        self._take(self._blocks.end())
        if not (self._counts and self._taken):
            return None
        # Cells are one after another.
        maxima = together(self._maxima, sum, self._lengths)
        spe, t2, distance = self._spe.sketch, self._t2.sketch, self._distance.sketch
        kept = self._monitor.kept
        state = replace(
            kept,
            detector=DetectorState(highest=kept.detector.highest, hours=KeptBlocks.of(maxima)),
            reference=None,
            held=None,
            level=None,
            offset=None,
            scatter=self._held_out.owns.get((self._machine, -1)),
        )
        sketches = ScoreSketches(spe, t2, None, maxima, distance)
        return JudgedMachine(sketches, self._lengths, state, self._newest, self._peaks)

    @property
    def _lengths(self) -> tuple[int, ...]:
        detector = self._monitor.detector
        return () if detector is None else detector.hours.correlation.lengths

    def _count_from_here(self) -> None:
        """Count from zero, but for the open block: only what the monitor has learnt stays."""
        self._taken = 0
        self._maxima: list[BlockMaxima] = []
        self._peaks: dict[Cell, dict[By, float]] = {}
        self._spe, self._t2, self._distance = (SketchTally(2**62) for _ in range(3))
        if self._monitor.detector is not None:
            self._monitor.detector = replace(self._monitor.detector, highest=HighestSoFar())

    def _take(self, blocks: Iterable[CellBlock]) -> None:
        most = max(1, int(WINDOW_S / self._held_out.row_s))
        for block in blocks:
            fold = self._held_out.fold_of.get(block.cell)
            if fold is None:
                continue  # it is left out
            if self._last_fold is not None and fold > self._last_fold:
                self.is_past = True
                continue
            model = self._held_out.model(fold, self._settings)
            self._machine = block.cell.machine
            self._own = self._held_out.owns.get((block.cell.machine, fold))
            self._taken += len(block.rows)
            first = 0
            while first < len(block.rows):
                own = self._monitor.own
                # The first rows give a mean, however few rows there are.
                end = first + (most if own is None or own.ready else READY)
                times = None if block.times is None else block.times[first:end]
                self._judge(CellBlock(block.cell, block.rows[first:end], times), model)
                self._take_maxima(block.cell)
                first = end

    def _judge(self, block: CellBlock, model: Model) -> None:
        rows, times, monitor = block.rows, block.times, self._monitor
        monitor.scatter = self._own  # of rows that are held out, too, it would be once they passed
        self._rows += len(rows)
        steady = self._rows * self._held_out.row_s
        now = Now(steady, steady if times is None else float(times[-1]))
        prepared = prepare(
            rows,
            self._held_out.schema,
            fill=lambda gappy: monitor.filled(gappy, model),
            when=self._settings.when,
            time=RowTime(self._held_out.row_s),
        )
        if not len(prepared):
            return
        ready = monitor.own is None or monitor.own.ready
        judged = monitor.judge(prepared, model, now)
        follow(monitor, prepared, judged if ready else None)
        if not ready:
            return
        self._newest.add(block.cell.machine, prepared, model, judged.scores)
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


@dataclass(frozen=True, slots=True, eq=False)
class JudgedHistory:
    """What came of all machines: sketches with block maxima, and states by number in `Cell`."""

    sketches: ScoreSketches
    block_s: float
    states: Mapping[int, MonitorState]
    newest: NewestRows
    peaks: Peaks


@dataclass
class SecondPass:
    """Takes the rows of a history again, in order, but for those of folds after `last_fold`."""

    judge: HeldOut
    settings: FitSettings
    last_fold: int | None = None
    only: RowSpan | None = None  # one of a machine, from its lead on, if others are judged apart
    is_done: bool = False
    judged: dict[int, dict[int, JudgedMachine]] = field(default_factory=dict)  # by machine, span
    _open: dict[tuple[int, int], SpanPass] = field(default_factory=dict)
    _at: dict[int, int] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, recorded: Recorded) -> None:
        n, machines = len(recorded.rows), self.judge.laid.machines
        if not n:
            return
        machine = self._numbers.setdefault(recorded.machine, machines.index(recorded.machine))
        at = self._at.get(machine, 0 if self.only is None else self.only.lead)
        self._at[machine] = at + n
        for span in self._spans(at, at + n):
            key = machine, span.number
            if key not in self._open:
                self._open[key] = SpanPass(self.judge, self.settings, span, self.last_fold)
            first, last = max(0, span.lead - at), min(n, span.end - at)
            self._open[key].add(recorded.part(first, last))
            # Later rows are of later folds; but of several machines, the next one's first rows are
            # still to come.
            alone = self.only is not None or len(machines) == 1
            if self._open[key].is_past and recorded.times is not None and alone:
                self.is_done = True
        done = self._at[machine] // self.settings.judged_rows
        for key in [key for key in self._open if key[0] != machine or key[1] < done]:
            self._close(*key)

    def take(self, judged: Mapping[int, Mapping[int, JudgedMachine]]) -> None:
        """Take in what came of spans that were judged apart."""
        for machine, spans in judged.items():
            self.judged.setdefault(machine, {}).update(spans)

    def close(self) -> dict[int, dict[int, JudgedMachine]]:
        """Take in what waits; return what came of these spans, which may be a part of all."""
        for key in list(self._open):
            self._close(*key)
        return self.judged

    def end(self) -> JudgedHistory:
        """Put machines together, once all rows are in: the same, however they were judged apart."""
        spans = self.close()
        machines = {number: joined(spans[number]) for number in sorted(spans)}
        counts = zip_longest(*(each.lengths for each in machines.values()), fillvalue=0)
        lengths = tuple(map(sum, counts))
        newest = [each.newest for each in machines.values() if each.newest.machine is not None]
        return JudgedHistory(
            # Machines are side by side.
            merged_sketches([each.sketches for each in machines.values()], max, lengths),
            group_block_s(lengths, self.judge.block_s),
            {number: each.state for number, each in machines.items()},
            newest[-1] if newest else NewestRows(),
            {cell: each for judged in machines.values() for cell, each in judged.peaks.items()},
        )

    def _spans(self, first: int, last: int) -> Iterable[RowSpan]:
        """Return the spans that have some of the rows `first` to `last` - 1, or lead into them."""
        if self.only is None:
            return spans_over(first, last, self.settings.judged_rows)
        return [self.only] if first < self.only.end else []

    def _close(self, machine: int, span: int) -> None:
        """Put what came of a span beside the others."""
        judged = self._open.pop((machine, span)).end()
        if judged is None:
            return
        if self.last_fold is not None:
            # The last pass alone wants the newest rows: they need not travel before.
            judged = replace(judged, newest=NewestRows())
        self.judged.setdefault(machine, {})[span] = judged

"""MachinePass: the rows of one machine, each judged by a model that had not learnt it.

Rows pass the client's own monitor: scores, block maxima and the habits of channels are what a
client would have reported. A monitor remembers, so the rows of a machine are judged one after
another; machines have nothing to do with each other, and may be judged apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from submerge.client.alarms.detector import DetectorState
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.monitor import NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.history.batches import Batch
from submerge.history.held_out import HeldOut
from submerge.history.models import summaries_of
from submerge.history.newest_rows import NewestRows
from submerge.history.own_mean import follow
from submerge.history.settings import FitSettings
from submerge.judge.clock import RowTime
from submerge.judge.prepare import prepare
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.settings import ClientSettings
from submerge.stats.block_maxima import WINDOW_S, BlockMaxima, BlockMaximaTally, pooled
from submerge.stats.quantile_sketch import SketchTally


@dataclass(frozen=True, slots=True, eq=False)
class JudgedMachine:
    """What came of the rows of one machine.

    sketches : Of all scores, with the block maxima.
    lengths : 1 at the length of a block that its rows call for, as `BlockMaxima.lengths` has it.
    state : What is known of it: its mean, and how its channels behave.
    newest : Of those that were scored.
    """

    sketches: ScoreSketches
    lengths: tuple[int, ...]
    state: MonitorState
    newest: NewestRows


@dataclass
class MachinePass:
    """Takes the rows of one machine, in the order of time.

    taken : Rows that count.
    """

    judge: HeldOut
    settings: FitSettings
    newest: NewestRows = field(default_factory=NewestRows)
    taken: int = 0
    _maxima: list[BlockMaxima] = field(default_factory=list)
    _rows: int = 0

    def __post_init__(self) -> None:
        row_s = self.judge.row_s
        # All rows count: none is held to the provisional limits of the rows before it.
        alarms = replace(self.settings.alarms, period_s=row_s, max_withheld_s=0.0)
        client = ClientSettings("machine", "history", "file", alarms=alarms, fills_gaps=True)
        summaries = summaries_of(self.judge.rank, self.settings)
        self._monitor = NodeMonitor(client, self.judge.schema, summaries)
        self._spe, self._t2, self._distance = _tallies()

    def take(self, batch: Batch, fold: int) -> None:
        """Judge rows of a fold."""
        model, self.taken = self.judge.model(fold, self.settings), self.taken + len(batch.rows)
        most = max(1, int(WINDOW_S / self.judge.row_s))
        for first in range(0, len(batch.rows), most):
            times = None if batch.times is None else batch.times[first : first + most]
            self._judge(Batch(batch.cell, batch.rows[first : first + most], times), model)
            self._take_maxima()

    def forget_counts(self) -> None:
        """Count from zero: of the rows so far only what the monitor has learnt stays.

        The block that has not ended goes on, and counts.
        """
        self.taken, self._maxima = 0, []
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
        return JudgedMachine(sketches, self.lengths, state, self.newest)

    @property
    def lengths(self) -> tuple[int, ...]:
        """As in `JudgedMachine`."""
        detector = self._monitor.detector
        return () if detector is None else detector.hours.correlation.lengths

    def _judge(self, batch: Batch, model: Model) -> None:
        rows, times, monitor = batch.rows, batch.times, self._monitor
        self._rows += len(rows)
        steady = self._rows * self.judge.row_s
        now = Now(steady, steady if times is None else float(times[-1]))
        block = prepare(
            rows,
            self.judge.schema,
            fill=lambda gappy: monitor.filled(gappy, model),
            when=self.settings.when,
            time=RowTime(self.judge.row_s),
        )
        if not len(block):
            return
        ready = monitor.own is None or monitor.own.ready
        judged = monitor.judge(block, model, now)
        follow(monitor, block, judged if ready else None)
        if not ready:
            return
        self.newest.add(batch.cell.machine, block)
        even = judged.scores.even
        self._spe.add(even["spe"])
        self._t2.add(even["t2"])
        if "distance" in even:
            self._distance.add(even["distance"])

    def _take_maxima(self) -> None:
        """Put the maxima of a cell aside: a node forgets those of more than some weeks."""
        monitor = self._monitor
        detector = monitor.detector
        if detector is None or detector.hours.tally.blocks == 0:
            return
        hours = detector.hours
        self._maxima.append(hours.tally.maxima)
        # The block that has not ended goes on.
        tally = BlockMaximaTally(None, 0, hours.tally.block_s)
        monitor.detector = replace(detector, hours=replace(hours, tally=tally))


def _tallies() -> tuple[SketchTally, SketchTally, SketchTally]:
    most = 2**62
    return SketchTally(most), SketchTally(most), SketchTally(most)

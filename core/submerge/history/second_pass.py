"""SecondPass: the rows of a history, each judged by a model that had not learnt it.

Rows pass the client's own monitor, one for each machine: scores, block maxima and the habits of
channels are what clients would have reported, and limits follow from them as they do in a fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from submerge.client.detector import DetectorState
from submerge.client.monitor import NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.history.batches import Batch, Batches
from submerge.history.cells import Cell, CellGrid
from submerge.history.folds import Folds
from submerge.history.models import model_of, summaries_of
from submerge.history.newest_rows import NewestRows
from submerge.history.own_mean import follow
from submerge.history.recorded import Recorded
from submerge.history.settings import FitSettings
from submerge.judge.clock import RowTime
from submerge.judge.prepare import prepare
from submerge.protocol.machine import Now
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.settings import ClientSettings
from submerge.stats.block_length import group_block_s
from submerge.stats.block_maxima import WINDOW_S, BlockMaxima, BlockMaximaTally, pooled
from submerge.stats.quantile_sketch import SketchTally


@dataclass
class SecondPass:
    """Takes the rows of a history again, in the same order.

    Parameters
    ----------
    folds : Folds
    grid : CellGrid
        As in the first pass.
    settings : FitSettings
    period_s : float
        Time that a row stands for; 0 without times.
    block_s : float
        Length of the blocks whose maxima are counted.
    last_fold : int, optional
        Rows of later folds are passed over.

    Attributes
    ----------
    is_done : bool
        Whether it needs no more rows.

    Attributes
    ----------
    newest : NewestRows
        Of those that were scored.
    """

    folds: Folds
    grid: CellGrid
    settings: FitSettings
    period_s: float
    block_s: float = 0.0
    last_fold: int | None = None
    is_done: bool = False
    newest: NewestRows = field(default_factory=NewestRows)
    _monitors: dict[int, NodeMonitor] = field(default_factory=dict)
    _models: dict[int, Model] = field(default_factory=dict)
    _maxima: dict[int, list[BlockMaxima]] = field(default_factory=dict)
    _cell: Cell | None = None
    _rows: int = 0

    def __post_init__(self) -> None:
        self._summaries = summaries_of(self.folds.rank, self.settings)
        self._batches = Batches(self.grid, self.settings.without)
        most = 2**62
        self._spe, self._t2, self._distance = (SketchTally(most) for _ in range(3))

    @property
    def row_s(self) -> float:
        """Time that a row stands for: without times, a second."""
        return self.period_s or 1.0

    def add(self, recorded: Recorded) -> None:
        """Take in rows that follow those before."""
        for batch in self._batches.add(recorded):
            self._take(batch)

    def end(self) -> ScoreSketches:
        """Return the sketches of all scores, with the block maxima."""
        for batch in self._batches.end():
            self._take(batch)
        every = [each for parts in self._maxima.values() for each in parts]
        maxima = None
        if every:
            # A machine's cells are one after another, and machines are side by side.
            longest = max(sum(each.longest for each in parts) for parts in self._maxima.values())
            maxima = replace(pooled(*every), longest=longest, lengths=self._lengths)
        return ScoreSketches(self._spe.sketch, self._t2.sketch, None, maxima, self._distance.sketch)

    @property
    def wanted_block_s(self) -> float:
        """The length of a block that the scores so far call for."""
        return group_block_s(self._lengths, self.block_s)

    @property
    def states(self) -> Mapping[int, MonitorState]:
        """What is known of each machine: its mean, and how its channels behave."""
        return {
            machine: replace(
                monitor.kept,
                detector=DetectorState(),
                reference=None,
                held=None,
                level=None,
                offset=None,
            )
            for machine, monitor in self._monitors.items()
        }

    @property
    def _lengths(self) -> tuple[int, ...]:
        """Machines by the length of a block that their rows call for."""
        counts: list[int] = []
        for monitor in self._monitors.values():
            detector = monitor.detector
            lengths = () if detector is None else detector.hours.correlation.lengths
            counts += [0] * (len(lengths) - len(counts))
            for i, n in enumerate(lengths):
                counts[i] += n
        return tuple(counts)

    def _take(self, batch: Batch) -> None:
        fold = self.folds.fold_of.get(batch.cell)
        if fold is None:
            return  # it is left out
        if self.last_fold is not None and fold > self.last_fold:
            # Of several machines, the next one's first rows are still to come.
            self.is_done = self.folds.schema.center != "own"
            return
        model, self._cell = self._model(fold), batch.cell
        most = max(1, int(WINDOW_S / self.row_s))
        for first in range(0, len(batch.rows), most):
            times = None if batch.times is None else batch.times[first : first + most]
            self._judge(Batch(batch.cell, batch.rows[first : first + most], times), model)
            self._take_maxima()

    def _judge(self, batch: Batch, model: Model) -> None:
        rows, times, monitor = batch.rows, batch.times, self._monitor(batch.cell.machine)
        self._rows += len(rows)
        steady = self._rows * self.row_s
        now = Now(steady, steady if times is None else float(times[-1]))
        block = prepare(
            rows,
            self.folds.schema,
            fill=lambda gappy: monitor.filled(gappy, model),
            when=self.settings.when,
            time=RowTime(self.row_s),
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

    def _monitor(self, machine: int) -> NodeMonitor:
        if machine not in self._monitors:
            alarms = replace(self.settings.alarms, period_s=self.row_s)
            client = ClientSettings("machine", "history", "file", alarms=alarms, fills_gaps=True)
            self._monitors[machine] = NodeMonitor(client, self.folds.schema, self._summaries)
        return self._monitors[machine]

    def _model(self, fold: int) -> Model:
        if fold not in self._models:
            self._models[fold] = model_of(
                self.folds.without(fold),
                self.folds,
                self._summaries,
                version=fold + 1,
                block_s=self.block_s,
            )
        return self._models[fold]

    def _take_maxima(self) -> None:
        """Put the maxima of a cell aside: a node forgets those of more than some weeks."""
        if self._cell is None:
            return
        machine = self._cell.machine
        monitor = self._monitors.get(machine)
        detector = None if monitor is None else monitor.detector
        if monitor is None or detector is None or detector.hours.tally.blocks == 0:
            return
        hours = detector.hours
        self._maxima.setdefault(machine, []).append(hours.tally.maxima)
        # The block that has not ended goes on.
        tally = BlockMaximaTally(None, 0, hours.tally.block_s)
        monitor.detector = replace(detector, hours=replace(hours, tally=tally))

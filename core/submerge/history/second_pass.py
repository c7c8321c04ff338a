"""SecondPass: the rows of a history, judged machine by machine (`history.machine_pass`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from submerge.client.monitor_state import MonitorState
from submerge.history.batches import Batch, Batches
from submerge.history.held_out import HeldOut
from submerge.history.machine_pass import JudgedMachine, MachinePass
from submerge.history.newest_rows import NewestRows
from submerge.history.recorded import Recorded
from submerge.history.settings import FitSettings
from submerge.protocol.messages import ScoreSketches
from submerge.stats.block_length import group_block_s
from submerge.stats.block_maxima import pooled
from submerge.stats.quantile_sketch import QuantileSketch, merged


@dataclass(frozen=True, slots=True, eq=False)
class JudgedHistory:
    """What came of all machines.

    Attributes
    ----------
    sketches : ScoreSketches
        Of all scores, with the block maxima.
    block_s : float
        The length of a block that the scores call for.
    states : mapping of int to MonitorState
        What is known of each machine, by its number in `Cell`.
    newest : NewestRows
        Of the machine that came last.
    """

    sketches: ScoreSketches
    block_s: float
    states: Mapping[int, MonitorState]
    newest: NewestRows

    @classmethod
    def of(cls, machines: Mapping[int, JudgedMachine], block_s: float) -> JudgedHistory:
        """Put machines together: the same, however they were judged apart.

        block_s : length of the blocks that were counted
        """
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
            merged(*_known(each.sketches.distance for each in ordered)),
        )
        last = [each.newest for each in ordered if each.newest.machine is not None]
        return cls(
            sketches,
            group_block_s(lengths, block_s),
            {number: machines[number].state for number in sorted(machines)},
            last[-1] if last else NewestRows(),
        )


@dataclass
class SecondPass:
    """Takes the rows of a history again, in the same order.

    Parameters
    ----------
    judge : HeldOut
    settings : FitSettings
    last_fold : int, optional
        Rows of later folds are passed over.

    Attributes
    ----------
    is_done : bool
        Whether it needs no more rows.
    """

    judge: HeldOut
    settings: FitSettings
    last_fold: int | None = None
    is_done: bool = False
    _machines: dict[int, MachinePass] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._batches = Batches(self.judge.grid, self.settings.without, self.judge.laid)

    def add(self, recorded: Recorded) -> None:
        """Take in rows that follow those before."""
        self._take(self._batches.add(recorded))

    def judged(self) -> dict[int, JudgedMachine]:
        """Return what came of each machine, once all rows are in."""
        self._take(self._batches.end())
        return {number: each.end() for number, each in self._machines.items()}

    def end(self) -> JudgedHistory:
        """Return what came of all machines, once all rows are in."""
        return JudgedHistory.of(self.judged(), self.judge.block_s)

    def _take(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            fold = self.judge.fold_of.get(batch.cell)
            if fold is None:
                continue  # it is left out
            if self.last_fold is not None and fold > self.last_fold:
                # Of several machines, the next one's first rows are still to come.
                self.is_done = len(self.judge.laid.machines) == 1
                continue
            machine = batch.cell.machine
            if machine not in self._machines:
                self._machines[machine] = MachinePass(self.judge, self.settings)
            self._machines[machine].take(batch, fold)


def _summed(counts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(each) for each in zip_longest(*counts, fillvalue=0))


def _known(sketches: Iterable[QuantileSketch | None]) -> Iterable[QuantileSketch]:
    return (sketch for sketch in sketches if sketch is not None)

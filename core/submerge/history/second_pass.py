"""SecondPass: the rows of a history, judged machine by machine (`history.machine_pass`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from submerge.client.monitor_state import MonitorState
from submerge.history.held_out import HeldOut
from submerge.history.judged_pieces import joined, known, pieces_over
from submerge.history.machine_pass import JudgedMachine
from submerge.history.newest_rows import NewestRows
from submerge.history.piece_pass import PiecePass
from submerge.history.recorded import Recorded
from submerge.history.settings import FitSettings
from submerge.protocol.messages import ScoreSketches
from submerge.stats.block_length import group_block_s
from submerge.stats.block_maxima import pooled
from submerge.stats.quantile_sketch import merged


@dataclass(frozen=True, slots=True, eq=False)
class JudgedHistory:
    """What came of all machines.

    sketches : Of all scores, with the block maxima.
    block_s : The length of a block that the scores call for.
    states : What is known of each machine, by its number in `Cell`.
    newest : Of the machine that came last.
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
            merged(*known(each.sketches.distance for each in ordered)),
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

    last_fold : Rows of later folds are passed over.

    is_done : Whether it needs no more rows.
    """

    judge: HeldOut
    settings: FitSettings
    last_fold: int | None = None
    is_done: bool = False
    _open: dict[tuple[int, int], PiecePass] = field(default_factory=dict)
    _judged: dict[int, dict[int, JudgedMachine]] = field(default_factory=dict)
    _at: dict[int, int] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, recorded: Recorded) -> None:
        """Take in rows that follow those before."""
        n, machine = len(recorded.rows), self._number(recorded.machine)
        at = self._at.get(machine, 0)
        self._at[machine] = at + n
        for piece in pieces_over(at, at + n, self.settings.judged_rows) if n else ():
            key = machine, piece.number
            if key not in self._open:
                self._open[key] = PiecePass(self.judge, self.settings, piece, self.last_fold)
            first, last = max(0, piece.lead - at), min(n, piece.end - at)
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
        machines = {number: joined(pieces) for number, pieces in self._judged.items()}
        return JudgedHistory.of(machines, self.judge.block_s)

    def _number(self, machine: str) -> int:
        return self._numbers.setdefault(machine, self.judge.laid.machines.index(machine))

    def _end(self, piece: int) -> int:
        return (piece + 1) * self.settings.judged_rows

    def _close(self, machine: int, piece: int) -> None:
        """Put what came of a piece beside the others."""
        judged = self._open.pop((machine, piece)).end()
        if judged is not None:
            self._judged.setdefault(machine, {})[piece] = judged


def _summed(counts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(each) for each in zip_longest(*counts, fillvalue=0))

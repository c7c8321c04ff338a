"""PiecePass: the rows of a piece in, batch by batch; the lead is judged and not counted."""

from __future__ import annotations

from collections.abc import Iterable

from submerge.history.batches import Batch, Batches
from submerge.history.held_out import HeldOut
from submerge.history.judged_pieces import RowPiece
from submerge.history.machine_pass import JudgedMachine, MachinePass
from submerge.history.recorded import Recorded
from submerge.history.settings import FitSettings


class PiecePass:
    """Takes the rows of one piece, from its lead on.

    last_fold : Rows of later folds are passed over.

    is_past : Whether rows of later folds have come.
    """

    def __init__(
        self,
        judge: HeldOut,
        settings: FitSettings,
        piece: RowPiece,
        last_fold: int | None = None,
    ) -> None:
        self._judge, self._piece, self._last_fold = judge, piece, last_fold
        self._batches = Batches(judge.grid, settings.without, judge.laid)
        self._pass = MachinePass(judge, settings)
        self._at, self._counts = piece.lead, False
        self.is_past = False

    def add(self, recorded: Recorded) -> None:
        """Take rows that follow those before, the first being that of the lead."""
        n, piece = len(recorded.rows), self._piece
        lead = min(n, max(0, piece.begin - self._at))
        end = min(n, piece.end - self._at)
        self._at += n
        if lead:
            self._take(self._batches.add(recorded.part(0, lead)))
        if lead < end:
            if not self._counts and piece.lead < piece.begin:
                # A batch is of the lead or of the piece.
                self._take(self._batches.end())
                self._pass.forget_counts()
            self._counts = True
            self._take(
                self._batches.add(recorded.part(lead, end) if lead else recorded.part(0, end))
            )

    def end(self) -> JudgedMachine | None:
        """Return what came of it; None if no row of the piece was in a fold."""
        self._take(self._batches.end())
        return self._pass.end() if self._counts and self._pass.taken else None

    def _take(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            fold = self._judge.fold_of.get(batch.cell)
            if fold is None:
                continue  # it is left out
            if self._last_fold is not None and fold > self._last_fold:
                self.is_past = True
            else:
                self._pass.take(batch, fold)

"""Channels: what each channel of a node says of itself: how it strays, and whether it is stuck.

Every channel is predicted from all the others (`reconstruct`). The error, by what is usual for
it (`usual`), is a score of its own: one sensor that strays is lost in the sum of fifty, and
stands out among errors. Its share names who is to blame. And a channel that says the same while the
others say that it should move is stuck (`senses`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.pca.reconstruct import Reconstruction
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.stuck import StuckDetector

GATHERED, NUMBERS = 128, 8192
"""Rows that are looked at together, for a look costs as much for one; and numbers in them."""

SPOKEN = 16
"""Rows of a block that are asked which channels are to blame: the last ones."""


class Channels:
    """Those of one node.

    Parameters
    ----------
    senses : Senses
    usual : Usual

    Attributes
    ----------
    senses : Senses
    usual : Usual
    """

    def __init__(self, stuck_detector: StuckDetector, usual: ResidualScale) -> None:
        self.stuck_detector, self.usual = stuck_detector, usual
        self._gathered: list[tuple[Array, Array, Array, npt.NDArray[np.bool_]]] = []
        self._rows, self._passed_s = 0, 0.0

    def score(self, recall: Reconstruction, errors: Array) -> Array | None:
        """Return how far the worst channel of each row strays, (n,); None while nobody can say."""
        return self.usual.largest(errors, recall.expected) if self.usual.ready else None

    def blame(self, recall: Reconstruction, centered: Array) -> Array:
        """Return which channels rows (n, dim) are odd by, (channels,): shares."""
        usual = self.usual.squares if self.usual.ready else None
        return np.asarray(recall.blame(centered[-SPOKEN:], usual).mean(axis=0))

    def see(
        self,
        rows: Array,
        gaps: npt.NDArray[np.bool_] | None,
        errors: Array,
        usual: npt.NDArray[np.bool_],
        passed_s: float,
    ) -> None:
        """Take in rows (n, channels), filled, and by how much each number strays.

        usual : (n,), rows that say what is usual: not those of an alarm, nor any while the mean is
            not known that they are measured from
        """
        shown = rows if gaps is None else np.where(gaps, np.nan, rows)
        self._gathered.append((shown, rows - errors, errors, usual))
        self._rows += len(rows)
        self._passed_s += passed_s
        if self._rows >= min(GATHERED, max(1, NUMBERS // rows.shape[1])):
            shown, others, errors, usual = (
                np.concatenate(each) for each in zip(*self._gathered, strict=True)
            )
            self.stuck_detector.see(shown, others, usual)
            errors = np.where(np.isnan(shown), np.nan, errors)[usual]
            self.usual = self.usual.after(errors, self._passed_s * float(usual.mean()))
            self._gathered, self._rows, self._passed_s = [], 0, 0.0

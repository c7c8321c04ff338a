"""ChannelState: how each channel of a node strays from what the others say, and what is stuck.

Every channel is predicted from all the others (`pca.reconstruct`). Its error, over what is usual
for it, is a score of its own: one sensor that strays is lost in the sum of fifty, and stands out
among errors. And a channel that repeats itself while the others say that it should move is stuck
(`stats.stuck`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import Array
from submerge.judge.decision import Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.run_lengths import RunLengths
from submerge.stats.stuck import Habits, StuckDetector

GATHERED, NUMBERS = 128, 8192
"""Rows that are looked at together, for a look costs as much for one; and numbers in them."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelState:
    """What a node knows of its channels.

    Attributes
    ----------
    repeats : Repeats
    habits : Habits
    usual : Usual
    gathered : tuple of (rows, predicted, errors, usual)
        Rows that have not been looked at yet.
    passed_s : float
        The time that these stand for.
    """

    run_lengths: RunLengths
    habits: Habits
    usual: ResidualScale
    gathered: tuple[tuple[Array, Array, Array, Mask], ...] = ()
    passed_s: float = 0.0

    @classmethod
    def none(cls, channels: int) -> ChannelState:
        """Return what is known before the first row."""
        return cls(RunLengths.none(channels), Habits.none(channels), ResidualScale.none(channels))

    @property
    def widths(self) -> set[int]:
        """Of how many channels its parts are: of one number, or they do not belong together."""
        return {len(self.run_lengths.last), len(self.habits.weight), len(self.usual.squares)}

    @property
    def stuck_detector(self) -> StuckDetector:
        """The same to ask for what is stuck, and how well channels are told by the others."""
        return StuckDetector(len(self.usual.squares), self.run_lengths, self.habits)

    def after(self, block: Block, scores: RowScores, usual: Mask, passed_s: float) -> ChannelState:
        """Return what is known after a block.

        usual : (n,), rows that say what is usual: not those of an alarm, nor any while the mean is
            not known that they are measured from, or learning is paused
        """
        n = len(self.usual.squares)
        rows, errors = block.rows[:, :n], scores.errors
        shown = rows if block.gaps is None else np.where(block.gaps[:, :n], np.nan, rows)
        gathered = (*self.gathered, (shown, rows - errors, errors, usual))
        passed_s += self.passed_s
        if sum(len(part[0]) for part in gathered) < min(GATHERED, max(1, NUMBERS // n)):
            return replace(self, gathered=gathered, passed_s=passed_s)
        shown, predicted, errors, usual = (
            np.concatenate(each) for each in zip(*gathered, strict=True)
        )
        stuck_detector = self.stuck_detector
        stuck_detector.update(shown, predicted, usual)
        errors = np.where(np.isnan(shown), np.nan, errors)[usual]
        known = self.usual.after(errors, passed_s * float(usual.mean()))
        return ChannelState(stuck_detector.run_lengths, stuck_detector.habits, known)

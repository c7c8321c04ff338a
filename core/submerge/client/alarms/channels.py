"""ChannelState: the typical prediction error of each channel of a node, and which ones are stuck.

Each is predicted from all others (`pca.reconstruct`). Its error over its typical one is a statistic
of its own: one sensor's fault is lost in the sum of fifty. One that repeats a value although the
others predict changes is stuck (`stats.stuck`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array
from submerge.judge.decision import Mask
from submerge.judge.prepare import Block
from submerge.judge.score import RowScores
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.stuck import Habits, RunLengths, StuckDetector

GATHERED, NUMBERS = 128, 8192
"""Rows, and numbers in them, that are processed together: one row alone costs as much."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelState:
    """What a node knows of its channels; rows that are `gathered` are not processed yet."""

    run_lengths: RunLengths
    habits: Habits
    residual_scale: ResidualScale
    gathered: tuple[tuple[Array, Array, Array, Mask, Mask], ...] = ()
    waiting: int = 0
    passed_s: float = 0.0

    @classmethod
    def none(cls, channels: int) -> ChannelState:
        """Return the state before the first row."""
        return cls(RunLengths.none(channels), Habits.none(channels), ResidualScale.none(channels))

    @property
    def widths(self) -> set[int]:
        """Numbers of channels of its parts: more than one if the parts do not belong together."""
        return {
            len(self.run_lengths.last),
            len(self.habits.weight),
            len(self.residual_scale.squares),
        }

    @property
    def stuck_detector(self) -> StuckDetector:
        """The detector of stuck channels, in this state."""
        return StuckDetector(len(self.residual_scale.squares), self.run_lengths, self.habits)

    def relocated(self, by: Array | float = 0.0) -> ChannelState:
        """Return it where rows are measured from another mean; rows that wait are dropped."""
        habits = self.habits.relocated(by)
        return ChannelState(self.run_lengths, habits, self.residual_scale)

    def after(
        self,
        block: Block,
        scores: RowScores,
        normal: Mask,
        passed_s: float,
        factors: Array | None = None,
    ) -> ChannelState:
        """Return the state after a block: errors are of `normal` rows, clipped by factors."""
        n = len(self.residual_scale.squares)
        rows, errors = block.rows[:, :n], scores.sure_errors
        shown = rows if block.gaps is None else np.where(block.gaps[:, :n], np.nan, rows)
        held = np.zeros(shown.shape, dtype=bool) if block.held is None else block.held[:, :n]
        predicted = rows - scores.left_out
        errors = errors if factors is None else errors * factors[:, None]
        gathered = (*self.gathered, (shown, predicted, errors, normal, held))
        waiting, passed_s = self.waiting + len(rows), self.passed_s + passed_s
        if waiting < min(GATHERED, max(1, NUMBERS // n)):
            known = self.run_lengths, self.habits, self.residual_scale
            return ChannelState(*known, gathered, waiting, passed_s)
        shown, predicted, errors, normal, held = gathered[0]
        if len(gathered) > 1:
            shown, predicted, errors, normal, held = (
                np.concatenate(each) for each in zip(*gathered, strict=True)
            )
        stuck_detector = self.stuck_detector
        stuck_detector.update(shown, predicted, normal, held if held.any() else None)
        gaps = np.isnan(shown)
        if gaps.any():
            errors = np.where(gaps, np.nan, errors)
        if not normal.all():
            errors = errors[normal]
        scale = self.residual_scale.after(errors, passed_s * float(normal.mean()))
        return ChannelState(stuck_detector.run_lengths, stuck_detector.habits, scale)

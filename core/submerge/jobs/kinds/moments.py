"""MomentsJob: mean and variance of each channel, in two rounds: the simplest kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from submerge.errors import PeerError, UsageError
from submerge.jobs.arrays import Arrays, Shapes, added, check_at_most, check_counts, expect
from submerge.jobs.job import Settings
from submerge.jobs.kind import (
    AnswerArray,
    JobAnswer,
    JobSetting,
    OfSums,
    PhaseDown,
    check_known,
    flag_of,
)
from submerge.jobs.masks import MASKED
from submerge.jobs.points import LARGEST_READING, MOST_HELD, JobPoints
from submerge.jobs.roster import MOST_MEMBERS


class MomentsJob(OfSums):
    """Mean and variance of each channel: counts and sums, then sums of squares about the mean."""

    listed: ClassVar[tuple[JobSetting, ...]] = (MASKED,)
    answers = (
        AnswerArray("count", "Rows that are counted, (1,)."),
        AnswerArray("mean", "Of each channel, (width,).", "rows"),
        AnswerArray("variance", "Of each channel, (width,).", "squares"),
        AnswerArray("held_out", "Rows that were held out and are not counted, (1,)."),
    )

    def __init__(self, settings: Settings, width: int) -> None:
        check_known(settings, (each.name for each in self.listed))
        flag_of(settings, "masked")
        self._width = width
        first: Shapes = {"counts": (2,), "sums": (width,)}
        self.sums: Mapping[str, Shapes] = {"sums": first, "squares": {"squares": (width,)}}

    def first(self) -> tuple[Any, PhaseDown]:
        return None, PhaseDown("sums", {})

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        rows = points.rows
        if down.phase == "squares":
            return None, {"squares": ((rows - down.arrays["mean"]) ** 2).sum(axis=0)}
        counts = np.array([float(len(rows)), float(len(points.held_out))])
        return None, {"counts": counts, "sums": rows.sum(axis=0)}

    def bytes_for(self, rows: int) -> int:
        return 8 * 8 * rows * self._width

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Add them up, in order."""
        return added(ups)

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        """Ask for squares about the mean, or divide them."""
        if down.phase == "sums":
            count, held_out = up["counts"]
            if not count:
                raise UsageError("a mean needs one row or more, and no participant has one")
            mean = up["sums"] / count
            return (count, held_out, mean), PhaseDown("squares", {"mean": mean})
        count, held_out, mean = state
        return JobAnswer(
            {
                "count": np.array([count]),
                "held_out": np.array([held_out]),
                "mean": mean,
                "variance": up["squares"] / count,
            }
        )

    def check_down(self, down: PhaseDown) -> None:
        if down.phase not in ("sums", "squares"):
            raise PeerError(f"moments have no phase {down.phase[:40]!r}")
        expect(down.arrays, {} if down.phase == "sums" else {"mean": (self._width,)})

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Refuse other arrays, and what rows do not add up to."""
        most = MOST_HELD * clients
        if down.phase == "squares":
            expect(up, {"squares": (self._width,)})
            if (up["squares"] < 0).any():
                raise PeerError("squares are not negative", kind="range")
            check_at_most("squares", up["squares"], most * (2.0 * LARGEST_READING) ** 2, clients)
        else:
            expect(up, {"counts": (2,), "sums": (self._width,)})
            check_counts(up["counts"], most)
            check_at_most("sums", up["sums"], up["counts"][0] * LARGEST_READING, clients)

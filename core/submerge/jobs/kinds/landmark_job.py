"""LandmarksJob: landmarks chosen by the fleet, as a kind of job, in stages (`kpca.stages`).

count       rows, mean and squares of each channel: they settle gamma, and the scale if it is asked
keys-1      all rows count alike
keys-i      by the squared distance of a row's features from the span of those before
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array
from submerge.errors import PeerError, UsageError
from submerge.features import Kernel, Landmarks
from submerge.jobs.arrays import Arrays, check_counts, expect
from submerge.jobs.job import Settings
from submerge.jobs.kind import (
    AnswerArray,
    JobAnswer,
    JobSetting,
    PhaseDown,
    check_known,
    flag_of,
    number_of,
    whole_of,
)
from submerge.jobs.kinds.kpca.answer import kernel_numbers
from submerge.jobs.kinds.kpca.points import SLACK, own_squares, residuals
from submerge.jobs.kinds.kpca.settings import MOST_POINTS, OF_KERNELS, kernel_setting
from submerge.jobs.kinds.kpca.stages import KnownPoints, RowsOffered
from submerge.jobs.points import MOST_HELD, NO_ONE_SHARES, JobPoints, check_squares, seed_of
from submerge.jobs.roster import MOST_MEMBERS
from submerge.kernel.nystrom import CHUNK, check_finite

UNIFORM, STEPS, NODE_SHARE, MOST_STEPS = 0.25, 3, 0.25, 16

LISTED: tuple[JobSetting, ...] = (
    JobSetting("landmarks", "whole", f"Rows that the fleet chooses, 1 to {MOST_POINTS}."),
    *OF_KERNELS,
    JobSetting("uniform", "number", "Share of them that is chosen first, all rows alike.", "0.25"),
    JobSetting(
        "steps", "whole", f"Choices after that, by what the earlier miss, to {MOST_STEPS}.", "3"
    ),
    JobSetting(
        "scale", "flag", "Whether channels are centered and scaled before the kernel.", "false"
    ),
    JobSetting("node_share", "number", "Most of them of one participant, as a share.", "0.25"),
)


class LandmarkSettings(NamedTuple):
    """Settings of the kind, as `LISTED` says."""

    seed: int
    landmarks: int
    kernel: Kernel
    uniform: float
    steps: int
    scale: bool
    node_share: float

    @classmethod
    def of(cls, settings: Settings) -> LandmarkSettings:
        """Check a job's settings; raises UsageError with one line that says which does not fit."""
        check_known(settings, (each.name for each in LISTED))
        if "landmarks" not in settings:
            raise UsageError("landmarks needs the setting landmarks, got none: add landmarks=128")
        return cls(
            seed_of(settings),
            whole_of(settings, "landmarks", 1, least=1, most=MOST_POINTS),
            kernel_setting(settings),
            number_of(settings, "uniform", UNIFORM, most=1.0),
            whole_of(settings, "steps", STEPS, least=1, most=MOST_STEPS),
            flag_of(settings, "scale"),
            number_of(settings, "node_share", NODE_SHARE, most=1.0),
        )

    @property
    def stages(self) -> tuple[int, ...]:
        """How many rows each choice takes, the uniform one first; none takes 0."""
        first = max(1, math.ceil(self.uniform * self.landmarks))
        rest, steps = self.landmarks - first, self.steps
        later = (rest * (i + 1) // steps - rest * i // steps for i in range(steps))
        return (first, *(size for size in later if size))


@dataclass(frozen=True, slots=True, eq=False)
class KnownLandmarks(KnownPoints):
    """What has gone down; offset and scale (width,) are None before they are settled."""

    offset: Array | None = None
    scale: Array | None = None

    def _news(self, arrays: Arrays) -> dict[str, Any]:
        return {name: arrays[name] for name in ("offset", "scale") if name in arrays}

    def knows(self, stage: int) -> bool:
        return self.offset is not None and (stage == 1 or self.points is not None)

    def scores(self, stage: int, rows: Array) -> Array:
        if stage == 1 or self.points is None:
            return np.ones(len(rows))
        found = residuals(self._scaled(rows), Landmarks(self.kernel, self._scaled(self.points)))
        check_finite(self.kernel, found)
        return found

    def slack(self, stage: int, rows: Array, scores: Array) -> Array:
        if stage == 1:
            return np.zeros(len(rows))
        return np.asarray(SLACK * own_squares(self._scaled(rows), self.kernel))

    def _scaled(self, rows: Array) -> Array:
        if self.offset is None or self.scale is None:
            return rows
        return np.asarray((rows - self.offset) / self.scale)


class ChosenSoFar(NamedTuple):
    """What the root knows between rounds; counts: rows, participants, those that may share."""

    counts: Array
    points: npt.NDArray[np.float32]


class LandmarksJob:
    """Landmarks of a fleet."""

    listed = LISTED
    answers = (
        AnswerArray("points", "The landmarks, as the rows are given, (m, width).", "rows"),
        AnswerArray("kernel", "0 gaussian, 1 laplace, 2 matern, 3 polynomial; its numbers, (4,)."),
        AnswerArray("counts", "Rows, participants, those that may share readings, (3,)."),
    )

    def __init__(self, settings: Settings, width: int) -> None:
        self._of, self._width = LandmarkSettings.of(settings), width
        self._known = KnownLandmarks(self._of, width, self._of.kernel)

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        if down.phase == "count":
            here = RowsOffered.of(points, self._known.after(down))
            return here, _counted(here.rows, shares=points.may_share > 0)
        offered: RowsOffered[KnownLandmarks] = memory
        return offered.gives(down, points.may_share, node)

    def bytes_for(self, rows: int) -> int:
        m = self._of.landmarks
        return 8 * (4 * rows * self._width + (2 * min(rows, CHUNK) + 4 * m) * m)

    def points_in(self, down: PhaseDown, up: Arrays) -> int:
        return len(up["points"]) if down.phase.startswith("points") else 0

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Add counts up, keep the smallest keys, or put rows together."""
        return _added(ups) if down.phase == "count" else self._known.merged(down.phase, ups)

    def spread(self, down: PhaseDown, up: Arrays) -> Array | None:
        """Return what gamma, or the scale of each channel, follows from."""
        if down.phase != "count" or not (self._of.scale or self._of.kernel.gamma is None):
            return None
        variance = up["squares"] / max(1.0, float(up["counts"][0]))
        return np.sqrt(variance) if self._of.scale else variance.sum(keepdims=True)

    def first(self) -> tuple[Any, PhaseDown]:
        down = PhaseDown("count", {})
        self._known = self._known.after(down)
        return ChosenSoFar(np.zeros(3), np.empty((0, self._width), dtype=np.float32)), down

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        result = self._next(state, down, up)
        if not isinstance(result, JobAnswer):
            self._known = self._known.after(result[1])
        return result

    def _next(
        self, state: ChosenSoFar, down: PhaseDown, up: Arrays
    ) -> tuple[ChosenSoFar, PhaseDown] | JobAnswer:
        phase = down.phase
        if phase == "count":
            state = state._replace(counts=up["counts"])
            limit = self._known.limit_down(1, up["counts"][2])
            return state, PhaseDown("keys-1", {**self._settled(up), **limit})
        if phase.startswith("keys"):
            return state, self._known.rows_wanted(phase, up)
        state = state._replace(points=np.concatenate([state.points, up["points"]]))
        if not len(state.points):
            raise UsageError("landmarks are rows, and no participant has supplied one")
        again = self._known.next_keys(phase, up, state.counts[2])
        if again is not None:
            return state, again
        numbers = kernel_numbers(self._known.kernel)
        return JobAnswer({"points": state.points, "kernel": numbers, "counts": state.counts})

    def _settled(self, up: Arrays) -> dict[str, Array]:
        """Return gamma, offset and scale, as counts settle them."""
        rows, _, sharing = up["counts"].tolist()
        if not rows:
            raise UsageError("landmarks need one row or more, and no participant has one")
        if not sharing:
            raise UsageError(NO_ONE_SHARES)
        variance = up["squares"] / rows
        offset, scale = np.zeros(self._width), np.ones(self._width)
        if self._of.scale:
            # What is less is rounding of rows that are alike, and may be anything.
            solid = variance > (EPS * up["mean"]) ** 2
            offset, scale = up["mean"], np.where(solid, np.sqrt(variance), 1.0)
        gamma, spread = self._of.kernel.gamma, float((variance / scale**2).sum())
        if gamma is None:
            if not spread > 0:
                raise UsageError("gamma follows from how rows differ, and all are alike: give one")
            gamma = self._of.kernel.auto(spread)
        return {"gamma": np.array([gamma]), "offset": offset, "scale": scale}

    def check_down(self, down: PhaseDown) -> None:
        """Refuse other phases, and arrays of another shape; remember what they hold."""
        phase, arrays, width = down.phase, down.arrays, self._width
        if phase != "count" and not self._known.has(phase):
            raise PeerError(f"landmarks have no phase {phase[:40]!r}")
        shapes = self._known.shapes_down(phase) if phase != "count" else {}
        if phase == "keys-1":
            shapes |= {"gamma": (1,), "offset": (width,), "scale": (width,)}
        expect(arrays, shapes, single=("points",))
        self._known.check_down(arrays)
        if "scale" in arrays and not (arrays["scale"] > 0).all():
            raise PeerError("scales are positive", kind="range")
        self._known = self._known.after(down)

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Refuse arrays that no child of this version sends; compute keys of rows again."""
        if down.phase != "count":
            self._known.check_up(down, up, clients)
            return
        expect(up, {"counts": (3,), "mean": (self._width,), "squares": (self._width,)})
        rows = up["counts"][0]
        check_counts(up["counts"][:1], MOST_HELD * clients)
        check_counts(up["counts"][1:], 2 * clients)
        check_squares(float(rows), up["mean"], up["squares"], clients)


def _counted(rows: Array, *, shares: bool) -> Arrays:
    """Return the counts of a participant, and mean and squares about it."""
    n = len(rows)
    mean = rows.mean(axis=0) if n else np.zeros(rows.shape[1])
    counts = np.array([float(n), 1.0, float(n > 0 and shares)])
    return {"counts": counts, "mean": mean, "squares": np.square(rows - mean).sum(axis=0)}


def _added(ups: Sequence[Arrays]) -> Arrays:
    """Return counts of several, and mean and squares of all rows."""
    counts = np.sum([up["counts"] for up in ups], axis=0)
    of = np.array([up["counts"][0] for up in ups])[:, None]
    means = np.array([up["mean"] for up in ups])
    mean = (of * means).sum(axis=0) / max(1.0, float(counts[0]))
    about = (of * np.square(means - mean)).sum(axis=0)
    return {"counts": counts, "mean": mean, "squares": sum(up["squares"] for up in ups) + about}

"""LandmarksJob: landmarks chosen by the fleet, as a kind of job.

count       rows, mean and squares of each channel: they settle gamma, and the scale if it is asked
keys-1      the smallest keys of all rows, which count alike
points-1    the rows that these are
keys-i      the same by the squared distance of a row's features from the span of those before
points-i    the rows that these are

Keys go up before rows do, so that no row leaves its node but the landmarks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array
from submerge.errors import PeerError, UsageError
from submerge.features import Kernel, Landmarks
from submerge.jobs.arrays import Arrays, check_at_most, check_counts, expect
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
from submerge.jobs.kinds.kpca.points import (
    SLACK,
    Order,
    PointChoice,
    check_chosen,
    check_keys,
    check_rows,
    cut_rows,
    limit_of,
    merged_keys,
    merged_rows,
    own_squares,
    residuals,
    rows_up,
)
from submerge.jobs.kinds.kpca.settings import (
    MOST_POINTS,
    KernelName,
    kernel_setting,
)
from submerge.jobs.points import (
    LARGEST_READING,
    MOST_HELD,
    NO_ONE_SHARES,
    JobPoints,
    node_id,
    seed_of,
)
from submerge.jobs.roster import MOST_MEMBERS
from submerge.kernel.nystrom import check_finite

UNIFORM, STEPS, NODE_SHARE, MOST_STEPS = 0.25, 3, 0.25, 16

LISTED: tuple[JobSetting, ...] = (
    JobSetting("landmarks", "whole", f"Rows that the fleet chooses, 1 to {MOST_POINTS}."),
    JobSetting("kernel", "text", f"One of {', '.join(get_args(KernelName))}.", "gaussian"),
    JobSetting("gamma", "number", "The kernel's scale.", "from the spread of all rows"),
    JobSetting("degree", "whole", "Of a polynomial kernel.", "2"),
    JobSetting("coef0", "number", "Of a polynomial kernel.", "0"),
    JobSetting("nu", "number", "Of a Matern kernel, 1.5 or 2.5.", "1.5"),
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
class Known:
    """What has gone down, None where nothing has yet: the last phase, for what comes twice.

    `kernel` has gamma after the first round; offset and scale (width,) come before it. One node may
    supply `limit` rows to the present choice; points (m, width) are of choices that are over.
    """

    of: LandmarkSettings
    kernel: Kernel
    phase: str = "count"
    offset: Array | None = None
    scale: Array | None = None
    limit: int = 0
    points: Array | None = None

    @classmethod
    def nothing(cls, of: LandmarkSettings) -> Known:
        """Return what is known before the first round."""
        return cls(of, of.kernel)

    def after(self, down: PhaseDown) -> Known:
        """Return what is known when a phase's arrays have gone down."""
        if down.phase == self.phase:
            return self
        known, arrays = replace(self, phase=down.phase), down.arrays
        if "gamma" in arrays:
            kernel = self.kernel.settled_at(float(arrays["gamma"][0]))
            known = replace(
                known, kernel=kernel, offset=arrays["offset"], scale=arrays["scale"], points=None
            )
        if "limit" in arrays:
            known = replace(known, limit=int(arrays["limit"][0]))
        if "points" in arrays:
            new = arrays["points"].astype(np.float64)
            before = new[:0] if known.points is None else known.points
            known = replace(known, points=np.concatenate([before, new]))
        return known

    def knows(self, stage: int) -> bool:
        """Return whether the scores of a choice can be computed."""
        return self.offset is not None and (stage == 1 or self.points is not None)

    def choice(self, stage: int) -> PointChoice:
        """Return the choice of a stage."""
        return PointChoice(self.of.seed, stage, self.of.stages[stage - 1], self.limit)

    def scores(self, stage: int, rows: Array) -> Array:
        """Return what each of rows (n, width) counts in a choice: (n,), not negative."""
        if stage == 1 or self.points is None:
            return np.ones(len(rows))
        found = residuals(self._scaled(rows), Landmarks(self.kernel, self._scaled(self.points)))
        check_finite(self.kernel, found)
        return found

    def slack(self, stage: int, rows: Array) -> Array:
        """Return by how much another machine's scores of rows may differ: (n,)."""
        if stage == 1:
            return np.zeros(len(rows))
        return np.asarray(SLACK * own_squares(self._scaled(rows), self.kernel))

    def _scaled(self, rows: Array) -> Array:
        if self.offset is None or self.scale is None:
            return rows
        return np.asarray((rows - self.offset) / self.scale)


def stage_of(phase: str) -> int:
    """Return which choice a phase belongs to, from 1; 0 for any other."""
    word, _, number = phase.partition("-")
    plain = number.isascii() and number.isdecimal() and len(number) < 3 and number[:1] != "0"
    return int(number) if word in ("keys", "points") and plain else 0


class RowsOffered(NamedTuple):
    """A participant's memory: rows (n, width), and those `taken` as landmarks already.

    `offered` rows of the present choice are by ascending key.
    """

    rows: Array
    known: Known
    offered: Order
    keys: Array
    taken: Order


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
        self._known: Known | None = None  # of a kind that has met a job on its way

    # -- at a participant ------------------------------------------------------------

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        """Return what a round asks of the rows."""
        phase, none = down.phase, np.empty(0, dtype=np.intp)
        if phase == "count":
            # As float32 has them, as they travel.
            rows = points.rows.astype(np.float32).astype(np.float64)
            here = RowsOffered(rows, Known.nothing(self._of), none, np.empty(0), none)
            return here, _counted(rows, shares=points.may_share > 0)
        here, number = memory, node_id(node)
        here = here._replace(known=here.known.after(down))
        if phase.startswith("keys"):
            choice = here.known.choice(stage_of(phase))
            keys = choice.keys(here.known.scores(stage_of(phase), here.rows), number)
            keys[here.taken] = np.inf
            order = choice.smallest(keys, points.may_share)
            return here._replace(offered=order, keys=keys[order]), {"keys": keys[order]}
        mine = here.offered[here.keys <= float(down.arrays["largest"][0])][: points.may_share]
        taken = np.concatenate([here.taken, mine])
        return here._replace(taken=taken), rows_up(number, here.rows, mine)

    def points_in(self, down: PhaseDown, up: Arrays) -> int:
        """Return how many rows go up."""
        return len(up["points"]) if down.phase.startswith("points") else 0

    # -- at a parent -----------------------------------------------------------------

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Add counts up, keep the smallest keys, or put rows together."""
        if down.phase == "count":
            return _added(ups)
        if down.phase.startswith("keys"):
            size = self._of.stages[stage_of(down.phase) - 1]
            return {"keys": merged_keys([up["keys"] for up in ups], size)}
        stage, known, rows = stage_of(down.phase), self._known, merged_rows(ups)
        if known is None or not known.knows(stage):
            return rows
        scores = known.scores(stage, rows["points"].astype(np.float64))
        return cut_rows(rows, known.choice(stage), scores)

    def spread(self, down: PhaseDown, up: Arrays) -> Array | None:
        """Return what gamma, or the scale of each channel, follows from."""
        if down.phase != "count" or not (self._of.scale or self._of.kernel.gamma is None):
            return None
        variance = up["squares"] / max(1.0, float(up["counts"][0]))
        return np.sqrt(variance) if self._of.scale else variance.sum(keepdims=True)

    # -- at the root -----------------------------------------------------------------

    def first(self) -> tuple[Any, PhaseDown]:
        """Ask for counts."""
        self._known = Known.nothing(self._of)
        none = np.empty((0, self._width), dtype=np.float32)
        return ChosenSoFar(np.zeros(3), none), PhaseDown("count", {})

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        """Go on to the next round, or to the answer."""
        result = self._next(state, down, up)
        if not isinstance(result, JobAnswer):
            self._remember(result[1])
        return result

    def _next(
        self, state: ChosenSoFar, down: PhaseDown, up: Arrays
    ) -> tuple[ChosenSoFar, PhaseDown] | JobAnswer:
        phase = down.phase
        if phase == "count":
            state = state._replace(counts=up["counts"])
            return state, PhaseDown("keys-1", {**self._settled(up), **self._limit(state, 1)})
        stage = stage_of(phase)
        if phase.startswith("keys"):
            largest = up["keys"][-1:] if len(up["keys"]) else np.zeros(1)
            return state, PhaseDown(f"points-{stage}", {"largest": largest})
        state = state._replace(points=np.concatenate([state.points, up["points"]]))
        if not len(state.points):
            raise UsageError("landmarks are rows, and no participant has supplied one")
        if stage < len(self._of.stages) and len(up["points"]):
            arrays = {**self._limit(state, stage + 1), "points": up["points"]}
            return state, PhaseDown(f"keys-{stage + 1}", arrays)
        known = Known.nothing(self._of) if self._known is None else self._known
        numbers = kernel_numbers(known.kernel)
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

    def _limit(self, state: ChosenSoFar, stage: int) -> dict[str, Array]:
        size, sharing = self._of.stages[stage - 1], max(1, int(state.counts[2]))
        return {"limit": np.array([float(limit_of(size, self._of.node_share, sharing))])}

    # -- checks ------------------------------------------------------------------------

    def _remember(self, down: PhaseDown) -> None:
        """Remember what has gone down; a parent that has just restarted knows a part of it."""
        if down.phase == "count":
            self._known = Known.nothing(self._of)
        elif self._known is not None:
            self._known = self._known.after(down)

    def check_down(self, down: PhaseDown) -> None:
        """Refuse other phases, and arrays of another shape; remember what they hold."""
        phase, arrays, width = down.phase, down.arrays, self._width
        if phase != "count" and not 1 <= stage_of(phase) <= len(self._of.stages):
            raise PeerError(f"landmarks have no phase {phase[:40]!r}")
        shapes: dict[str, tuple[int | None, ...]] = {}
        if phase.startswith("keys"):
            shapes |= {"limit": (1,)}
            first = {"gamma": (1,), "offset": (width,), "scale": (width,)}
            shapes |= first if stage_of(phase) == 1 else {"points": (None, width)}
        elif phase != "count":
            shapes |= {"largest": (1,)}
        expect(arrays, shapes, single=("points",))
        if len(arrays.get("points", ())) > MOST_POINTS:
            raise PeerError(f"at most {MOST_POINTS} landmarks", kind="oversize")
        if "limit" in arrays and not 1 <= arrays["limit"][0] <= MOST_POINTS:
            raise PeerError(f"limit is 1 to {MOST_POINTS}", kind="range")
        if "scale" in arrays and not (arrays["scale"] > 0).all():
            raise PeerError("scales are positive", kind="range")
        if "gamma" in arrays:
            try:
                self._of.kernel.settled_at(float(arrays["gamma"][0]))
            except UsageError as error:
                raise PeerError(str(error), kind="range") from error
        self._remember(down)

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Refuse arrays that no child of this version sends; compute keys of rows again."""
        phase, stage = down.phase, stage_of(down.phase)
        if phase == "count":
            expect(up, {"counts": (3,), "mean": (self._width,), "squares": (self._width,)})
            rows = up["counts"][0]
            check_counts(up["counts"][:1], MOST_HELD * clients)
            check_counts(up["counts"][1:], 2 * clients)
            if (up["squares"] < 0).any():
                raise PeerError("squares are not negative", kind="range")
            check_at_most("means", up["mean"], LARGEST_READING * (rows > 0))
            check_at_most("squares", up["squares"], rows * LARGEST_READING**2)
            return
        if phase.startswith("keys"):
            check_keys(up, self._of.stages[stage - 1], down, clients)
            return
        known, size = self._known, self._of.stages[stage - 1]
        if known is None or not known.knows(stage):
            choice = PointChoice(self._of.seed, stage, size, size)
            check_rows(up, self._width, choice)
            return
        choice, rows = known.choice(stage), up["points"].astype(np.float64)
        check_rows(up, self._width, choice)
        try:
            scores, slack = known.scores(stage, rows), known.slack(stage, rows)
        except UsageError as error:
            raise PeerError(str(error), kind="range") from error
        check_chosen(up, choice, scores, slack, float(down.arrays["largest"][0]))


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

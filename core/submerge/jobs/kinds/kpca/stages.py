"""KnownPoints: rows that a fleet chooses in stages, for the kinds of jobs that need some.

keys-i      the smallest keys of all rows, by what each counts in the i-th choice
points-i    the rows that these are, as float32: who has a point can compute all of it again

Keys go up before rows do, so that no row leaves its node but those that are chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError, UsageError
from submerge.features import Kernel
from submerge.jobs.arrays import Arrays, check_at_most
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca.points import (
    Order,
    PointChoice,
    check_chosen,
    check_keys,
    check_rows,
    cut_rows,
    limit_of,
    merged_keys,
    merged_rows,
    rows_up,
)
from submerge.jobs.kinds.kpca.settings import MOST_POINTS
from submerge.jobs.points import LARGEST_READING, JobPoints, node_id

Shapes = dict[str, tuple[int | None, ...]]


def stage_of(phase: str) -> int:
    """Return which choice a phase belongs to, from 1; 0 for any other."""
    word, _, number = phase.partition("-")
    plain = number.isascii() and number.isdecimal() and len(number) < 3 and number[:1] != "0"
    return int(number) if word in ("keys", "points") and plain else 0


class StagedSettings(Protocol):
    """Settings of a kind that chooses rows."""

    @property
    def seed(self) -> int:
        """Of all draws."""

    @property
    def kernel(self) -> Kernel:
        """Its gamma may be open."""

    @property
    def node_share(self) -> float:
        """Most rows of one participant, as a share of a choice."""

    @property
    def stages(self) -> tuple[int, ...]:
        """How many rows each choice takes."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownPoints(ABC):
    """What has gone down, None where nothing has yet: the last phase, for what comes twice."""

    of: StagedSettings
    width: int
    kernel: Kernel  # has gamma after the first round
    phase: str = ""  # empty in a kind that has met a job on its way
    limit: int = 0  # rows that one node may supply to the present choice
    points: Array | None = None  # (m, width), of choices that are over

    def after(self, down: PhaseDown) -> Self:
        """Return what is known when a phase's arrays have gone down."""
        if down.phase == "count":
            return type(self)(self.of, self.width, self.of.kernel, down.phase)
        if not self.phase or down.phase == self.phase:
            return self
        arrays = down.arrays
        news = {"phase": down.phase, **self._news(arrays)}
        if "gamma" in arrays:
            news["kernel"] = self.kernel.settled_at(float(arrays["gamma"][0]))
        if "limit" in arrays:
            news["limit"] = int(arrays["limit"][0])
        if "points" in arrays:
            new = arrays["points"].astype(np.float64)
            news["points"] = new if self.points is None else np.concatenate([self.points, new])
        return replace(self, **news)

    def choice(self, stage: int) -> PointChoice:
        return PointChoice(self.of.seed, stage, self.of.stages[stage - 1], self.limit)

    @abstractmethod
    def _news(self, arrays: Arrays) -> dict[str, Any]:
        """Return what else is known by a phase's arrays."""

    @abstractmethod
    def knows(self, stage: int) -> bool:
        """Return whether the scores of a choice can be computed."""

    @abstractmethod
    def scores(self, stage: int, rows: Array) -> Array:
        """Return what each of rows (n, width) counts in a choice: (n,), not negative."""

    @abstractmethod
    def slack(self, stage: int, rows: Array, scores: Array) -> Array:
        """Return by how much another machine's scores of rows may differ: (n,)."""

    def merged(self, phase: str, ups: Sequence[Arrays]) -> Arrays:
        """Keep the smallest keys, or put rows together."""
        stage = stage_of(phase)
        if phase.startswith("keys"):
            return {"keys": merged_keys([up["keys"] for up in ups], self.of.stages[stage - 1])}
        rows = merged_rows(ups)
        if not self.knows(stage):
            return rows
        scores = self.scores(stage, rows["points"].astype(np.float64))
        return cut_rows(rows, self.choice(stage), scores)

    def limit_down(self, stage: int, sharing: float) -> dict[str, Array]:
        """Return how many rows one node may supply, if so many nodes may share theirs."""
        size = self.of.stages[stage - 1]
        limit = limit_of(size, self.of.node_share, max(1, int(sharing)))
        return {"limit": np.array([float(limit)])}

    def rows_wanted(self, phase: str, up: Arrays) -> PhaseDown:
        largest = up["keys"][-1:] if len(up["keys"]) else np.zeros(1)
        return PhaseDown(f"points-{stage_of(phase)}", {"largest": largest})

    def next_keys(self, phase: str, up: Arrays, sharing: float) -> PhaseDown | None:
        """Ask for keys by what these rows miss; None after the last choice."""
        stage = stage_of(phase) + 1
        if stage > len(self.of.stages) or not len(up["points"]):
            return None
        arrays = {**self.limit_down(stage, sharing), "points": up["points"]}
        return PhaseDown(f"keys-{stage}", arrays)

    def has(self, phase: str) -> bool:
        return 1 <= stage_of(phase) <= len(self.of.stages)

    def shapes_down(self, phase: str) -> Shapes:
        """Return the shapes of what goes down in a phase of a choice, besides what settles it."""
        if phase.startswith("points"):
            return {"largest": (1,)}
        points: Shapes = {"points": (None, self.width)} if stage_of(phase) > 1 else {}
        return {"limit": (1,), **points}

    def check_down(self, arrays: Arrays) -> None:
        """Refuse points, numbers of points and a gamma that no root sends."""
        if len(arrays.get("points", ())) > MOST_POINTS:
            raise PeerError(f"at most {MOST_POINTS} points", kind="oversize")
        for name in ("limit", "size"):
            if name in arrays and not 1 <= arrays[name][0] <= MOST_POINTS:
                raise PeerError(f"{name} is 1 to {MOST_POINTS}", kind="range")
        if "gamma" in arrays:
            try:
                self.of.kernel.settled_at(float(arrays["gamma"][0]))
            except UsageError as error:
                raise PeerError(str(error), kind="range") from error

    def check_up(self, down: PhaseDown, up: Arrays, clients: int) -> None:
        """Compute score, u and key of each row again, as far as what went down is known here."""
        stage = stage_of(down.phase)
        size, knows = self.of.stages[stage - 1], self.knows(stage)
        if down.phase.startswith("keys"):
            check_keys(up, size, down, clients)
            return
        choice = self.choice(stage) if knows else PointChoice(self.of.seed, stage, size, size)
        check_rows(up, self.width, choice)
        check_at_most("points", up["points"], LARGEST_READING, clients)
        if not knows:
            return
        rows = up["points"].astype(np.float64)
        try:
            scores = self.scores(stage, rows)
            slack = self.slack(stage, rows, scores)
        except UsageError as error:
            raise PeerError(str(error), kind="range") from error
        check_chosen(up, choice, scores, slack, float(down.arrays["largest"][0]))


Known = TypeVar("Known", bound=KnownPoints)


class RowsOffered(NamedTuple, Generic[Known]):
    """A participant's memory: rows (n, width) and held out, and those `taken` as points already."""

    rows: Array
    held_out: Array
    known: Known
    offered: Order  # rows of the present choice, by ascending key
    keys: Array
    taken: Order

    @classmethod
    def of(cls, points: JobPoints, known: Known) -> RowsOffered[Known]:
        rows, held_out = (
            each.astype(np.float32).astype(np.float64) for each in (points.rows, points.held_out)
        )
        none: Order = np.empty(0, dtype=np.intp)
        return cls(rows, held_out, known, none, np.empty(0), none)

    def gives(
        self, down: PhaseDown, may_share: int, node: str
    ) -> tuple[RowsOffered[Known], Arrays]:
        """Return the memory after a round of a choice, and the keys or the rows that go up."""
        here, number = self._replace(known=self.known.after(down)), node_id(node)
        if down.phase.startswith("keys"):
            stage = stage_of(down.phase)
            choice = here.known.choice(stage)
            keys = choice.keys(here.known.scores(stage, here.rows), number)
            keys[here.taken] = np.inf
            order = choice.smallest(keys, may_share)
            return here._replace(offered=order, keys=keys[order]), {"keys": keys[order]}
        mine = here.offered[here.keys <= float(down.arrays["largest"][0])][:may_share]
        taken = np.concatenate([here.taken, mine])
        return here._replace(taken=taken), rows_up(number, here.rows, mine)

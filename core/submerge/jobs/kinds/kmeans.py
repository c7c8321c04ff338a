"""KMeansJob: k-means of all rows of a fleet; counts and sums travel, and centers come back.

    seed      each participant clusters its own rows; a sample of its centers, by weight, goes up
    lloyd     counts and sums of the rows nearest to each center; as often as it takes
    measure   counts and squared distances at the last centers, also of rows that were held out

All that goes up is of whole groups of near rows, the same in all rounds and jobs (`row_groups`),
but for distances of rows held out: in steps, once an attempt, the nearer half as the median.

The sample is merged exactly: each center has the key -log(u) / weight (Efraimidis & Spirakis, IPL
2006), and the `sample` smallest of all stay, in any tree (weights: Cohen & Kaplan, PODC 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError, UsageError
from submerge.features.draws import logarithm
from submerge.jobs.arrays import Arrays, Shapes, added, check_at_most, check_counts, expect
from submerge.jobs.job import Settings
from submerge.jobs.kind import (
    KEEP,
    AnswerArray,
    JobAnswer,
    JobSetting,
    OfSums,
    PhaseDown,
    check_known,
    flag_of,
    number_of,
    whole_of,
)
from submerge.jobs.masks import MASKED
from submerge.jobs.points import LARGEST_READING, MOST_HELD, JobPoints, draws, seed_of
from submerge.jobs.roster import MOST_MEMBERS
from submerge.jobs.row_groups import FEWEST, near_groups
from submerge.kernel import kmeans_rounds

# The grid is the same everywhere, an eighth of an octave a step, so counts of several
# participants add up exactly, and no distance of a single row travels with more than its step. A
# limit is the upper end of a step: at most 4.5 % above the distance that a sort of all rows would
# give.

STEPS_PER_OCTAVE, OCTAVES = 8, 40
EDGES = 2.0 ** (np.arange(-OCTAVES * STEPS_PER_OCTAVE, OCTAVES * STEPS_PER_OCTAVE) / 8.0)
"""Upper ends of the steps, of squared distances; what is larger is in one step more."""

LEVELS = (0.95, 0.99, 0.999)
"""Shares of rows that limits are of."""


def distance_counts(squares: Array) -> Array:
    """Return how many squared distances (n,) each step holds, (len(EDGES) + 1,)."""
    steps = np.searchsorted(EDGES, squares, side="left")
    return np.bincount(steps, minlength=len(EDGES) + 1).astype(np.float64)


def distance_limits(counts: Array) -> Arrays:
    """Return levels with a row or more beyond, and the distance that this share does not exceed."""
    below, rows = np.cumsum(counts), float(counts.sum())
    levels = [level for level in LEVELS if rows * (1.0 - level) >= 1.0 - 1e-9]
    steps = [int(np.searchsorted(below, level * rows - 1e-9 * rows)) for level in levels]
    edges = np.sqrt(EDGES[np.minimum(np.array(steps, dtype=int), len(EDGES) - 1)])
    return {"distance_levels": np.array(levels), "distance_limits": edges}


def check_distance_counts(counts: Array, rows: float) -> None:
    """Refuse counts that are not of so many rows with a PeerError."""
    if (counts < 0).any() or (counts != np.rint(counts)).any() or counts.sum() != rows:
        raise PeerError("distances are counted in whole numbers, each row once", kind="range")


MOST_CLUSTERS, MOST_SAMPLE = 1024, 1 << 16
LEAST_DRAWN, MOST_DRAWN = 2.0**-54, 37.0
"""-log(u) of the largest and the smallest u that is drawn (`features.draws.uniforms`), to
rounding."""

OF_DISTANCES = (
    AnswerArray("distance_levels", "Shares of rows held out that limits are of."),
    AnswerArray("distance_limits", "Distances to the nearest center that these do not exceed."),
)

ROOT = ""
"""The root's name among the sources of random numbers: no node has it."""


class LloydState(NamedTuple):
    """What the root knows between rounds: steps made, and the cost before the last one."""

    steps: int = 0
    before: float = np.inf


class GroupsOfRows(NamedTuple):
    """A participant's memory: its rows by group, those held out too, and whether it measured."""

    learnt: kmeans_rounds.ClusterTally
    held_out: kmeans_rounds.ClusterTally
    rows_out: Array  # of `held_out`
    measured: bool = False

    @classmethod
    def of(cls, points: JobPoints) -> GroupsOfRows:
        groups = near_groups(points.rows) if points.groups is None else points.groups
        out = near_groups(points.held_out) if points.groups_out is None else points.groups_out
        return cls(
            kmeans_rounds.group_tally(points.rows, groups, FEWEST),
            kmeans_rounds.group_tally(points.held_out, out, FEWEST),
            points.held_out if len(points.held_out) >= FEWEST else points.held_out[:0],
        )


class KMeansJob(OfSums):
    """k-means of all rows of a fleet."""

    listed = (
        JobSetting("clusters", "whole", f"How many clusters, k, 1 to {MOST_CLUSTERS}."),
        JobSetting("steps", "whole", "Most rounds of Lloyd's step.", "50"),
        JobSetting(
            "tolerance",
            "number",
            "Share of the cost that a step must save for another to follow.",
            "0.0001",
        ),
        JobSetting(
            "sample",
            "whole",
            "Centers of participants that the first centers are made of.",
            "16 k, 256 at least",
        ),
        JobSetting("starts", "whole", "How often these are made; the best are taken.", "10"),
        KEEP,
        MASKED,
    )
    answers = (
        AnswerArray("centers", "Each cluster's mean, (k, width).", "rows"),
        AnswerArray("counts", "Rows that are nearest to each, (k,)."),
        AnswerArray("cost", "The sum of squared distances of scaled rows, (1,)."),
        AnswerArray("held_out", "The number of rows held out, and their cost, (2,)."),
        *OF_DISTANCES,
    )

    def __init__(self, settings: Settings, width: int) -> None:
        check_known(settings, (each.name for each in self.listed))
        if "clusters" not in settings:
            raise UsageError("kmeans needs the setting clusters, got none: add clusters=8")
        self._k = whole_of(settings, "clusters", 0, least=1, most=MOST_CLUSTERS)
        self._steps = whole_of(settings, "steps", 50, least=1, most=1000)
        self._tolerance = number_of(settings, "tolerance", kmeans_rounds.TOLERANCE, most=1.0)
        size = max(256, 16 * self._k)
        self._sample = whole_of(settings, "sample", size, least=self._k, most=MOST_SAMPLE)
        self._starts = whole_of(settings, "starts", 10, least=1, most=100)
        flag_of(settings, "keep")
        self._masked = flag_of(settings, "masked")
        self._seed, self._width = seed_of(settings), width
        of_rows, places = {"counts": (self._k,), "cost": (1,)}, (self._k, width)
        self.sums: Mapping[str, Shapes] = {
            "grow": {"counts": (self._k,), "sums": places, "squares": places},
            "lloyd": {**of_rows, "sums": places},
            "measure": {**of_rows, "held_out": (2,), "distances": (len(EDGES) + 1,)},
        }

    def first(self) -> tuple[Any, PhaseDown]:
        if self._masked:
            return LloydState(), PhaseDown("grow", {"centers": np.zeros((self._k, self._width))})
        return LloydState(), PhaseDown("seed", {})

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        """Return a sample of centers, or counts and sums of the rows; memory: groups' tallies."""
        if memory is None:
            memory = GroupsOfRows.of(points)
        learnt, held_out = memory.learnt, memory.held_out
        if down.phase == "seed":
            return memory, self._seeds(learnt, node)
        centers = down.arrays["centers"]
        found = kmeans_rounds.tally(learnt.means, centers, learnt.counts)
        if down.phase == "grow":
            labels = kmeans_rounds.nearest(learnt.means, centers)[0]
            squares = np.zeros_like(centers)
            off = np.square(learnt.means - centers[labels]) * learnt.counts[:, None]
            np.add.at(squares, labels, off)
            return memory, {"counts": found.counts, "sums": found.sums, "squares": squares}
        told = {"counts": found.counts, "cost": np.array([found.cost + learnt.cost])}
        if down.phase == "lloyd":
            return memory, {**told, "sums": found.sums}
        if memory.measured:
            raise UsageError("distances are measured once an attempt")
        out = kmeans_rounds.tally(held_out.means, centers, held_out.counts)
        squares = kmeans_rounds.nearest(memory.rows_out, centers)[1]
        # Limits are far out. What is nearer tells where a row is.
        squares = np.maximum(squares, np.median(squares)) if len(squares) else squares
        told["held_out"] = np.array([float(len(squares)), out.cost + held_out.cost])
        return memory._replace(measured=True), {**told, "distances": distance_counts(squares)}

    def bytes_for(self, rows: int) -> int:
        """Return that of copies of the rows, of centers, and of distances of some rows at once."""
        return 8 * (4 * rows + 8 * self._k) * self._width + (4 << 20)

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Keep the smallest keys; or add up, in order."""
        if down.phase == "seed":
            return self._smallest({n: np.concatenate([up[n] for up in ups]) for n in ups[0]})
        return added(ups)

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        """Make the first centers, move them, or end."""
        if down.phase == "seed":
            return LloydState(), PhaseDown("lloyd", {"centers": self._first_centers(up)})
        centers = down.arrays["centers"]
        if down.phase == "grow":
            grown, ends = self._grown(centers, up)
            ends |= state.steps == 2 * self._k.bit_length()
            following = LloydState() if ends else LloydState(state.steps + 1)
            return following, PhaseDown("lloyd" if ends else "grow", {"centers": grown})
        if down.phase == "measure":
            kept = {name: up[name] for name in ("counts", "cost", "held_out")}
            return JobAnswer({"centers": centers, **kept, **distance_limits(up["distances"])})
        cost = float(up["cost"][0])
        moved = kmeans_rounds.ClusterTally(up["counts"], up["sums"], cost).moved(centers)
        state = LloydState(state.steps + 1, state.before)
        ends = not state.before - cost > self._tolerance * cost or state.steps == self._steps
        phase = "measure" if ends else "lloyd"
        return state._replace(before=cost), PhaseDown(phase, {"centers": moved})

    def check_down(self, down: PhaseDown) -> None:
        """Refuse other phases, and centers of another shape."""
        if down.phase not in ("grow" if self._masked else "seed", "lloyd", "measure"):
            raise PeerError(f"kmeans has no phase {down.phase[:40]!r}")
        expect(down.arrays, {} if down.phase == "seed" else {"centers": (self._k, self._width)})

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Refuse arrays that no child of this version sends in the phase, of rows that it has."""
        k, width, rows = self._k, self._width, MOST_HELD * clients
        if down.phase == "seed":
            m = len(up["keys"]) if "keys" in up and up["keys"].ndim == 1 else 0
            expect(up, {"keys": (m,), "weights": (m,), "points": (m, width)})
            most = min(self._sample + 1, k * clients)
            if m > most or not (up["keys"][:-1] <= up["keys"][1:]).all():
                raise PeerError(f"expected {most} ascending keys at most", kind="range")
            check_counts(up["weights"], rows)
            drawn = up["keys"] * up["weights"]
            if not ((drawn >= LEAST_DRAWN) & (drawn <= MOST_DRAWN)).all():
                raise PeerError("a key is a draw over a weight", kind="range")
            check_at_most("centers", up["points"], LARGEST_READING, clients)
            return
        shapes = self.sums[down.phase]
        expect(up, shapes)
        if any((up[name] < 0).any() for name in shapes if name != "sums"):
            raise PeerError("counts and costs are not negative", kind="range")
        check_counts(up["counts"], rows)
        farthest = width * (2.0 * LARGEST_READING) ** 2
        for name in {"cost", "squares"} & set(shapes):
            check_at_most(f"sums of {name}", up[name], rows * farthest, clients)
        if "sums" in shapes:
            largest = up["counts"][:, None] * LARGEST_READING
            check_at_most("sums", up["sums"], largest, clients)
        else:
            check_counts(up["held_out"][:1], rows)
            check_at_most("costs", up["held_out"][1:], up["held_out"][0] * farthest, clients)
            check_distance_counts(up["distances"], float(up["held_out"][0]))

    def _seeds(self, learnt: kmeans_rounds.ClusterTally, node: str) -> Arrays:
        """Return the centers of a participant's own clusters, by ascending key."""
        if not len(learnt.counts):
            return {"keys": np.empty(0), "weights": np.empty(0), "points": learnt.sums}
        stream = StreamOfDraws(self._seed, node, self._k)
        found = kmeans_rounds.local_summary(learnt.means, self._k, stream, learnt.counts)
        taken = found.counts > 0
        weights = found.counts[taken]
        keys = -logarithm(draws(self._seed, node, "keys", len(weights))) / weights
        centers = found.sums[taken] / weights[:, None]
        return self._smallest({"keys": keys, "weights": weights, "points": centers})

    def _smallest(self, seeds: Arrays) -> Arrays:
        """Return the smallest keys; one more than the sample, as its threshold."""
        order = np.argsort(seeds["keys"], kind="stable")[: self._sample + 1]
        return {name: array[order] for name, array in seeds.items()}

    # A masked job has sums alone, and no sample. Its first centers grow from one: those with most
    # squares are cut in two, along their longest channel (Linde, Buzo & Gray, Trans. Comm. 1980).
    def _grown(self, centers: Array, up: Arrays) -> tuple[Array, bool]:
        """Return centers (k, width), those that had no rows cut out of others, and if all had."""
        held, free = np.flatnonzero(up["counts"]), np.flatnonzero(up["counts"] == 0)
        if not len(held):
            raise UsageError("clusters need rows, and no participant has five near each other")
        counts, grown = np.maximum(up["counts"], 1.0)[:, None], centers.copy()
        grown[held] = (up["sums"] / counts)[held]
        variances = np.maximum(up["squares"] / counts - np.square(grown - centers), 0.0)
        worst = held[np.argsort(-up["counts"][held] * variances[held].sum(axis=1), kind="stable")]
        grown[free] = grown[held[0]]
        for old, new in zip(worst, free, strict=False):
            along = int(variances[old].argmax())
            step = np.sqrt(variances[old, along])
            grown[new] = grown[old]
            grown[new, along] += step
            grown[old, along] -= step
        return grown, not len(free)

    def _first_centers(self, up: Arrays) -> Array:
        """Return centers (k, width) by weighted k-means of the sample."""
        weights, points = up["weights"], up["points"]
        if len(weights) > self._sample:
            # Some were left out: each of the others stands for 1 / (its chance to be in).
            threshold = up["keys"][-1]
            weights, points = weights[:-1], points[:-1]
            weights = weights / -np.expm1(-weights * threshold)
        if len(weights) < self._k:
            raise UsageError(
                f"clusters must be at most the {len(weights)} of five rows or more that all"
                f" participants find among their own, got {self._k}"
            )
        seeds = kmeans_rounds.ClusterTally(weights, weights[:, None] * points, 0.0)
        stream = StreamOfDraws(self._seed, ROOT, self._k * self._starts)
        return kmeans_rounds.initial_centers([seeds], self._k, stream, n_init=self._starts)


class StreamOfDraws:
    """The first n numbers of a node's stream, one after the other."""

    def __init__(self, seed: int, node: str, n: int) -> None:
        self._left = iter(draws(seed, node, "seed", n).tolist())

    def random(self) -> float:
        return float(next(self._left))

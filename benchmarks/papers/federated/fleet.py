"""A fleet on one core for Figure 2: nodes learn their chunks in turn, merges follow, all timed.

Rows come in pieces and are dropped again, so that a stream of any length fits. Processor time of
learning and merging is counted; making rows and their scatter is not. `Way` says what a node runs
and how two models become one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import fft

import measure
from as_printed import Algorithm3, algorithm2
from submerge import SAPCA, merge

RANK, PAPERS_BLOCK = 10, 50
PIECE = 1000
"""Rows that exist at once."""

FIRST = 100
"""Rows of a node that are timed by themselves: the first block has no past to start from."""

MERGE_REPEATS = 5
"""A merge takes less than a millisecond: its time is the median of so many."""


class Way(NamedTuple):
    """What a node runs.

    whose : as in `Curve`
    make : a new learner with `partial_fit`
    call : rows of a call; None gives what is there at once
    model : what a learner sends
    join : two models into one
    basis : (d, RANK) of a model
    """

    whose: str
    make: Callable[[], Any]
    call: int | None
    model: Callable[[Any], Any]
    join: Callable[[Any, Any], Any]
    basis: Callable[[Any], measure.Array]


def _ours(call: int | None, **options: Any) -> Way:
    kept = RANK + options.get("oversample", 5)
    return Way(
        "ours",
        lambda: SAPCA(RANK, **options),
        call,
        lambda engine: engine.subspace,
        lambda one, two: merge(one, two, rank=kept),
        lambda model: model.truncated(RANK).basis,
    )


OURS = "submerge, default"
OURS_AS_PAPER = "submerge, block 50, no spares"
PRINTED = "SPCA and merge as printed"
WAYS = {
    OURS: _ours(None),
    OURS_AS_PAPER: _ours(
        PAPERS_BLOCK, oversample=0, block_size=PAPERS_BLOCK, center=False, exact="never"
    ),
    PRINTED: Way(
        "theirs",
        lambda: Algorithm3(RANK),
        PAPERS_BLOCK,
        Algorithm3.factors,
        lambda one, two: algorithm2(one, two, RANK),
        lambda model: model[0],
    ),
}


class Taken(NamedTuple):
    """Processor seconds of one fleet, and how good its root is.

    learning : of all nodes, one after another
    first : of these, what the first `FIRST` rows of each node took
    merging : of all merges
    slowest : learning of the slowest node
    uneven : the most that a node took over what one node of the same way took for the same rows, at
        the same moment: what is left is not the machine's
    ready : from the start until the root has its model, if each node has a core: no latency
    over : squared error of the root over that of the best subspace of its rank
    """

    learning: float
    first: float
    merging: float
    slowest: float
    uneven: float
    ready: float
    over: float

    def amortised(self, nodes: int) -> float:
        """Return seconds a node: learning and merging of all, over the number of nodes."""
        return (self.learning + self.merging) / nodes


class ScaledFleet:
    """Nodes of one way, which learn equal chunks of a stream, one after another.

    pieces : What each piece of the stream took.
    first : What the first `FIRST` rows of each node took.
    """

    def __init__(self, way: Way, rows: int, nodes: int) -> None:
        self._way, self._chunk = way, rows // nodes
        self._learner, self._left = way.make(), self._chunk
        self._models: list[Any] = []
        self.pieces: list[float] = []
        self.first: list[float] = []

    def take(self, rows: measure.Array) -> None:
        """Learn the next rows of the stream: a chunk ends with a piece."""
        new = self._left == self._chunk
        began = measure.seconds()
        if new:
            self._learn(rows[:FIRST])
            self.first.append(measure.seconds() - began)
        self._learn(rows[FIRST:] if new else rows)
        self._left -= len(rows)
        if not self._left:
            self._models.append(self._way.model(self._learner))
        self.pieces.append(measure.seconds() - began)
        if not self._left:
            self._learner, self._left = self._way.make(), self._chunk

    @property
    def seconds(self) -> measure.Array:
        """What each node took, (nodes,)."""
        return np.reshape(self.pieces, (len(self._models), -1)).sum(axis=1)

    def _learn(self, rows: measure.Array) -> None:
        step = self._way.call or max(1, len(rows))
        for start in range(0, len(rows), step):
            self._learner.partial_fit(rows[start : start + step])

    def merged(self) -> tuple[Any, list[list[float]]]:
        """Merge up a binary tree; return the root's model and each merge's seconds by level."""
        models, levels = self._models, []
        while len(models) > 1:
            pairs = list(zip(models[::2], models[1::2], strict=True))
            levels.append([self._merge_seconds(*pair) for pair in pairs])
            models = [self._way.join(*pair) for pair in pairs]
        return models[0], levels

    def _merge_seconds(self, one: Any, two: Any) -> float:
        took = [measure.clocked(self._way.join, lambda: (one, two)) for _ in range(MERGE_REPEATS)]
        return float(np.median(took))


def taken(
    way: Way, fleet: ScaledFleet, one: ScaledFleet, error: Callable[[measure.Array], float]
) -> Taken:
    """Return the figures of one fleet, beside one node's of the same way and stream."""
    done = fleet.seconds
    beside = done / np.reshape(one.pieces, (len(done), -1)).sum(axis=1)
    model, levels = fleet.merged()
    ready = done
    for level in levels:
        ready = ready.reshape(-1, 2).max(axis=1) + level
    return Taken(
        learning=float(done.sum()),
        first=float(sum(fleet.first)),
        merging=sum(sum(level) for level in levels),
        slowest=float(done.max()),
        uneven=float(beside.max()),
        ready=float(ready[0]),
        over=error(way.basis(model)),
    )


class SynthPieces:
    """Centered rows with eigenvalues i^-alpha and one set of eigenvectors, a piece at a time.

    As `measure.synth`, but a piece depends on its number alone: none has to be kept.
    """

    def __init__(self, dim: int, alpha: float, rows: int) -> None:
        self._rows = rows
        before, self._after = np.random.default_rng(0).choice([-1.0, 1.0], (2, dim))
        self._scale = np.arange(1, dim + 1) ** (-alpha / 2) * before

    def made(self, number: int) -> measure.Array:
        """Return piece `number`, (rows, dim)."""
        X = np.random.default_rng([1, number]).standard_normal((self._rows, len(self._scale)))
        X *= self._scale
        X = fft.dct(X, norm="ortho", axis=1, overwrite_x=True)
        X *= self._after
        X -= X.mean(axis=0)
        return X


class Stream(NamedTuple):
    """Rows of Synth(alpha), `piece` of which exist at once."""

    rows: int
    alpha: float
    dim: int = 1000
    piece: int = PIECE


def run(
    stream: Stream, ways: dict[str, Way], nodes: tuple[int, ...]
) -> dict[tuple[str, int], Taken]:
    """Let fleets of each way and size learn one stream side by side: a busy second hits all.

    The first of `nodes` is 1.
    """
    rows, alpha, dim, piece = stream
    for way in ways.values():
        _warm(way, SynthPieces(dim, alpha, 2 * FIRST))
    fleets = {(name, n): ScaledFleet(way, rows, n) for name, way in ways.items() for n in nodes}
    order = list(fleets.values())
    scatter, made = np.zeros((dim, dim)), SynthPieces(dim, alpha, piece)
    for number in measure.progress(range(rows // piece), f"{rows} rows, alpha {alpha:g}"):
        X = made.made(number)
        scatter += X.T @ X
        # In turn: the first brings the rows into the cache.
        first = number % len(order)
        for fleet in order[first:] + order[:first]:
            fleet.take(X)
    best = float(np.linalg.eigvalsh(scatter)[: dim - RANK].sum())

    def over(basis: measure.Array) -> float:
        return float((np.trace(scatter) - np.sum(basis * (scatter @ basis))) / best)

    return {
        (name, n): taken(ways[name], fleet, fleets[name, 1], over)
        for (name, n), fleet in fleets.items()
    }


def _warm(way: Way, made: SynthPieces) -> None:
    """Load what is loaded when it is asked for first: it is no part of any node's time."""
    fleet = ScaledFleet(way, 8 * FIRST, 2)
    for number in range(4):
        fleet.take(made.made(number))
    fleet.merged()

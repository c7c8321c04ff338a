"""BankScores: the scores of all rows of a bank by one model, computed once for all clients.

A row's score depends on the row and the model alone, since no client here measures from a mean of
its own. What is kept of a score is its bucket in a sketch, in two bytes.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.judge.prepare import Block
from submerge.judge.score import ScoringModel, score
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.summaries import Subspaces
from submerge.stats.quantile_sketch import COARSE, QuantileSketch, buckets_of, empty, merged
from submerge_lab.simulator.large.rows import Picks

KINDS = ("spe", "t2", "distance")

WINDOW = 1024
"""As `SketchTally`'s."""

MODELS = 256
"""Models whose scores are kept: clients that are cut off score by older ones."""

Buckets = npt.NDArray[np.int16]

Scored = tuple[Buckets | None, ...]
"""Of each of `KINDS`; None for a kind that a model has not."""


class BankScores:
    """Buckets of the scores of all rows of a bank, by the model that scores them.

    Parameters
    ----------
    bank : (n, channels)
    summaries : Subspaces
        The product's.
    """

    def __init__(self, bank: Array, summaries: Subspaces) -> None:
        self._bank, self._summaries = bank, summaries
        self._known: OrderedDict[tuple[int, float], Scored] = OrderedDict()

    def buckets(self, model: Model) -> Scored:
        """Return the buckets of all rows, (n,) each."""
        key = model.version, model.created
        if key not in self._known:
            self._known[key] = self._scored(model)
            if len(self._known) > MODELS:
                self._known.popitem(last=False)
        return self._known[key]

    def _scored(self, model: Model) -> Scored:
        bank, summaries = self._bank, self._summaries.at(model.rank)
        scoring = ScoringModel(
            summaries, model.scoring_summary, model.limits, bank.shape[1], model.factors
        )
        block = Block(np.zeros(len(bank), dtype=np.int8), bank, bank, None)
        even = score(block, scoring).even
        found = even.get("spe"), even.get("t2"), even.get("distance")
        return tuple(
            None if scores is None else buckets_of(scores).astype(np.int16) for scores in found
        )


class ScoredRows:
    """The buckets of one client's recent scores: two bytes a reading and kind."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets = tuple(array("h") for _ in KINDS)

    def add(self, of_models: Sequence[tuple[int, Scored]], picks: Picks) -> None:
        """Count the scores of rows of the bank.

        of_models : how many rows, and the scores of all rows of the bank by their model
        """
        start = 0
        for n, scored in of_models:
            which = picks[start : start + n]
            start += n
            for own, buckets in zip(self._buckets, scored, strict=True):
                if buckets is not None:
                    own.frombytes(buckets[which].tobytes())
        for own in self._buckets:
            while len(own) >= 3 * WINDOW:
                # The window before the previous one is forgotten, as in `SketchTally`.
                del own[:WINDOW]

    @property
    def sketches(self) -> ScoreSketches | None:
        """Sketches as a client reports them; None before the first score."""
        spe, t2, distance = map(self._sketch, self._buckets)
        if not spe.n:
            return None
        return ScoreSketches(spe, t2, None, None, distance if distance.n else None)

    @staticmethod
    def _sketch(buckets: array[int]) -> QuantileSketch:
        return sketch_of_windows(np.frombuffer(buckets, dtype=np.int16), WINDOW)


def sketch_of_windows(buckets: npt.NDArray[np.integer], window: int) -> QuantileSketch:
    """Return what a `SketchTally` of that window has after scores of these buckets, oldest first.

    Where earlier ones are left out, whole windows are, and one whole window is there.
    """
    whole = len(buckets) - len(buckets) % window
    current = _sketch_of(buckets[whole:])
    return merged(_sketch_of(buckets[whole - window : whole]), current) if whole else current


def _sketch_of(buckets: npt.NDArray[np.integer]) -> QuantileSketch:
    """Return the sketch of scores in these buckets of the smallest level: dense, so in C."""
    if not len(buckets):
        return empty()
    level, least = COARSE.level, int(buckets.min())
    counts = np.bincount(buckets - least)
    while np.count_nonzero(counts) > COARSE.bins:
        # Neighbours are (odd, even).
        before, after = 1 - least % 2, (least + len(counts) - 1) % 2
        counts = np.concatenate((np.zeros(before, int), counts, np.zeros(after, int)))
        least, level = -(-least >> 1), level + 1
        counts = counts[::2] + counts[1::2]
    some = np.flatnonzero(counts)
    bins = zip((some + least).tolist(), counts[some].tolist(), strict=True)
    return QuantileSketch(level, tuple(bins))

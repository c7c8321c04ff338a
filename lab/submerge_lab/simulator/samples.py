"""SampleSets: summaries that record which readings they hold.

They replace subspaces in the same node machines: a summary is the set of the ids of its
readings. Merging is union. Two merged sets that share an id are a bug: a reading was counted
twice. A set is the bits of one whole number, so unions are cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array, Storage
from submerge.judge.decision import Mask
from submerge.judge.score import Remaining, Statistics
from submerge.pca.budget import DEFAULT_MEMORY, Exact
from submerge.pca.expectation import Guesses
from submerge.pca.factor import Factors
from submerge.pca.reconstruct import NO_PAIRS
from submerge.pca.row_sums import Ints
from submerge.pca.subspace import Subspace
from submerge.protocol.summaries import NO_METHOD, NoiseNeeded, Summary
from submerge.robust.outliers import LEAST, NO_OUTLIERS, Outlier, Screening
from submerge.schema import Scaling, Schema
from submerge.stats.node_mean import OwnMean


@dataclass(frozen=True, slots=True)
class Samples:
    """A set of sample ids: bit i stands for id i."""

    bits: int

    @property
    def weight(self) -> float:
        """Number of ids."""
        return float(self.bits.bit_count())

    @property
    def parts(self) -> tuple[Subspace, ...]:
        """No parts: ids have no directions."""
        return ()

    @property
    def pieces(self) -> tuple[Subspace, ...]:
        """No pieces either."""
        return ()


def bits_of(summary: Summary | None) -> int:
    """Return the ids of a summary of `SampleSets` as bits; 0 for None."""
    return summary.bits if isinstance(summary, Samples) else 0


def is_far(bits: int) -> bool:
    """Return whether the stand-in for screening leaves a set of ids out."""
    first = (bits & -bits).bit_length()
    return bits != 0 and first % 4 == 1 and bits.bit_count() % 16 < 5


class SampleSets:
    """Summaries that are sets of sample ids.

    doubled : Ids that were ever merged with themselves, as bits: 0 unless there is a bug.
    """

    def __init__(self) -> None:
        self.doubled = 0
        self.memory = DEFAULT_MEMORY
        self.exact: Exact = "auto"

    def is_narrow(self, schema: Schema) -> bool:
        """Return False: there is no scatter of ids, and what is measured are rows."""
        return False

    def union(self, parts: Iterable[Summary]) -> Samples:
        """Return the union, and record ids that are in two parts."""
        bits = 0
        for part in parts:
            self.doubled |= bits & bits_of(part)
            bits |= bits_of(part)
        return Samples(bits)

    def learner(self, schema: Schema) -> Bag:
        """Return an empty memory."""
        return Bag(schema.scaling)

    def tree(self, schema: Schema) -> Basket:
        """Return a tree without children."""
        return Basket(self)

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Samples:
        """Return the union."""
        return self.union(parts)

    def restated(
        self, summary: Summary, old: Schema, new: Schema, *, like: Summary | None
    ) -> Summary:
        """Return the summary: ids are the same under every schema."""
        return summary

    def fits(self, schema: Schema, summary: Summary) -> bool:
        """Return True: any set fits."""
        return True

    def faded(self, summary: Summary, factor: float) -> Summary:
        """An id does not fade."""
        return summary

    def packed(self, summary: Summary) -> bytes:
        """Return the bits."""
        bits = bits_of(summary)
        return bits.to_bytes(-(-bits.bit_length() // 8), "little")

    def at(self, rank: int) -> SampleSets:
        """Return itself: ids have no directions."""
        return self

    def scorer(self, summary: Summary, channels: int, factors: tuple[Factors, ...] = ()) -> Bag:
        """Return a scorer, for which no id is anomalous."""
        return Bag()

    def factors(self, summary: Summary) -> tuple[Factors, ...]:
        """Return none: ids have no noise."""
        return ()

    def filled(self, rows: Array, summary: Summary) -> Array:
        """Ids have no gaps."""
        return rows

    def directions(self, summary: Summary) -> Summary:
        """Return the summary: ids have no directions."""
        return summary

    def turn_degrees(self, before: Summary, after: Summary) -> float:
        """Sets do not turn."""
        return 0.0

    def noise_for(self, summary: Summary) -> NoiseNeeded:
        """Return that of one number: an oracle looks at when it is drawn."""
        return NoiseNeeded(1, 1.0)

    def with_noise(self, summary: Summary, noise: Ints) -> Summary:
        """Return the ids as they are."""
        return summary

    def screen(self, schema: Schema, parts: Mapping[str, Summary], *, unit: float) -> Screening:
        """Leave children out by a rule of their own sets, for sets are not far from each other."""
        # The result follows from the rows alone, as the product's does: as their sets grow, a
        # quarter of the children are left out for a time. At most half are left out at once.
        if len(parts) < LEAST:
            return NO_OUTLIERS
        out = [name for name in sorted(parts) if is_far(bits_of(parts[name]))]
        return Screening({name: Outlier(90.0, 0.0) for name in out[: len(parts) // 2]}, {})


class Bag:
    """A learner: one incarnation's ids; `scaling` of its rows, to find the ids in them."""

    method = NO_METHOD

    def __init__(self, scaling: Scaling | None = None) -> None:
        self._bits, self._scaling = 0, scaling

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        """Take in rows whose first column is an id."""
        scaling = self._scaling
        for row in rows:
            id_ = row[0] if scaling is None else row[0] * scaling.scale[0] + scaling.offset[0]
            self._bits |= 1 << round(float(id_))

    def fade(self, factor: float) -> None:
        """An id does not fade."""

    expected, pairs = None, NO_PAIRS

    def statistics(self, rows: Array, features: Storage, *_: object) -> Statistics:
        """Return scores of 0: no id is anomalous."""
        nothing = np.zeros(len(rows))
        return Statistics(nothing, nothing, None, None, rows)

    def falls(self, errors: Array, *_: object) -> Array:
        """No id is far."""
        return np.zeros_like(errors)

    def center(self, own: OwnMean | None = None) -> Array:
        """Return a dummy mean."""
        return np.zeros(1)

    def filled(self, rows: Array, own: OwnMean | None = None) -> Array:
        """Ids have no gaps."""
        return rows

    def left(self, present: Mask) -> Remaining:
        """Ids have no gaps."""
        return Remaining()

    def summary(self) -> Samples:
        """Return all ids."""
        return Samples(self._bits)


class Basket:
    """A tree: the children's ids."""

    def __init__(self, sets: SampleSets) -> None:
        self._sets = sets
        self._parts: dict[str, Summary] = {}
        self._root: Samples | None = None

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, key: object) -> bool:
        return key in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __setitem__(self, key: str, summary: Summary) -> None:
        self._parts[key], self._root = summary, None

    def __delitem__(self, key: str) -> None:
        del self._parts[key]
        self._root = None

    def root(self) -> Samples:
        """Return the union of all children."""
        if self._root is None:
            self._root = self._sets.union(list(self._parts.values()))
        return self._root


RHO = 1.0


class NumberedNoise:
    """Noise that is a number of its own, by which an oracle knows it again."""

    def __init__(self) -> None:
        self.rho, self.costs = RHO, list[float]()

    def draw(self, n: int, scale: float) -> Ints:
        """Return the next number; its scale says what it costs each reading that it covers."""
        self.costs.append(0.5 / scale**2)
        return np.full(n, len(self.costs) - 1)

    def epsilon(self, rho: float) -> float:
        """Return rho: nobody reads it."""
        return rho

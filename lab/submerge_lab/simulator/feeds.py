"""Feeds: the readings of simulated sensors, and the truth that the root is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from submerge import SapcaRank
from submerge._linalg import Array
from submerge.features import FeatureMap, Identity
from submerge.protocol.messages import Report
from submerge.protocol.report_bytes import size
from submerge.protocol.summaries import Subspaces, Summaries, Summary
from submerge.schema import Schema
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.samples import Samples, SampleSets

BANK = 1 << 14
"""Rows that readings are drawn from: the pooled truth is then a weighted sum."""

AROUND = 7
"""Other channels than that of the ids go around so many numbers."""

OVERTONES = 3
"""Harmonics of a curve, with the fundamental wave."""


class Feed(Protocol):
    """A source of readings, and the kind of summary that they are learnt in."""

    @property
    def schema(self) -> Schema:
        """The schema of a reading."""

    @property
    def summaries(self) -> Summaries:
        """The kind of summary."""

    @property
    def own(self) -> Summaries:
        """The same as clients make them: with ranks of their own, or as above."""

    generated: int
    """Number of readings generated."""

    def reading(self, host: Host, time: float, rng: np.random.Generator) -> Array:
        """Return the next reading of a host, (1, channels)."""

    def recorded(self, n: int, time: float, rng: np.random.Generator) -> Array:
        """Return rows (n, channels) that no host reads: they are in files."""

    def learnt(self, rows: Array, schema: Schema) -> Summary:
        """Return what is learnt of rows in files, in units of the channels."""

    def size(self, report: Report) -> int:
        """Return the size of a report in bytes."""


class Ids:
    """Readings that are only ids, in the first channel.

    schema : By default one channel without a name. What other channels read follows from the id.
    given : Ids by node, as bits.
    read_at : Time of each reading, in virtual seconds.
    forged : Ids of readings that no sensor took, as bits: those of a malicious node.
    in_files : Ids of rows in files, which no client reads, as bits.
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = Schema.anonymous(1) if schema is None else schema
        self.summaries = self.own = SampleSets()
        self.generated = 0
        self.given: dict[str, int] = {}
        self.read_at: list[float] = []
        self.forged = self.in_files = 0

    def reading(self, host: Host, time: float, rng: np.random.Generator) -> Array:
        """Return a new id."""
        number = self._new(time)
        self.given[host.name] = self.given.get(host.name, 0) | 1 << number
        self.generated += 1
        row = np.full((1, (host.schema or self.schema).width), float(number % AROUND))
        row[0, 0] = number
        return row

    @property
    def foreign(self) -> int:
        """Ids that no client has read, as bits."""
        return self.forged | self.in_files

    def forge(self, time: float) -> int:
        """Return the id of a forged reading, as bits."""
        bits = 1 << self._new(time)
        self.forged |= bits
        return bits

    def recorded(self, n: int, time: float, rng: np.random.Generator) -> Array:
        """Return new ids."""
        numbers = [self._new(time) for _ in range(n)]
        self.in_files |= sum(1 << number for number in numbers)
        return np.array(numbers, dtype=np.float64)[:, None]

    def learnt(self, rows: Array, schema: Schema) -> Samples:
        """Return the set of ids."""
        return Samples(sum(1 << int(number) for number in rows[:, 0]))

    def _new(self, time: float) -> int:
        self.read_at.append(time)
        return len(self.read_at) - 1

    def size(self, report: Report) -> int:
        """Return the size of a report in bytes."""
        return size(report, self.summaries)


class Rows:
    """Readings of `dim` channels that vary along a few directions, with noise.

    With features they lie about a closed curve instead, which a few directions cannot represent.

    rank : Directions shown. Without features readings vary along so many, each three quarters as
        strong as the one before.
    own_ranks : Clients run SAPCA, from rank 1 and to `rank` at most.
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        oversample: int,
        rng: np.random.Generator,
        half_life: float | None = None,
        features: FeatureMap | None = None,
        *,
        own_ranks: bool = False,
    ) -> None:
        map_ = Identity() if features is None else features
        self.schema = Schema(dim, features=map_, half_life=half_life)
        self.summaries = self.own = Subspaces(rank, oversample=oversample)
        if own_ranks:
            self.own = Subspaces(SapcaRank(start=1, highest=rank), oversample=oversample)
        self.generated = 0
        varied = _directions(dim, rank, rng) if features is None else _curve(dim, rng)
        self._bank = varied + 0.1 * rng.standard_normal((BANK, dim)) + 20.0
        self._learnt = np.zeros(BANK, dtype=np.int64)
        self._rank = rank

    def reading(self, host: Host, time: float, rng: np.random.Generator) -> Array:
        """Return a row of the bank."""
        i = int(rng.integers(BANK))
        self.generated += 1
        self._learnt[i] += 1
        return np.asarray(self._bank[i : i + 1])

    def recorded(self, n: int, time: float, rng: np.random.Generator) -> Array:
        """Return rows of the bank."""
        return np.asarray(self._bank[rng.integers(BANK, size=n)])

    def learnt(self, rows: Array, schema: Schema) -> Summary:
        """Return their summary, as a client's learner makes it."""
        learner = self.summaries.learner(schema)
        learner.learn(schema.scaled(rows), schema.lift(rows))
        return learner.summary()

    def size(self, report: Report) -> int:
        """Return the size of a report in bytes."""
        return size(report, self.summaries)

    def angle(
        self, model: Summary, schema: Schema, files: Sequence[tuple[Array, float]] = ()
    ) -> float:
        """Return degrees between the model and all readings pooled, of features if it has any."""
        # `files` are rows (n, channels) that count beside the readings, and the weight of each.
        learnt = model.parts[0]
        there = np.flatnonzero(self._learnt)
        weights = np.concatenate(
            [self._learnt[there], *(np.full(len(rows), factor) for rows, factor in files)]
        )
        weights = weights / weights.sum()
        X = schema.lift(np.concatenate([self._bank[there], *(rows for rows, _ in files)]))
        X = (X - weights @ X) * np.sqrt(weights)[:, None]
        truth = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, : self._rank]
        cosines = np.linalg.svd(truth.T @ learnt.basis[:, : self._rank], compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), 0.0, 1.0))))


def _directions(dim: int, rank: int, rng: np.random.Generator) -> Array:
    """Return rows (BANK, dim) along `rank` directions."""
    strengths = 4.0 * 0.75 ** np.arange(rank)
    directions = np.linalg.qr(rng.standard_normal((dim, rank)))[0]
    loads = rng.standard_normal((BANK, rank)) * strengths
    return np.asarray(loads @ directions.T)


def _curve(dim: int, rng: np.random.Generator) -> Array:
    """Return (BANK, dim) on a closed curve: a wave with overtones, each in two directions."""
    # All have different strengths, so that principal directions of rows and features are unique.
    waves = min(dim, 2 * OVERTONES)
    angle = rng.random(BANK) * 2 * np.pi
    turns = np.arange(waves) // 2 + 1
    quarters = np.arange(waves) % 2 * np.pi / 2
    loads = 4.0 * 0.75 ** np.arange(waves) * np.cos(np.outer(angle, turns) - quarters)
    directions = np.linalg.qr(rng.standard_normal((dim, waves)))[0]
    return np.asarray(loads @ directions.T)

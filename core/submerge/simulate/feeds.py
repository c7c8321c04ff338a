"""Feeds: what simulated sensors read, and what is held against the root in the end."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from submerge._linalg import Array
from submerge.client.node import ClientNode
from submerge.features import FeatureMap, Identity
from submerge.protocol.messages import Report, size
from submerge.protocol.summaries import Subspaces, Summaries, Summary
from submerge.schema import Schema
from submerge.simulate.hosts import Host
from submerge.simulate.samples import SampleSets

BANK = 1 << 14
"""Rows that readings are drawn from: their pooled truth is then a weighted sum."""

OVERTONES = 3
"""Of a curve, the wave itself included."""


class Feed(Protocol):
    """Readings, and the kind of summary that they are learnt in."""

    @property
    def schema(self) -> Schema:
        """What a reading means."""

    @property
    def summaries(self) -> Summaries:
        """The kind of summary."""

    generated: int
    """Readings given out."""

    def reading(self, host: Host, time: float, rng: np.random.Generator) -> Array:
        """Return the next reading of a host, (1, channels)."""

    def size(self, report: Report) -> int:
        """Return what a report weighs, in bytes."""


class Ids:
    """Readings that are nothing but their own names.

    Attributes
    ----------
    given : dict of str to int
        Ids by node, as bits.
    read_at : list of float
        When each was read, in virtual seconds.
    """

    def __init__(self) -> None:
        self.schema = Schema.anonymous(1)
        self.summaries = SampleSets()
        self.generated = 0
        self.given: dict[str, int] = {}
        self.read_at: list[float] = []

    def reading(self, host: Host, time: float, rng: np.random.Generator) -> Array:
        """Return a new id."""
        self.read_at.append(time)
        self.given[host.name] = self.given.get(host.name, 0) | 1 << self.generated
        self.generated += 1
        return np.array([[float(self.generated - 1)]])

    def size(self, report: Report) -> int:
        """Return what a report weighs, in bytes."""
        return size(report, self.summaries)


class Rows:
    """Readings of `dim` channels that vary along a few directions, and noise.

    With features they lie about a closed curve instead, which no few directions hold.

    Parameters
    ----------
    rank : int
        Directions that are shown, and without features those that the fleet varies along, each
        three quarters as strong as the one before.
    features : FeatureMap, optional
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        oversample: int,
        rng: np.random.Generator,
        half_life: float | None = None,
        features: FeatureMap | None = None,
    ) -> None:
        map_ = Identity() if features is None else features
        self.schema = Schema(dim, features=map_, half_life=half_life)
        self.summaries = Subspaces(rank, oversample=oversample)
        self.generated = 0
        varied = _directions(dim, rank, rng) if features is None else _curve(dim, rng)
        self._bank = varied + 0.1 * rng.standard_normal((BANK, dim)) + 20.0
        self._learnt = np.zeros(BANK, dtype=np.int64)
        self._rank = rank

    def reading(self, host: Host, time: float, rng: np.random.Generator) -> Array:
        """Return a row of the bank."""
        i = int(rng.integers(BANK))
        self.generated += 1
        # What only measures, for a scaling or a gamma, is in no model.
        if not isinstance(host.node, ClientNode) or host.node.current.learns:
            self._learnt[i] += 1
        return np.asarray(self._bank[i : i + 1])

    def size(self, report: Report) -> int:
        """Return what a report weighs, in bytes."""
        return size(report, self.summaries)

    def angle(self, model: Summary, schema: Schema) -> float:
        """Return degrees between the model and all readings pooled, at the rank shown.

        schema : the model's; of a kernel group, features are compared
        """
        learnt = model.parts[0]
        there = np.flatnonzero(self._learnt)
        weights = self._learnt[there] / self._learnt.sum()
        X = schema.lift(self._bank[there])
        X = (X - weights @ X) * np.sqrt(weights)[:, None]
        truth = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, : self._rank]
        cosines = np.linalg.svd(truth.T @ learnt.basis[:, : self._rank], compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), 0.0, 1.0))))


def _directions(dim: int, rank: int, rng: np.random.Generator) -> Array:
    """Rows (BANK, dim) along `rank` directions."""
    strengths = 4.0 * 0.75 ** np.arange(rank)
    directions = np.linalg.qr(rng.standard_normal((dim, rank)))[0]
    loads = rng.standard_normal((BANK, rank)) * strengths
    return np.asarray(loads @ directions.T)


def _curve(dim: int, rng: np.random.Generator) -> Array:
    """Rows (BANK, dim) on a closed curve: a wave and its overtones, along directions of their own.

    No two of them are equally strong: principal directions of such rows, or of their features,
    would be anybody's guess.
    """
    waves = min(dim, 2 * OVERTONES)
    angle = rng.random(BANK) * 2 * np.pi
    turns = np.arange(waves) // 2 + 1
    quarters = np.arange(waves) % 2 * np.pi / 2
    loads = 4.0 * 0.75 ** np.arange(waves) * np.cos(np.outer(angle, turns) - quarters)
    directions = np.linalg.qr(rng.standard_normal((dim, waves)))[0]
    return np.asarray(loads @ directions.T)

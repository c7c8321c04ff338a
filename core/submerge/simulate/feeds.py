"""Feeds: what simulated sensors read, and what is held against the root in the end."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from submerge._linalg import Array
from submerge.messages import Report, size
from submerge.schema import Schema
from submerge.simulate.hosts import Host
from submerge.simulate.samples import SampleSets
from submerge.subspace import Subspace
from submerge.summaries import Subspaces, Summaries

BANK = 1 << 14
"""Rows that readings are drawn from: their pooled truth is then a weighted sum."""


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

    Parameters
    ----------
    rank : int
        Directions that the fleet varies along, each half as strong as the one before.
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        oversample: int,
        rng: np.random.Generator,
        half_life: float | None = None,
    ) -> None:
        self.schema = Schema(dim, half_life=half_life)
        self.summaries = Subspaces(rank, oversample=oversample)
        self.generated = 0
        strengths = 4.0 * 0.75 ** np.arange(rank)
        directions = np.linalg.qr(rng.standard_normal((dim, rank)))[0]
        loads = rng.standard_normal((BANK, rank)) * strengths
        self._bank = loads @ directions.T + 0.1 * rng.standard_normal((BANK, dim)) + 20.0
        self._drawn = np.zeros(BANK, dtype=np.int64)
        self._rank = rank

    def reading(self, host: Host, time: float, rng: np.random.Generator) -> Array:
        """Return a row of the bank."""
        i = int(rng.integers(BANK))
        self._drawn[i] += 1
        self.generated += 1
        return np.asarray(self._bank[i : i + 1])

    def size(self, report: Report) -> int:
        """Return what a report weighs, in bytes."""
        return size(report, self.summaries)

    def angle(self, model: Subspace) -> float:
        """Return degrees between the model and all readings pooled, at the rank shown."""
        weights = self._drawn / self._drawn.sum()
        mean = weights @ self._bank
        X = (self._bank - mean) * np.sqrt(weights)[:, None]
        truth = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, : self._rank]
        cosines = np.linalg.svd(truth.T @ model.basis[:, : self._rank], compute_uv=False)
        return float(np.degrees(np.arccos(np.clip(cosines.min(), 0.0, 1.0))))

"""History: what was learnt of rows that no node reports, beside the rows of a group's root."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.summaries import Summary

ID_DIGITS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Rows that were learnt together; by its key, they count once."""

    key: bytes  # SHA-256 of its parsed rows, 32 bytes
    machine: str  # which machine they are of; a name that a node can have
    rows: int
    # times of its first and last row, seconds since 1970; NaN where rows have no times
    first: float
    last: float
    file: str = ""  # where it was read from, for people


def fleet_chunk(origin: str, rows: int = 1) -> Chunk:
    """Return what stands for all rows of a fleet by its origin, in what others save of it."""
    key = hashlib.sha256(b"submerge fleet 1\n" + origin.encode()).digest()
    return Chunk(key, origin, max(1, rows), math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class History:
    """What was learnt of rows that no node reports."""

    model: Model  # what scored them; with their schema, counts and rank
    summary: Summary  # what merges
    sketches: ScoreSketches | None  # of rows that the scoring model had not learnt
    chunks: tuple[Chunk, ...] = ()  # by key; of a fleet, a `fleet_chunk` for each model, too
    origin: str = ""  # as in `Learnt`: empty for files, else the fleet
    most_rows: float = math.inf  # that it counts for
    pushed: float = 0.0  # by an operator, seconds since 1970

    @cached_property
    def name(self) -> str:
        """What it is called: it follows from what was learnt, and from nothing else."""
        said = f"{self.origin} {self.model.version}" if self.origin else "files"
        known = hashlib.sha256(said.encode())
        for chunk in self.chunks:
            known.update(chunk.key)
        return known.hexdigest()[:ID_DIGITS]

    @property
    def passed_on(self) -> tuple[Chunk, ...]:
        """Its chunks, and that of the fleet that it is of."""
        if not self.origin:
            return self.chunks
        return (*self.chunks, fleet_chunk(self.origin, self.model.counts.learnt))

    @cached_property
    def keys(self) -> frozenset[bytes]:
        return frozenset(chunk.key for chunk in self.chunks)

    @cached_property
    def as_of(self) -> float:
        """The time that it describes: that of its last row, or of a fleet's model."""
        if self.origin:
            return self.model.created
        return max(
            (chunk.last for chunk in self.chunks if chunk.last == chunk.last),
            default=self.model.created,
        )

    @property
    def factor(self) -> float:
        """By what its weight is multiplied, so that it counts for `most_rows` at most."""
        weight = self.summary.weight
        return min(1.0, self.most_rows / weight) if weight > 0 else 1.0

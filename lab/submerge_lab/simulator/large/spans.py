"""ReadingSpan: a summary that is not computed yet, for it follows from the numbers of its readings.

The nodes of clients pass it on like any summary. `SpanSummaries.made` computes it, by the learner
that ships, when it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from submerge._linalg import EPS, Array, Storage
from submerge.errors import UsageError
from submerge.pca.budget import is_exact
from submerge.pca.expectation import Guesses
from submerge.pca.subspace import Subspace, oriented
from submerge.protocol.messages import Report
from submerge.protocol.summaries import Learner, Piece, Subspaces, Summary
from submerge.robust.outliers import Screening
from submerge.schema import Schema
from submerge_lab.simulator.large.rows import NumberedRows


@dataclass(frozen=True, slots=True)
class ReadingSpan:
    """What a client has learnt from the readings [first, last) of a stream."""

    of: SpanSummaries
    stream: int
    first: int
    last: int

    @property
    def weight(self) -> float:
        """Number of readings."""
        return float(self.last - self.first)

    @property
    def parts(self) -> tuple[Subspace, ...]:
        """As those of what it stands for: computed at each call."""
        return self.of.made(self).parts

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Likewise."""
        return self.of.made(self).pieces


class SpanLearner:
    """A learner that notes which readings it has seen.

    Its rows are (n, 2): a stream and a number. They follow one another.
    """

    __slots__ = ("_first", "_last", "_of", "_stream")

    def __init__(self, of: SpanSummaries) -> None:
        self._of, self._stream, self._first, self._last = of, 0, 0, 0

    def learn(self, rows: Array, features: Storage, gaps: Guesses | None = None) -> None:
        """Take in readings by their numbers."""
        stream, first = int(rows[0, 0]), int(rows[0, 1])
        if self._first == self._last:
            self._stream, self._first, self._last = stream, first, first
        if (stream, first) != (self._stream, self._last):
            raise UsageError(f"expected reading {self._last} of {self._stream}, got {first}")
        self._last = int(rows[-1, 1]) + 1

    def fade(self, factor: float) -> None:
        """Refuse: readings of a large fleet do not fade (`support`)."""
        raise UsageError(f"expected readings that do not fade, got a factor of {factor}")

    def summary(self) -> ReadingSpan:
        """Return everything learnt."""
        return ReadingSpan(self._of, self._stream, self._first, self._last)


class SpanSummaries(Subspaces):
    """Subspaces that clients compute when they send them.

    Attributes
    ----------
    real : Subspaces
        The same without spans: the product's.
    """

    def __init__(self, rows: NumberedRows, rank: int, oversample: int) -> None:
        super().__init__(rank, oversample=oversample)
        self._rows = rows
        self.real = Subspaces(rank, oversample=oversample)
        self._last: tuple[ReadingSpan, Summary] | None = None

    def learner(self, schema: Schema) -> Learner:
        """Return a learner of numbers."""
        return SpanLearner(self)

    def made(self, summary: Summary) -> Summary:
        """Return what a span stands for, as a client's learner makes it."""
        if not isinstance(summary, ReadingSpan):
            return summary
        # A look whether the subspace has turned asks twice for the same.
        if self._last is None or self._last[0] != summary:
            rows = self._rows.rows(summary.stream, summary.first, summary.last)
            self._last = summary, self._computed(rows)
        return self._last[1]

    def _computed(self, rows: Array) -> Summary:
        schema, kept = self._rows.schema, self._kept((self._rows.schema.dim,))[0]
        if not self.is_narrow(schema) and is_exact(
            schema.dim, kept, kept + 30, self.memory, adaptive=False
        ):
            return decomposed(rows, schema.fingerprint, kept)
        learner = self.real.learner(schema)
        learner.learn(rows, rows)
        return learner.summary()

    def sent(self, report: Report) -> Report:
        """Return a client's report with a summary that is computed."""
        if not isinstance(report.summary, ReadingSpan):
            return report
        return replace(report, summary=self.made(report.summary))

    # -- what computes a summary --------------------------------------------------

    def merged(self, schema: Schema, parts: Sequence[Summary], *, own: bool) -> Summary:
        """As `Subspaces.merged`."""
        return super().merged(schema, [self.made(part) for part in parts], own=own)

    def fits(self, schema: Schema, summary: Summary) -> bool:
        """As `Subspaces.fits`."""
        return super().fits(schema, self.made(summary))

    def packed(self, summary: Summary) -> bytes:
        """As `Subspaces.packed`."""
        return super().packed(self.made(summary))

    def turn_degrees(self, before: Summary, after: Summary) -> float:
        """As `Subspaces.turn_degrees`."""
        return super().turn_degrees(self.made(before), self.made(after))

    def screen(self, schema: Schema, parts: Mapping[str, Summary], *, unit: float) -> Screening:
        """As `Subspaces.screen`."""
        made = {name: self.made(part) for name, part in parts.items()}
        return super().screen(schema, made, unit=unit)


def decomposed(rows: Array, fingerprint: str, kept: int) -> Subspace:
    """Return what an engine has learnt of rows (n, dim) where it holds the whole scatter.

    It is the same to rounding, in half of the time: rows that are fewer than channels are
    decomposed by their products with each other.
    """
    mean = rows.mean(axis=0)
    X = rows - mean
    few, noise = len(X) < X.shape[1], X.shape[1] * EPS
    lam, vectors = np.linalg.eigh(X @ X.T if few else X.T @ X)
    lam, vectors = lam[::-1], vectors[:, ::-1]
    k = min(kept, int(np.count_nonzero(lam > noise * lam[0])))
    sigma = np.sqrt(lam[:k])
    found = vectors[:, :k].T @ X / sigma[:, None] if few else np.ascontiguousarray(vectors[:, :k].T)
    energies = np.einsum("ij,ij->j", X, X)
    return oriented(
        found.astype(np.float32),
        sigma,
        schema=fingerprint,
        mean=mean,
        weight=float(len(X)),
        energy=float(energies.sum()),
        spectral_bound=max(0.0, float(lam[k])) if k < len(lam) else 0.0,
        channel_energies=energies,
    )

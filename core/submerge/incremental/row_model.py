"""RowModel: scores rows given in their units as a client does, by a scatter that was learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from submerge._linalg import Array
from submerge.history.models import summaries_of
from submerge.history.settings import FitSettings
from submerge.judge.prepare import LARGEST_SCALED, Block, in_units
from submerge.judge.score import RowScores, ScoringModel, score
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Scaling, Schema

AT_ONCE = 128  # rows that are scored at once: to fill gaps takes a matrix for each of them


@dataclass(frozen=True, slots=True, eq=False)
class RowModel:
    """A model of rows, and the way to score with it."""

    schema: Schema
    shown: Subspace  # leading directions of scaled rows, without spare ones
    covariance: Array  # (dim, dim), L L' + diag(Psi), by which distances are measured
    weight: float
    scoring: ScoringModel

    @classmethod
    def of(
        cls, scatter: WholeScatter, schema: Schema, rank: int, settings: FitSettings
    ) -> RowModel | None:
        """Return the model of a scaled scatter; None if nothing varies in it."""
        summaries = summaries_of(rank, settings)
        directions = summaries.directions(scatter)
        factors = summaries.factors(scatter)
        if not factors:
            return None
        scoring = ScoringModel(summaries, directions, None, schema.width, factors)
        whole, shown = directions.parts[0], scatter.directions(rank)
        loadings = factors[0].loadings_of(whole)
        covariance = np.asarray(loadings @ loadings.T + np.diag(factors[0].noise))
        return cls(schema, shown, covariance, scatter.weight, scoring)

    @property
    def scaling(self) -> Scaling:
        """The center and scale of the channels."""
        width = self.schema.width
        return self.schema.scaling or Scaling((0.0,) * width, (1.0,) * width)

    def judge(self, rows: Array) -> Iterator[tuple[Block, RowScores]]:
        """Score rows (n, channels) in their units, some at a time; NaN is a gap."""
        for start in range(0, len(rows), AT_ONCE):
            # Unlike a client's, each row has a score, of the values it has; large ones are cut.
            scaled = self.schema.scaled(rows[start : start + AT_ONCE])
            scaled = np.clip(scaled, -LARGEST_SCALED, LARGEST_SCALED)
            gaps = np.isnan(scaled)
            some = gaps.any(axis=1)
            if some.any():
                scaled[some] = self.scoring.filled(scaled[some], None)
            why = np.zeros(len(scaled), dtype=np.int8)
            block = Block(why, scaled, scaled, gaps if some.any() else None)
            yield block, score(block, self.scoring)

    def distances(self, rows: Array) -> Array:
        """Return squared Mahalanobis distances (n,), as they compare with rows without gaps."""
        found = [scores.even["distance"] for _, scores in self.judge(rows)]
        return np.concatenate(found)

    def shares(self, rows: Array) -> Array:
        """Return the share of each channel in what is anomalous about each row: (n, channels)."""
        return np.concatenate([scores.blame() for _, scores in self.judge(rows)])

    def predicted(self, rows: Array) -> Array:
        """Return each channel as the others predict it, (n, channels), in its unit."""
        found = [block.rows - scores.left_out for block, scores in self.judge(rows)]
        return in_units(np.concatenate(found), self.schema)

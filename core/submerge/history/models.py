"""Models of a history: what a root would publish for the same rows."""

from __future__ import annotations

from submerge.aggregator.rollup import limits
from submerge.history.settings import FitSettings
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.messages import Counts, Model, ScoreSketches
from submerge.protocol.summaries import Subspaces
from submerge.schema import Schema

NEVER = float(2**53)
"""When a model of a history expires: it is as old as its rows, and stays what it is."""


def summaries_of(rank: int, settings: FitSettings) -> Subspaces:
    """Return what a node does with summaries of that rank."""
    return Subspaces(rank, rank_max=max(rank, settings.rank_max), oversample=settings.oversample)


def model_of(
    scatter: WholeScatter,
    schema: Schema,
    summaries: Subspaces,
    *,
    rank: int,
    version: int,
    nodes: int = 1,
    scores: ScoreSketches | None = None,
    counts: Counts | None = None,
    block_s: float = 0.0,
    at: float = 0.0,
) -> Model:
    """Return a model of a scatter by the schema and rank that are settled; limits by `scores`."""
    return Model(
        "history",
        version,
        schema.canonical,
        schema.fingerprint,
        summaries.directions(scatter),
        limits(scores),
        counts or Counts(round(scatter.weight)),
        nodes,
        (0.0, 0.0, 0.0),
        at,
        NEVER,
        maxima=None if scores is None else scores.maxima,
        factors=summaries.factors(scatter),
        rank=rank,
        block_s=block_s,
    )

"""Learnt: all that is known of machines from their rows: what scores, and what merges.

A `Model` is made to be sent: directions in float32, and limits. What it was made from is here
beside it, in full, so that it can be merged with more (`submerge_proto.files.learnt`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge.aggregator.rollup import limits
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.monitor import Judgement, NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.history.settings import FitSettings
from submerge.judge.prepare import Block
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.history import Chunk
from submerge.protocol.messages import Counts, Model, ScoreSketches
from submerge.protocol.summaries import Subspaces, Summary
from submerge.schema import Schema
from submerge.stats.moments import Moments


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    model: Model
    summary: Summary | None = None  # what merges, spare directions too; None for a model from below
    moments: Moments | None = None  # of the channels, in their units
    sketches: ScoreSketches | None = None  # of rows that the scoring model had not learnt
    chunks: tuple[Chunk, ...] = ()  # by key; for a fleet's model, those of its histories
    origin: str = ""  # a fleet's group and root, "pumps 18bc..."; empty for files
    monitors: tuple[tuple[str, MonitorState], ...] = ()  # by machine; without an alarm
    lags: int = 1  # rows that a scored vector is made of
    period_s: float = 0.0  # that a row stands for; 0 if not known
    when: str = ""  # the condition that its rows met; empty for all rows

    @property
    def highest(self) -> HighestSoFar:
        """Of held-out rows of all machines: each has the same."""
        return next((state.detector.highest for _, state in self.monitors), HighestSoFar())

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.chunks)


def follow(monitor: NodeMonitor, block: Block, judgement: Judgement | None) -> None:
    """Let a machine's own mean follow the rows that a client would have learnt; all without one."""
    if monitor.own is None:
        return
    rows, learnt = block.rows, np.ones(len(block), dtype=bool)
    if judgement is not None:
        decision = judgement.decision
        clipped = decision.clipped(rows, judgement.center)
        rows = np.where(decision.alarmed[:, None], rows, clipped)
        learnt = ~decision.withheld
    gaps = None if block.gaps is None else block.gaps[learnt]
    monitor.learn(rows[learnt], rows[learnt], block.time, gaps)


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

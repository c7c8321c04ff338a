"""Rows that were scored, made by hand: what the detector, score lines and sinks are shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from submerge.judge.decision import Decision
from submerge.judge.prepare import Block, RowTime
from submerge.judge.score import RowScores
from submerge.protocol.machine import Scored
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.score_limits import Limits


def a_block(rows: Any, gaps: Any = None, time: RowTime = RowTime()) -> Block:  # noqa: B008
    """Return rows (n, channels) that can all be scored."""
    rows = np.asarray(rows, dtype=float)
    return Block(np.zeros(len(rows), dtype=np.int8), rows, rows, gaps, time)


def row_scores(
    spe: Any,
    t2: Any,
    errors: Any,
    *,
    linear: Any = None,
    limits: Limits | None = None,
    expected: Any = None,
    usual: ResidualScale | None = None,
) -> RowScores:
    """Return the scores of whole rows whose channels are so far from what the others say."""
    even = {"spe": np.asarray(spe, dtype=float), "t2": np.asarray(t2, dtype=float)}
    if linear is not None:
        even["linear"] = np.asarray(linear, dtype=float)
    over = {kind: np.zeros(len(even["spe"])) for kind in even}
    anomaly = None
    if limits is not None:
        over = {kind: limits.above(scores, kind) for kind, scores in even.items()}
        if linear is not None:
            anomaly = limits.anomaly_score({kind: even[kind] for kind in ("spe", "linear")})
    return RowScores(
        *(even["spe"], even["t2"], even.get("linear"), even, over, anomaly),
        *(np.asarray(errors, dtype=float), expected, usual),
    )


def scored_rows(spe: Any, rows: Any = None, *, gaps: Any = None, **scores: Any) -> Scored:
    """Return rows with such an SPE, T2 twice as large, each channel as wrong as it is large."""
    spe = np.asarray(spe, dtype=float)
    rows = np.tile([[0.0, 0.0, 1.0]], (len(spe), 1)) if rows is None else np.asarray(rows)
    block = a_block(rows, gaps)
    return Scored(
        block, row_scores(spe, 2 * spe, rows, **scores), Decision.learn(len(spe)), 5, False
    )

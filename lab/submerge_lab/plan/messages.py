"""Messages of a planned fleet, as bytes: their sizes are counted, not estimated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from submerge.protocol.messages import (
    Answer,
    Counts,
    Incarnation,
    Model,
    Reason,
    Report,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.score_trail import MINUTES, UNLIMITED, ScoreTrail
from submerge.protocol.summaries import Subspaces, Summary
from submerge.schema import Schema
from submerge.stats.quantile_sketch import QuantileSketch
from submerge.stats.score_limits import Limits
from submerge_proto.wire import codec

WALL = 1_700_000_000.0
PARENT = Incarnation(1, 1)
GROUP = "group"


class Sizes(NamedTuple):
    """Bytes of one message of each kind."""

    report: int
    answer: int
    model: int


def summary_of_rows(
    schema: Schema, summaries: Subspaces, rng: np.random.Generator, rows: int = 120
) -> Summary:
    """Return what a client has learnt of rows that vary in all directions."""
    learner = summaries.learner(schema)
    strengths = 1.0 + 8.0 * 0.75 ** np.arange(schema.width)
    values = rng.standard_normal((rows, schema.width)) * strengths
    learner.learn(values, values)
    return learner.summary()


def report_of(
    node: str, seq: int, summary: Summary, schema: Schema, *, incarnation: Incarnation, at: float
) -> Report:
    """Return a report as a client sends it, with full sketches of scores and a full trail."""
    sketch = QuantileSketch(2, tuple((3 * i, 40 + i) for i in range(16)))
    learnt = int(summary.weight)
    return Report(
        stamp=Stamp(node, GROUP, incarnation, seq),
        final=False,
        pinned=PARENT,
        fence=b"",
        fingerprint=schema.fingerprint,
        summary=summary,
        moments=None,
        counts=Counts(learnt=learnt),
        as_of=at,
        synced=True,
        version=1_700_000_000_000,
        lifetime=learnt,
        scores=ScoreSketches(sketch, sketch, None, None, sketch),
        trail=ScoreTrail(int(at // 60), bytes([UNLIMITED]) * MINUTES),
    )


def sizes(channels: int, rank: int, oversample: int) -> Sizes:
    """Return the bytes of a report, of its answer, and of a model."""
    schema, summaries = Schema.anonymous(channels), Subspaces(rank, oversample=oversample)
    summary = summary_of_rows(schema, summaries, np.random.default_rng(0))
    report = report_of("node-1000000", 9, summary, schema, incarnation=PARENT, at=WALL)
    answer = Answer(
        *(report.stamp, Reason.ACK, b"", PARENT, False, 9, PARENT, 9), floor=1_700_000_000_000
    )
    directions = summaries.directions(summary)
    shares, values = (0.5, 0.9, 0.95, 0.99, 0.999), (1.0, 2.0, 3.0, 4.0, 5.0)
    model = Model(
        group=GROUP,
        version=1_700_000_000_000,
        schema=schema.canonical,
        fingerprint=schema.fingerprint,
        summary=directions,
        limits=Limits(shares, values, values, 1_000_000, distance=values),
        counts=report.counts,
        nodes=1_000_000,
        staleness=(64.0, 128.0, 256.0),
        created=WALL,
        expires=WALL + 86400.0,
        factors=summaries.factors(directions),
    )
    return Sizes(*(len(codec.encode(each)) for each in (report, answer, model)))

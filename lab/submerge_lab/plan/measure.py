"""measured(): what a report costs an aggregator on this machine, without a network.

A root in this process decodes reports of some hundred children, decides, writes them to a store on
this disk in batches, and encodes its answers, as an aggregator's commit worker does. What gRPC or
MQTT take beside that is not measured here: it is taken to be as large a part of a report as it was
where `benchmarks/durable.py` ran.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Event, Keep, Key, Now, Received, Send, Start, Tick
from submerge.protocol.messages import (
    Answer,
    Counts,
    Incarnation,
    Join,
    Joined,
    Message,
    Model,
    Reason,
    Report,
    ScoreSketches,
    Stamp,
)
from submerge.protocol.score_trail import MINUTES, UNLIMITED, ScoreTrail
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces, Summary
from submerge.schema import Schema
from submerge.stats.quantile_sketch import QuantileSketch
from submerge.stats.score_limits import Limits
from submerge_aggregator.store import Store
from submerge_proto.kept import records
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


CHILDREN = 200
ROUNDS = 5
BATCH = 64
MODEL_S = 60.0


class Measured(NamedTuple):
    """What was measured here.

    report_core_s : processor time of a report: decoded, decided, stored, answered
    merge_core_s : processor time of a merge, for each child that has reported since the last
    """

    report_core_s: float
    merge_core_s: float
    row_bytes: float


def measured(channels: int, rank: int, oversample: int, advance: Callable[[int], None]) -> Measured:
    """Measure on this machine; some seconds."""
    with TemporaryDirectory(prefix="submerge-plan-") as folder:
        root = _Root(Path(folder), channels, rank, oversample)
        reports, merges = list[float](), list[float]()
        try:
            for turn in range(ROUNDS + 1):
                # The first round makes rows, and loads what is loaded late.
                spent = root.round(turn + 1)
                reports.append(spent[0] / CHILDREN)
                merges.append(spent[1] / CHILDREN)
                advance(1)
            held = root.held_bytes(ROUNDS + 2) / CHILDREN
        finally:
            root.close()
    return Measured(min(reports[1:]), min(merges[1:]), held)


class _Root:
    """A root with children, and the store of its rows."""

    def __init__(self, folder: Path, channels: int, rank: int, oversample: int) -> None:
        self._schema = Schema.anonymous(channels)
        self._summaries = Subspaces(rank, oversample=oversample)
        self._rng = np.random.default_rng(0)
        plan = GroupPlan(self._summaries, self._schema)
        settings = AggregatorSettings("root", None, model_every_s=MODEL_S)
        self._node = AggregatorNode(settings, {GROUP: plan}, self._rng)
        self._store, self._seconds = Store(folder / "store.db"), 0.0
        self._names = [f"node-{i}" for i in range(CHILDREN)]
        self._incarnations = [Incarnation(int(WALL * 1000), i + 1) for i in range(CHILDREN)]
        self._step(Start({}), dict[Key, Any]())
        answers = [self._join(i) for i in range(CHILDREN)]
        self._pin = next(each.pinned for each in answers if each.pinned is not None)

    def round(self, seq: int) -> tuple[float, float]:
        """Let all children report; return processor seconds of the reports, and of the merge."""
        data = self._reports(seq)
        began = time.process_time()
        for first in range(0, CHILDREN, BATCH):
            changes: dict[Key, Any] = {}
            for each in data[first : first + BATCH]:
                self._step(Received(codec.decode("report", each)), changes)
            self._store.write(
                {
                    key: None if kept is None else records.pack(key, kept)
                    for key, kept in changes.items()
                }
            )
        reported = time.process_time()
        self._seconds += 2 * MODEL_S
        self._step(Tick(), dict[Key, Any]())
        return reported - began, time.process_time() - reported

    def held_bytes(self, seq: int) -> float:
        """Return the memory that children's newest rows and their merges take."""
        data = self._reports(seq)
        tracemalloc.start()
        try:
            for each in data:
                self._step(Received(codec.decode("report", each)), dict[Key, Any]())
            self._seconds += 2 * MODEL_S
            self._step(Tick(), dict[Key, Any]())
            return float(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _reports(self, seq: int) -> list[bytes]:
        found, at = list[bytes](), WALL + self._seconds
        for name, incarnation in zip(self._names, self._incarnations, strict=True):
            summary = summary_of_rows(self._schema, self._summaries, self._rng, 60 + 10 * seq)
            report = report_of(name, seq, summary, self._schema, incarnation=incarnation, at=at)
            found.append(codec.encode(replace(report, pinned=self._pin)))
        return found

    def _join(self, i: int) -> Joined:
        stamp = Stamp(self._names[i], GROUP, self._incarnations[i], 0)
        sent = self._step(Received(Join(stamp, b"", (), self._schema.canonical)), {})
        return next(each for each in sent if isinstance(each, Joined))

    def _step(self, event: Event, changes: dict[Key, Any]) -> list[Message]:
        sent = list[Message]()
        for effect in self._node.step(event, Now(self._seconds, WALL + self._seconds)):
            if isinstance(effect, Keep):
                changes |= effect.records
            elif isinstance(effect, Send):
                codec.encode(effect.message)
                sent.append(effect.message)
        return sent

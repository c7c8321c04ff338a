"""Watching: microseconds a row, and bytes of reports and models.

A node that is armed and has nothing to alarm at, with the settings that a user has who sets
nothing: what a row costs before it is learnt. *Score* is what a model says of a row: distance, SPE
(squared prediction error), T2 (Hotelling's statistic), and every channel by the others; *watched*
is all that a client does with a row: limits, the maximum of its block, what is usual and what is
stuck as well. Each is the best of some runs, for other programs only ever add to it.

Bytes are those of the last report and model of four real `ClientNode`s and a root after five days,
without an alarm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import measure
from fleet_in_time import Fleet
from page import page
from report import Table
from submerge import Schema
from submerge.client.monitor import NodeMonitor
from submerge.judge.prepare import Block, RowTime, prepare
from submerge.protocol.machine import Now, Publish, Send
from submerge.protocol.messages import Counts, Model, Report
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge_proto.wire import codec

CAUSES, RANK, RANK_MAX, PERIOD_S = 8, 8, 16, 31.0
RUNS, ROWS = 9, 6400
NODES, DAYS = 4, 5


@dataclass
class Steady:
    """A plant (`plants.plant.Plant`) of a few causes and noise, without faults."""

    dim: int
    name: str = "steady"
    period_s: float = PERIOD_S
    nodes: int = NODES

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._causes = self._rng.standard_normal((CAUSES, self.dim))
        self.schema = Schema(self.dim, center="own")
        self.n_rows = int(DAYS * 86400 / self.period_s)

    def rows(self, node: int, start: int, stop: int) -> np.ndarray:
        """Return new rows, whatever was asked before."""
        return self.draw(stop - start)

    def draw(self, n: int) -> np.ndarray:
        """Return rows (n, dim)."""
        known = self._rng.standard_normal((n, CAUSES)) @ self._causes
        return known + self._rng.normal(0, 0.3, (n, self.dim))


class Weighed(Fleet):
    """A fleet that weighs what is sent, each as its last."""

    report = model = 0

    def _do(self, name: str, effect: object) -> None:
        match effect:
            case Send(_, Report() as report):
                self.report = len(codec.encode(report))
            case Publish(Model() as model):
                self.model = len(codec.encode(model))
        super()._do(name, effect)


def watched(dim: int, block: int) -> tuple[float, float]:
    """Return microseconds a row: to score it, and to watch it."""
    plant = Steady(dim)
    schema, summaries = plant.schema, Subspaces(RANK, rank_max=RANK_MAX)
    learner = summaries.learner(schema)
    learner.learn(rows := plant.draw(5000), rows)
    summary = learner.summary()
    model = _model(schema, summaries.directions(summary), summaries.factors(summary))
    monitor = _watching(schema, summaries, model, plant.draw)
    blocks = [plant.draw(block) for _ in range(ROWS // block)]
    scores = summaries.scorer(model.summary, dim, model.factors).statistics
    now = Now(0.0, 0.0)
    return (
        _best(lambda rows: scores(rows, rows, monitor.own), blocks),
        _best(lambda rows: monitor.judge(_block(rows, schema), model, now), blocks),
    )


def _model(schema: Schema, summary: object, factors: object) -> Model:
    """Return a model whose limits nothing passes."""
    high = QuantileSketch.of(np.full(5000, 1e3), FINE)
    return Model(
        *("g", 5, schema.canonical, schema.fingerprint, summary, None, Counts(5000), 1),
        (0.0, 0.0, 0.0),
        created=0.0,
        expires=1e12,
        maxima=BlockMaxima(high, high, empty(FINE), 500, high, high, high),
        factors=factors,
    )


def _watching(
    schema: Schema, summaries: Subspaces, model: Model, draw: Callable[[int], np.ndarray]
) -> NodeMonitor:
    """Return a monitor that has seen three days."""
    alarms = AlarmSettings(period_s=PERIOD_S)
    monitor = NodeMonitor(ClientSettings("n", "g", "root", alarms=alarms), schema, summaries)
    for _ in range(round(3 * 86400 / PERIOD_S / 50)):
        rows = draw(50)
        block = _block(rows, schema)
        monitor.judge(block, model, Now(0.0, 0.0))
        monitor.learn(rows, rows, block.time)
    return monitor


def _block(rows: np.ndarray, schema: Schema) -> Block:
    return prepare(rows, schema, fill=None, time=RowTime(PERIOD_S))


def _best(work: Callable[[np.ndarray], object], blocks: list[np.ndarray]) -> float:
    """Return microseconds a row, of the fastest run."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        for rows in blocks:
            work(rows)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / sum(map(len, blocks))


def room(quick: bool) -> list[Table]:
    """Measure both widths; `quick`: the narrow one."""
    widths = (54,) if quick else (54, 400)
    speed = [
        (dim, block, *watched(dim, block))
        for dim in measure.progress(widths, "watching")
        for block in (50, 1)
    ]
    weights = []
    for dim in measure.progress(widths, "bytes"):
        fleet = Weighed(Steady(dim), AlarmSettings())
        while fleet.hour < fleet.hours:
            fleet.passes()
        weights.append((dim, fleet.report, fleet.model))
    return [
        Table(
            "Microseconds a row",
            {"channels": "d", "rows in a block": "d", "score": ".1f", "watched": ".1f"},
            speed,
        ),
        Table("Bytes", {"channels": "d", "report": ",d", "model": ",d"}, weights),
    ]


if __name__ == "__main__":
    page(room)

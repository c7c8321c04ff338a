"""What it costs to watch: microseconds a row, in blocks and one by one; bytes of a sketch.

    python benchmarks/watching.py

At 54 channels and rank 8, of a node that is armed and has nothing to alarm at: what a row costs
before it is learnt. "score" is SPE and T2 alone; "watched" is all that a client does with a row:
scores, limits, the peak of the hour, every channel by the others, what is usual and what is stuck.
The best of some runs, for other programs only ever add to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from submerge import Schema
from submerge.client.monitor import NodeMonitor
from submerge.judge.clock import RowTime
from submerge.judge.prepare import Block, prepare
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, Model
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty, merged, packed

CHANNELS, RANK, PERIOD_S = 54, 8, 31.0
RUNS, ROWS = 9, 6400


def main() -> None:
    """Print a line for each block size, and what sketches weigh."""
    rng = np.random.default_rng(0)
    causes = rng.standard_normal((RANK, CHANNELS))

    def draw(n: int) -> np.ndarray:
        return rng.standard_normal((n, RANK)) @ causes + rng.normal(0, 0.3, (n, CHANNELS))

    schema, summaries = Schema(CHANNELS, center="own"), Subspaces(RANK)
    learner = summaries.learner(schema)
    learner.learn(rows := draw(5000), rows)
    model = _model(schema, learner.summary())
    for block in (50, 1):
        monitor = _watching(schema, summaries, model, draw)
        blocks = [draw(block) for _ in range(ROWS // block)]
        scores = summaries.scorer(model.summary).scores
        alone = _best(lambda rows, scores=scores, own=monitor.own: scores(rows, rows, own), blocks)
        now, judge = Now(0.0, 0.0), monitor.judge
        watched = _best(
            lambda rows, judge=judge, now=now: judge(_block(rows, schema), model, now), blocks
        )
        print(f"blocks of {block:2}: score {alone:6.2f} us a row, watched {watched:6.2f} us a row")
    parts = [QuantileSketch.of(rng.lognormal(0, 1, 500), FINE) for _ in range(40)]
    whole = merged(*parts, grain=FINE)
    print(f"sketch of 20,000 peaks: {len(packed(whole))} bytes, at most {FINE.bytes}")


def _model(schema: Schema, summary: object) -> Model:
    """Return a model whose limits nothing passes."""
    high = QuantileSketch.of(np.full(5000, 1e3), FINE)
    return Model(
        *("g", 5, schema.canonical, schema.fingerprint, summary, None, Counts(5000), 1),
        (0.0, 0.0, 0.0),
        created=0.0,
        expires=1e12,
        maxima=BlockMaxima(high, high, empty(FINE), 500, high),
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


if __name__ == "__main__":
    main()

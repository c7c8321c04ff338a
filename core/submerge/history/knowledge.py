"""Learnt: all that is known of machines from their rows: what scores, and what merges.

A `Model` is made to be sent: directions in float32, and limits. What it was made from is here
beside it, in full, so that it can be merged with more (`submerge_proto.files.learnt`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from submerge.client.alarms.highest import HighestSoFar
from submerge.client.monitor import Judgement, NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.judge.prepare import Block
from submerge.protocol.history import Chunk
from submerge.protocol.messages import Model, ScoreSketches
from submerge.protocol.summaries import Summary
from submerge.stats.moments import Moments


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """What is known of machines from their rows.

    summary : What merges: spare directions too, or the whole scatter. None for a model from below.
    moments : Of the channels, in their units.
    sketches : Of scores of rows that the scoring model had not learnt, with their block maxima.
    chunks : By key, ascending; for a fleet's model, those of the histories that it held.
    origin : A fleet's group and root, "pumps 18bc..."; it never learns its own. Empty for files.
    monitors : By machine, ascending: how its channels behave. They hold no alarm.
    lags : Rows that a scored vector is made of.
    period_s : Time that a row stands for; 0 if it is not known.
    when : The condition that its rows met; empty for all rows.
    """

    model: Model
    summary: Summary | None = None
    moments: Moments | None = None
    sketches: ScoreSketches | None = None
    chunks: tuple[Chunk, ...] = ()
    origin: str = ""
    monitors: tuple[tuple[str, MonitorState], ...] = ()
    lags: int = 1
    period_s: float = 0.0
    when: str = ""

    @property
    def highest(self) -> HighestSoFar:
        """Of held-out rows of all machines: each has the same."""
        return next((state.detector.highest for _, state in self.monitors), HighestSoFar())

    @property
    def rows(self) -> int:
        """Rows of all chunks."""
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

"""The own mean of a machine that is judged, as a client keeps it (`client.ingest`)."""

from __future__ import annotations

import numpy as np

from submerge.client.monitor import Judgement, NodeMonitor
from submerge.judge.prepare import Block


def follow(monitor: NodeMonitor, block: Block, judgement: Judgement | None) -> None:
    """Let a machine's own mean follow the rows that a client would have learnt.

    judgement : None while there is none: then all rows are learnt
    """
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

"""The mean of a file's own: a node of its own, held against how the fleet scatters.

A group with `center = "own"` learns how readings vary about each node's own mean, and a node
scores with its own. On disk a file is a node, so that its mean is that of all its rows which
can be scored, read in a pass before. That is more than a client knows at its first rows, and
it hides one thing: what is off for most of the file is its normal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from submerge.protocol.kernel_summary import KernelSummary
from submerge.stats.node_mean import OwnMean
from submerge_fleet.score.model import Normal
from submerge_fleet.score.rows import Prepared

Mean = Literal["file", "fleet"]


def own_mean(normal: Normal, parts: Iterable[Prepared]) -> OwnMean:
    """Return the mean of a file.

    Parameters
    ----------
    normal : Normal
    parts : iterable of Prepared
        All rows of the file. What was filled in does not count: it is the fleet's opinion. In
        feature space, rows count that have no gap.
    """
    summary, features = normal.summary, None
    linear = summary.linear if isinstance(summary, KernelSummary) else summary
    if isinstance(summary, KernelSummary):
        features = summary.features.mean
    # Sums of deviations: those of readings would lose what is small beside a huge mean.
    off, known = np.zeros(linear.dim), np.zeros(linear.dim)
    lifted = np.zeros(0 if features is None else len(features))
    rows = whole = 0
    for ready in parts:
        off += np.where(ready.gaps, 0.0, ready.scaled - linear.mean).sum(axis=0)
        known += (~ready.gaps).sum(axis=0)
        rows += len(ready.scaled)
        if features is not None:
            complete = ~ready.gaps.any(axis=1)
            lifted += (ready.features[complete] - features).sum(axis=0)
            whole += int(complete.sum())
    # A channel that the file never shows keeps the fleet's mean.
    return OwnMean(
        linear.mean + off / np.maximum(known, 1.0),
        None if features is None else features + lifted / max(whole, 1),
        weight=float(rows),
        count=rows,
        span_s=0.0,
    )

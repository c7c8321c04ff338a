"""What nodes of a generated plant see of one another: for `blame.py` and `senses.py`.

A fleet model every four hours or so, about each node's own mean with a half-life of seven days;
rows are judged before they are learnt, and gaps are filled. No alarms, no gate, no wire: those
are in `alarms.py`.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from plants.plant import Plant
from submerge import SAPCA, Array, Subspace, merge
from submerge.pca.missing import fill
from submerge.pca.reconstruct import Reconstruction

BLOCK, REFRESH, HALF_LIFE_DAYS = 48, 4, 7.0
PLANTS = ("room", "loop", "engines")


class Seen(NamedTuple):
    """What one node saw: its rows, what they were filled to, less its mean, and those means."""

    rows: Array
    centered: Array
    means: Array
    left_out: Array

    @property
    def predicted(self) -> Array:
        """What the others say of each channel."""
        return self.centered + self.means - self.left_out


def scaled(fleet: Plant, node: int, start: int, stop: int) -> Array:
    """Return rows of a node as they are learnt."""
    return fleet.schema.scaled(fleet.rows(node, start, stop))


def streamed(fleet: Plant) -> tuple[Subspace, list[Seen]]:
    """Let a fleet learn from start to end; return its last model, centered, and what was seen."""
    rank, dim, n = fleet.rank, len(fleet.channels), fleet.n_rows
    rows = [scaled(fleet, node, 0, n) for node in range(fleet.nodes)]
    engines = [SAPCA(rank, schema=fleet.schema) for _ in rows]
    seen = [Seen(each, *np.full((3, n, dim), np.nan)) for each in rows]
    means, weights = np.zeros((fleet.nodes, dim)), np.zeros(fleet.nodes)
    keep = 2.0 ** (-fleet.period_s / (HALF_LIFE_DAYS * 86400))
    model = None
    for first in range(0, n, BLOCK):
        part = slice(first, min(first + BLOCK, n))
        if first and first // BLOCK % REFRESH == 0:
            merged = merge(*(e.subspace for e in engines), rank=rank + 5, center="own")
            model = replace(merged.truncated(rank), mean=np.zeros(dim))
            recall = Reconstruction(model)
        for node, engine in enumerate(engines):
            block = rows[node][part]
            if model is not None:
                centered = fill(block - means[node], model)[0]
                seen[node].centered[part], seen[node].means[part] = centered, means[node]
                seen[node].left_out[part] = recall.left_out(centered)
                block = centered + means[node]
            block = block[~np.isnan(block).any(axis=1)]
            engine.partial_fit(block)
            weights[node] = weights[node] * keep ** len(block) + len(block)
            means[node] += (block - means[node]).sum(axis=0) / max(1.0, weights[node])
    return model, seen

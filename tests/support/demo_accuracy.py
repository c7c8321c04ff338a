"""A demo's merged model compared with exact PCA of every row that its fleet learnt.

The rows are rebuilt from outside: what a process was given, and what a sound mote would have read
where it was given a gap. Rows that an alarm withholds do not count. A row far over its limit is
learnt as if it were nearer, but counts here as it was read: both differences are part of the error.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from submerge import Array, Schema, Subspace
from submerge.protocol.summaries import Subspaces, Summary
from submerge_lab.demo.feed import Stint
from submerge_lab.demo.fleet import DemoFleet, Node
from submerge_lab.demo.run import OVERSAMPLE, Demo
from submerge_lab.replay.exact import ratio
from support.demo_books import Held, merge_held, seen_by_killed, stores_of


class Rebuilt:
    """The rows of one process, of `dim` channels.

    gaps : Missing values in rows that count.
    """

    def __init__(self, dim: int) -> None:
        self.gaps = 0
        self._dim = dim
        self._rows: deque[tuple[Array, int]] = deque()
        self._first = 0  # index of the first in the queue
        self._withheld: set[int] = set()

    def give(self, row: Array, sound: Array) -> None:
        """Note that the process gets a row (dim,), NaN for a gap, where `sound` is the truth."""
        gaps = np.isnan(row)
        self._rows.append((np.where(gaps, sound, row), int(np.count_nonzero(gaps))))

    def withhold(self, index: int) -> None:
        """Note that it does not learn its row `index`."""
        self._withheld.add(index)

    def count(self, until: int) -> Array:
        """Count the rows before `until`; return them (n, dim) without their gaps."""
        whole: list[Array] = []
        while self._first < until and self._rows:
            row, gaps = self._rows.popleft()
            withheld = self._first in self._withheld
            self._withheld.discard(self._first)
            self._first += 1
            # A client does not learn a row with more gaps than values.
            if not withheld and 2 * gaps <= self._dim:
                self.gaps += gaps
                whole.append(row)
        return np.array(whole).reshape(len(whole), self._dim)


class RecordedFleet(DemoFleet):
    """Remembers the rows of each client process, and which it withheld."""

    demo: Demo

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.rebuilt: dict[Stint, Rebuilt] = {}

    def start_node(self, node: Node) -> None:
        super().start_node(node)
        for stint in node.stints[-1:]:
            self.rebuilt[stint] = Rebuilt(len(self.site.names))

    def give(self, stint: Stint, row: Array) -> None:
        super().give(stint, row)
        if self.nodes[stint.node].process is not None:
            snapshot = stint.snapshots[-1]
            self.rebuilt[stint].give(row, self.demo.room.sound(snapshot, snapshot + 1)[0])

    def _read_score(self, node: Node, raw: bytes) -> None:
        super()._read_score(node, raw)
        line = json.loads(raw)
        if line.get("withheld"):
            self.rebuilt[node.stints[-1]].withhold(line["row"])


class RecordedDemo(Demo):
    """A demo whose accuracy can be told when it has ended."""

    fleet_type = RecordedFleet
    fleet: RecordedFleet

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.fleet.demo = self

    def accuracy(self) -> tuple[Accuracy, Accuracy | None]:
        """Compare the model of all that the root holds: of features, then of readings."""
        stores, root = stores_of(self.fleet)
        pools, summaries = Pools(self.schema), Subspaces(self.settings.rank, oversample=OVERSAMPLE)
        for node in self.fleet.of("client"):
            held = stores[str(node.member.parent)].get(node.name, Held())
            for stint in node.stints:
                until = seen_by_killed(node.stints, held) if stint.killed else stint.given
                pools.add(self.fleet.rebuilt[stint].count(until))
        model = merge_held(root, summaries, self.schema)
        assert model is not None, "no report has ever reached the root"
        return pools.compare(model, summaries)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The merged model compared with exact PCA of every row, both at `rank`.

    ratio : mean squared distance of a row, over that from the exact subspace: 1 is perfect
    energy_kept : share of all variation that the merged subspace holds
    merged, exact : variance along each leading direction
    """

    rank: int
    ratio: float | None
    energy_kept: float
    merged: tuple[float, ...]
    exact: tuple[float, ...]


class Pooled:
    """The scatter matrix of all rows, which a node of the fleet could not afford to keep."""

    def __init__(self, dim: int) -> None:
        self._n = 0
        self._sum, self._square = np.zeros(dim), np.zeros((dim, dim))

    def add(self, rows: Array) -> None:
        """Add rows (n, dim)."""
        self._n += len(rows)
        self._sum += rows.sum(axis=0)
        self._square += rows.T @ rows

    def compare(self, model: Subspace, *, rank: int) -> Accuracy:
        """Compare a model of these rows with their exact PCA, both at `rank`."""
        scatter = self._square - np.outer(self._sum, self._sum) / self._n
        exact, vectors = np.linalg.eigh(scatter)
        exact, vectors = exact[::-1], vectors[:, ::-1]
        # Orthonormal again: float32 columns are so to 1e-7, which would beat the optimum.
        basis = np.linalg.qr(np.asarray(model.truncated(rank).basis, dtype=np.float64))[0]
        energy = float(np.trace(scatter))
        error = energy - float(np.vdot(basis, scatter @ basis))
        optimum = float(exact[rank:].sum())
        return Accuracy(
            rank=rank,
            ratio=ratio(error, optimum, energy),
            energy_kept=1 - error / energy,
            merged=tuple(float(x) for x in model.explained_variance),
            exact=tuple(float(x) for x in exact[: 3 * model.rank] / self._n),
        )


class Pools:
    """All learnt rows, pooled: in a kernel group once as features and once as readings."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        dims = (schema.dim,) if schema.linear else (schema.dim, schema.width)
        self._pools = [Pooled(dim) for dim in dims]

    def add(self, rows: Array) -> None:
        """Add rows (n, channels) without gaps, in their units."""
        scaled = self._schema.scaled(rows)
        learnt, *readings = self._pools
        learnt.add(self._schema.features.lift(scaled))
        for pool in readings:
            pool.add(scaled)

    def compare(self, model: Summary, summaries: Subspaces) -> tuple[Accuracy, Accuracy | None]:
        """Compare a model with exact PCA at the shown rank: of features, then of readings."""
        parts = zip(self._pools, model.parts, summaries.shown(model).parts, strict=True)
        learnt, *readings = (pool.compare(part, rank=shown.rank) for pool, part, shown in parts)
        return learnt, readings[0] if readings else None

"""A fleet in one process: clients that learn, aggregators that merge, a root.

No network, no clock: snapshots are dealt in turn to the clients, as to base stations
on a duty cycle, and one `hear` is one round of the whole fleet. What would travel is
rounded as it would be (float32 columns) and counted by the wire's own formula.

Rules of this file:

1. A client scores a block against the newest model *before* it learns the block.
2. A report is a whole state: it replaces the one before, in the parent's tree.
3. The model that comes down is scored with and filled with, and never merged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge import SAPCA, MergeTree, Schema, Subspace, UsageError, contributions, hotelling, spe
from submerge.missing import fill
from submerge_fleet.room_plan import Array

CHILDREN = 4
"""Clients of one aggregator."""

ROUND = 96
"""Snapshots that the fleet takes in between two looks around, about."""

FIRST_REPORT = 384
"""Snapshots that the fleet waits for before it reports at all."""


def wire_bytes(subspace: Subspace) -> int:
    """Return what a report of it weighs: 4 d k + 8 (d + k) + 256 (the wire's formula)."""
    return 4 * subspace.dim * subspace.rank + 8 * (subspace.dim + subspace.rank) + 256


def on_the_wire(subspace: Subspace) -> Subspace:
    """Return what arrives at the other end: float32 columns, the rest in full."""
    return replace(subspace, basis=subspace.basis.astype(np.float32))


@dataclass(frozen=True, slots=True)
class Scores:
    """How odd rows were, to the model that had not seen them.

    spe, t2 : (n,); NaN before there was a model
    residual : (n, dim), squared, by channel; each row sums to its spe
    """

    spe: Array
    t2: Array
    residual: Array

    @classmethod
    def unknown(cls, n: int, dim: int) -> Scores:
        """Return scores for rows that no model could judge yet."""
        return cls(np.full(n, np.nan), np.full(n, np.nan), np.full((n, dim), np.nan))


class Worst(NamedTuple):
    """The oddest row of a block: its SPE, the top channel, and that channel's share."""

    spe: float
    channel: int
    share: float


class Client:
    """One base station: it learns, fills, scores, and reports when it has grown.

    Attributes
    ----------
    model : Subspace or None
        The root's newest, as it came, at the rank that is scored with.
    filled, reports, bytes_up : int
        Values that were missing; reports sent; what they weighed.
    worst : Worst or None
        The oddest row of the newest block; None before the first model.
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        *,
        rank: int,
        oversample: int,
        first_report: int,
        report_every: int,
    ) -> None:
        self.name = name
        self.engine = SAPCA(rank, oversample=oversample, schema=schema)
        self.model: Subspace | None = None
        self.filled = self.reports = self.bytes_up = 0
        self.worst: Worst | None = None
        self._dim = schema.dim
        self._rank = rank
        self._first_report, self._report_every = first_report, report_every
        self._reported = 0

    @property
    def rows(self) -> int:
        """Rows learnt."""
        return self.engine.n_samples_seen

    @property
    def buffer_bytes(self) -> int:
        """What its buffers hold: the engine's rows and mean, and the model."""
        dim, engine = self._dim, self.engine
        exact = engine.algorithm.startswith("exact")
        kept = dim if exact else engine.rule.start + engine.oversample
        model = 0 if self.model is None else self.model.basis.nbytes + self.model.mean.nbytes
        return 8 * dim * (kept + engine.block_size + 1) + model

    @property
    def subspace(self) -> Subspace:
        """All that it has learnt."""
        return self.engine.subspace

    def hear(self, rows: Array, muted: npt.NDArray[np.bool_]) -> tuple[Array, Scores]:
        """Score a block (n, dim), then learn it; `muted` channels are not scored.

        Returns
        -------
        filled : (n, dim)
            What was learnt: the rows without their gaps.
        scores : Scores
        """
        normal = self.engine.subspace if self.model is None else self.model
        filled, count = fill(rows, normal)
        self.filled += count
        if self.model is None:
            scores = Scores.unknown(*rows.shape)
        else:
            # A mute channel reads as missing, so it cannot tilt what the others are
            # compared with.
            judged = fill(np.where(muted, np.nan, rows), self.model)[0] if muted.any() else filled
            total = spe(judged, self.model)
            shares = contributions(judged, self.model)
            scores = Scores(total, hotelling(judged, self.model), shares * total[:, None])
            row = int(total.argmax())
            channel = int(shares[row].argmax())
            self.worst = Worst(float(total[row]), channel, float(shares[row, channel]))
        self.engine.partial_fit(filled)
        return filled, scores

    def report(self) -> Subspace | None:
        """Return its state, as it arrives, if it is time: it has doubled, or grown enough."""
        doubled = max(self._reported, self._first_report)
        if self.rows - self._reported < min(doubled, self._report_every):
            return None
        return self.last_report()

    def last_report(self) -> Subspace:
        """Return its state, as it arrives, in any case."""
        self._reported = self.rows
        self.reports += 1
        self.bytes_up += wire_bytes(self.subspace)
        return on_the_wire(self.subspace)

    def take(self, model: Subspace) -> None:
        """Keep a newer model."""
        self.model = model.truncated(self._rank)


class Aggregator:
    """Merges its children's reports; reports its own merge in the same way."""

    def __init__(self, name: str, *, kept: int) -> None:
        self.name = name
        self.tree = MergeTree(rank=kept)
        self.reports = self.bytes_up = 0

    @property
    def subspace(self) -> Subspace | None:
        """The merge of its children; None before the first report."""
        return self.tree.root() if len(self.tree) else None

    @property
    def rows(self) -> int:
        """Rows that its children have reported."""
        return 0 if self.subspace is None else round(self.subspace.weight)

    @property
    def buffer_bytes(self) -> int:
        """What its children's subspaces hold."""
        return sum(self.tree[key].basis.nbytes + self.tree[key].mean.nbytes for key in self.tree)

    def report(self) -> Subspace:
        """Return its state, as it arrives."""
        merged = self.tree.root()
        self.reports += 1
        self.bytes_up += wire_bytes(merged)
        return on_the_wire(merged)


class Fleet:
    """Clients, four to an aggregator, and a root over the aggregators.

    Parameters
    ----------
    schema : Schema
    clients : int
    rank : int
        Directions to show and score with.
    oversample : int
        Spares that are learnt, shipped and merged beside them.
    report_every : int
        Snapshots between reports, once the beginning is over.

    Attributes
    ----------
    model : Subspace or None
        The root's newest, spares included.
    bytes_down : int
        What sending it to everyone has weighed.
    """

    def __init__(
        self, schema: Schema, *, clients: int, rank: int, oversample: int, report_every: int
    ) -> None:
        if clients < 1:
            raise UsageError(f"a fleet needs at least one client, got {clients}")
        if rank + oversample > schema.dim:
            raise UsageError(
                f"rank must leave room for {oversample} spare directions in {schema.dim}"
                f" channels, got {rank}"
            )
        self.schema = schema
        self.rank = rank
        self.clients = [
            Client(
                f"client-{i + 1}",
                schema,
                rank=rank,
                oversample=oversample,
                first_report=max(1, FIRST_REPORT // clients),
                report_every=max(1, report_every // clients),
            )
            for i in range(clients)
        ]
        kept = rank + oversample
        self.aggregators = [
            Aggregator(f"aggregator-{i + 1}", kept=kept) for i in range(-(-clients // CHILDREN))
        ]
        self.root = Aggregator("root", kept=kept)
        self.model: Subspace | None = None
        self.bytes_down = 0

    @property
    def round_length(self) -> int:
        """Snapshots of one round: as many for every client."""
        return len(self.clients) * max(1, ROUND // len(self.clients))

    def hear(self, readings: Array, muted: npt.NDArray[np.bool_]) -> tuple[Array, Scores]:
        """Deal a round of readings (n, channels) out, then let reports and model travel.

        Returns
        -------
        filled : (n, dim)
            What was learnt, in the order of the readings.
        scores : Scores
            Likewise.
        """
        rows, every = self.schema.lift(readings), len(self.clients)
        filled, scores = np.empty_like(rows), Scores.unknown(*rows.shape)
        for i, client in enumerate(self.clients[: len(rows)]):
            own = slice(i, None, every)
            filled[own], heard = client.hear(rows[own], muted)
            scores.spe[own], scores.t2[own] = heard.spe, heard.t2
            scores.residual[own] = heard.residual
        self._deliver([(client, client.report()) for client in self.clients])
        return filled, scores

    def finish(self) -> Subspace:
        """Let every client report what it has, and return the last model."""
        self._deliver([(client, client.last_report()) for client in self.clients if client.rows])
        return self.root.tree.root()

    def _deliver(self, reports: Sequence[tuple[Client, Subspace | None]]) -> None:
        """Carry reports up to the root, and the model that they make down again."""
        stirred: dict[str, Aggregator] = {}
        for i, (client, report) in enumerate(reports):
            if report is not None:
                aggregator = self.aggregators[i // CHILDREN]
                aggregator.tree[client.name] = report
                stirred[aggregator.name] = aggregator
        if not stirred:
            return
        for aggregator in stirred.values():
            self.root.tree[aggregator.name] = aggregator.report()
        self.model = self.root.tree.root()
        arriving = on_the_wire(self.model)
        self.bytes_down += wire_bytes(self.model) * (len(self.aggregators) + len(self.clients))
        for client in self.clients:
            client.take(arriving)

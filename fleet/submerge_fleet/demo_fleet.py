"""A fleet in one process: clients that learn, aggregators that merge, a root.

No network, no clock: snapshots are dealt in turn to the clients, as to base stations
on a duty cycle, and one `hear` is one round of the whole fleet. What would travel is
rounded as it would be (float32 columns) and counted by the wire's own formula. A report
replaces the one before it in the parent's tree; the root's model goes down to everyone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from submerge import Array, MergeTree, Schema, Subspace, UsageError
from submerge_fleet.demo_client import Client, Scores, on_the_wire, wire_bytes

CHILDREN = 4
"""Clients of one aggregator."""

ROUND = 96
"""Snapshots that the fleet takes in between two looks around, about."""

FIRST_REPORT = 384
"""Snapshots that the fleet waits for before it reports at all."""


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

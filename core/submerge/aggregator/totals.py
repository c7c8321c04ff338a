"""CountedRows: the rows of a group that count, and what they add up to beside summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from submerge.aggregator.pool import Row, Sealed
from submerge.protocol.messages import Counts, Incarnation, Report
from submerge.stats.moments import LEAST_NODES, Moments, pooled, typical


class CountedRows(NamedTuple):
    """Rows and sealed rows, and which of them count.

    fingerprint : of the schema
    earlier : those whose rows are read as of the schema; rows of others count for nothing
    out : nodes whose rows do not count
    """

    rows: Mapping[tuple[str, Incarnation], Row]
    sealed: Mapping[tuple[str, str], Sealed]
    fingerprint: str
    earlier: Set[str]
    out: Set[str]

    def current(self) -> Iterator[Row]:
        """Return the rows that count, one by one."""
        return (
            row
            for (node, _), row in self.rows.items()
            if row.report.fingerprint == self.fingerprint and node not in self.out
        )

    def counts(self) -> Counts:
        """Add up the readings, those of earlier schemas as well.

        What was only measured under an earlier one is counted under the one that was settled.
        """
        rows = [
            counts
            for (node, _), row in self.rows.items()
            if node not in self.out and (counts := self._counted(row.report)) is not None
        ]
        sealed = [
            each.counts
            for (node, fingerprint), each in self.sealed.items()
            if node not in self.out and self._counts(fingerprint, each)
        ]
        return total_of(rows + sealed)

    def _counted(self, report: Report) -> Counts | None:
        sums = report.earlier
        if self._counts(report.fingerprint, report):
            return report.counts  # sums under an earlier schema are among them
        known = {self.fingerprint, *self.earlier}
        return sums.counts if sums is not None and sums.fingerprint in known else None

    def _counts(self, fingerprint: str, said: Report | Sealed) -> bool:
        if fingerprint == self.fingerprint:
            return True
        return fingerprint in self.earlier and not only_measured(said)

    def moments_by_node(self) -> dict[str, Moments]:
        """Pool the moments of each node."""
        # In one order: rounding must not depend on when rows arrived.
        parts = [
            (node, self.rows[node, each].report.moments)
            for node, each in sorted(self.rows)
            if self.rows[node, each].report.fingerprint == self.fingerprint
        ]
        parts += [
            (node, self.sealed[node, fingerprint].moments)
            for node, fingerprint in sorted(self.sealed)
            if fingerprint == self.fingerprint
        ]
        found: dict[str, list[Moments]] = {}
        for node, moments in parts:
            if moments is not None and node not in self.out:
                found.setdefault(node, []).append(moments)
        return {node: pooled(*each) for node, each in found.items()}

    def moments(self) -> Moments | None:
        """Return the moments of all nodes, by medians where they are many; None without any."""
        nodes = list(self.moments_by_node().values())
        if len(nodes) >= LEAST_NODES:
            return typical(nodes)
        return pooled(*nodes) if nodes else None


def only_measured(said: Report | Sealed) -> bool:
    """Return whether a row holds readings for their moments alone.

    Once the schema is settled, another incarnation of the node counts them.
    """
    return said.summary is None and said.moments is not None


def total_of(parts: Iterable[Counts]) -> Counts:
    """Add counts up."""
    total = Counts()
    for part in parts:
        total = total + part
    return total

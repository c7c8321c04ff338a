"""CountedRows: the rows of a group that count, and what they add up to beside summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from submerge.aggregator.pool import Row, Sealed
from submerge.protocol.messages import Counts, Incarnation, Report
from submerge.stats.moments import Moments, pooled


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

    def folded(self) -> list[Sealed]:
        """Return the sealed rows that count, by node."""
        places = sorted(
            place
            for place in self.sealed
            if place[1] == self.fingerprint and place[0] not in self.out
        )
        return [self.sealed[place] for place in places]

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

    def moments(self) -> Moments | None:
        """Pool the moments; None without any."""
        # In one order: rounding must not depend on when rows arrived.
        rows = [self.rows[key].report for key in sorted(self.rows) if key[0] not in self.out]
        parts = [row.moments for row in rows if row.fingerprint == self.fingerprint]
        parts += [sealed.moments for sealed in self.folded()]
        present = [moments for moments in parts if moments is not None]
        return pooled(*present) if present else None


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

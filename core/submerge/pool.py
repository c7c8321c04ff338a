"""Pool: what the rows of a group come to.

A query over rows: the same rows give the same bytes, in whatever order they came. Rows
fade to one reference time that hardly ever moves, never to now: what they weigh against
each other does not change with the hour, so a merge that was made stays good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from submerge.messages import Counts, Report
from submerge.moments import Moments, pooled
from submerge.schema import Schema
from submerge.summaries import Summaries, Summary, Tree

HALVINGS = 32.0
"""The reference time moves when it is so many half-lives away: rarely, and before 2^x hurts."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The newest report of one incarnation.

    as_of : float
        What it speaks of, in this store's wall time.
    """

    report: Report
    digest: bytes
    as_of: float

    @property
    def from_client(self) -> bool:
        """Only an aggregator has a fence to show."""
        return not self.report.fence


@dataclass(frozen=True, slots=True, eq=False)
class Sealed:
    """What a node's closed incarnations have left, folded together."""

    summary: Summary | None
    moments: Moments | None
    counts: Counts
    as_of: float


class Pool:
    """The merge of a group's rows, kept up to date.

    Attributes
    ----------
    reference : float
        Wall time that all rows are faded to.
    latest : float
        Wall time that no row is believed to be later than.
    """

    def __init__(self, schema: Schema, summaries: Summaries, reference: float) -> None:
        self.schema, self.fingerprint, self.reference = schema, schema.fingerprint, reference
        self.latest = math.inf
        self._summaries = summaries
        self._tree: Tree = summaries.tree(schema)

    def put(self, node: str, rows: Sequence[Row], sealed: Sealed | None) -> None:
        """Replace what a node comes to; without rows of this schema it leaves."""
        own = True
        parts = []
        for row in rows:
            if row.report.fingerprint == self.fingerprint and row.report.summary is not None:
                as_of = min(row.as_of, self.latest)
                parts.append(self.faded(row.report.summary, as_of, self.reference))
                own = row.from_client
        if sealed is not None and sealed.summary is not None:
            as_of = min(sealed.as_of, self.latest)
            parts.append(self.faded(sealed.summary, as_of, self.reference))
        if parts:
            self._tree[node] = self._summaries.merged(self.schema, parts, own=own)
        elif node in self._tree:
            del self._tree[node]

    def summary(self, wall: float | None = None) -> Summary | None:
        """Merge all, as of a wall time; by default of the reference time."""
        if not len(self._tree):
            return None
        root = self._tree.root()
        return root if wall is None else self.faded(root, self.reference, wall)

    def fold(self, old: Sealed, new: Sealed, *, own: bool) -> Sealed:
        """Add one sealed row to another, both faded to the later time."""
        as_of = max(min(old.as_of, self.latest), min(new.as_of, self.latest))
        parts = [
            self.faded(sealed.summary, min(sealed.as_of, self.latest), as_of)
            for sealed in (old, new)
            if sealed.summary is not None
        ]
        moments = [sealed.moments for sealed in (old, new) if sealed.moments is not None]
        return Sealed(
            self._summaries.merged(self.schema, parts, own=own) if parts else None,
            pooled(*moments) if moments else None,
            old.counts + new.counts,
            as_of,
        )

    def faded(self, summary: Summary, since: float, until: float) -> Summary:
        """Return a summary as of another time."""
        half_life = self.schema.half_life
        if not half_life:
            return summary
        # Rows so old that they weigh nothing keep their place, and a factor that is a number.
        halvings = min(max((until - since) / half_life, -200.0), 200.0)
        return self._summaries.faded(summary, 2.0**-halvings)

    def out_of_reach(self, wall: float) -> bool:
        """Whether the reference time is too far from now."""
        half_life = self.schema.half_life or math.inf
        return abs(wall - self.reference) > HALVINGS * half_life


def added(parts: Iterable[Counts]) -> Counts:
    """Add counts up."""
    total = Counts()
    for part in parts:
        total = total + part
    return total

"""Pool: what the rows of a group come to.

A query over rows: the same rows give the same bytes, in whatever order they came, and
whenever each was put. Rows fade to one reference time that hardly ever moves, never to now:
what they weigh against each other does not change with the hour, so a merge that was made
stays good. But for rows of the future, where a clock was wrong or is: they are read as of
`latest`, which follows the hour, and so they are read again whenever someone asks.

In a robust pool an `OutlierScreen` says which of the clients' rows are merged: of the same
rows, the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from submerge.aggregator.screening import OutlierScreen
from submerge.protocol.messages import Counts, Report
from submerge.protocol.summaries import Summaries, Summary, Tree
from submerge.robust.outliers import Outlier
from submerge.schema import Schema
from submerge.stats.moments import Moments, pooled

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


@dataclass(slots=True, eq=False)
class _Contribution:
    """What a node has told: summaries, and the times that they speak of.

    newest : the latest of these times
    read_as : the time that it was read as when they were merged
    """

    parts: list[tuple[Summary, float]]
    own: bool
    newest: float
    read_as: float = math.nan


class Pool:
    """The merge of a group's rows, kept up to date.

    Attributes
    ----------
    reference : float
        Wall time that all rows are faded to.
    latest : float
        Wall time that no row is believed to be later than.
    """

    def __init__(
        self, schema: Schema, summaries: Summaries, reference: float, *, robust: bool = False
    ) -> None:
        self.schema, self.fingerprint, self.reference = schema, schema.fingerprint, reference
        self.latest = math.inf
        self._summaries = summaries
        self._tree: Tree = summaries.tree(schema)
        self._screen = OutlierScreen(schema, summaries, self._tree) if robust else None
        self._reported: dict[str, _Contribution] = {}

    def put(self, node: str, rows: Sequence[Row], sealed: Sealed | None) -> None:
        """Replace what a node comes to; without rows of this schema it leaves."""
        own = True
        parts = []
        for row in rows:
            if row.report.fingerprint == self.fingerprint and row.report.summary is not None:
                parts.append((row.report.summary, row.as_of))
                own = row.from_client
        if sealed is not None and sealed.summary is not None:
            parts.append((sealed.summary, sealed.as_of))
        if parts:
            self._reported[node] = _Contribution(parts, own, max(as_of for _, as_of in parts))
            self._read(node)
        elif node in self._reported:
            del self._reported[node]
            if self._screen is None:
                del self._tree[node]
            else:
                self._screen.forgets(node)

    def _read(self, node: str) -> None:
        """Merge what a node has told, none of it later than `latest`."""
        reported = self._reported[node]
        faded = [
            self.faded(summary, min(as_of, self.latest), self.reference)
            for summary, as_of in reported.parts
        ]
        merged = self._summaries.merged(self.schema, faded, own=reported.own)
        reported.read_as = min(reported.newest, self.latest)
        if self._screen is None:
            self._tree[node] = merged
        else:
            unit = self._factor(reported.read_as, self.reference)
            self._screen.hears(node, merged, client=reported.own, unit=unit)

    def _read_again(self) -> None:
        """Put right what was read when `latest` was another."""
        if self.schema.half_life:
            for node, reported in self._reported.items():
                # Where the newest part is read as it should be, so are those before it.
                if reported.read_as != min(reported.newest, self.latest):
                    self._read(node)

    def summary(self, wall: float | None = None) -> Summary | None:
        """Merge all, as of a wall time; by default of the reference time."""
        self._read_again()
        if self._screen is not None:
            self._screen.outliers()
        if not len(self._tree):
            return None
        root = self._tree.root()
        return root if wall is None else self.faded(root, self.reference, wall)

    def outliers(self) -> Mapping[str, Outlier]:
        """Return the clients that are left out, far from the others; none, if not robust."""
        if self._screen is None:
            return {}
        self._read_again()
        return self._screen.outliers()

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
        return self._summaries.faded(summary, self._factor(since, until))

    def _factor(self, since: float, until: float) -> float:
        """What is left of a reading's weight."""
        half_life = self.schema.half_life
        if not half_life:
            return 1.0
        # Rows so old that they weigh nothing keep their place, and a factor that is a number.
        halvings = min(max((until - since) / half_life, -200.0), 200.0)
        return float(2.0**-halvings)

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

"""Pool: the merge of the rows of a group.

The same rows give the same bytes, in whatever order and whenever they were put. Rows fade to one
reference time that hardly ever moves, never to now: their relative weights do not change with time,
so a merge stays valid. Rows from the future, where a clock was or is wrong, are read as of
`latest`, which follows the time, again at each query.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from submerge.aggregator.rows.histories import Histories, total_of
from submerge.aggregator.rows.influence import ChildPlacement, ChildSummary, InfluenceRule
from submerge.pca.subspace import with_even_energies
from submerge.protocol.history import History
from submerge.protocol.messages import Counts, Incarnation, Report, learnt_in
from submerge.protocol.report_bytes import digest
from submerge.protocol.summaries import Summaries, Summary, Tree, summary_of
from submerge.robust.influence import InfluenceBound
from submerge.robust.outliers import Outlier
from submerge.schema import Schema
from submerge.stats.moments import LEAST_NODES, Moments, pooled, typical

HALVINGS = 32.0
"""The reference time moves when it is so many half-lives away: rarely, and before 2^x overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The newest report of one incarnation."""

    report: Report
    digest: bytes  # of the report as it came, where `report` is not as it came; else empty
    as_of: float  # the time that it describes, in this store's wall time

    def came_as(self, report: Report, summaries: Summaries) -> bool:
        """Return whether a report has the same content as this one had when it came."""
        # Digests take time, and numbers rarely come twice: nothing is computed before that.
        return digest(report, summaries) == (self.digest or digest(self.report, summaries))

    @property
    def from_client(self) -> bool:
        """Whether a client sent it: only an aggregator has a fence."""
        return not self.report.fence


@dataclass(frozen=True, slots=True, eq=False)
class Sealed:
    """The closed incarnations of a node, folded into one."""

    summary: Summary | None
    moments: Moments | None
    counts: Counts
    as_of: float

    @property
    def with_energies(self) -> Sealed:
        """The same with energies of channels, where a node of an earlier version had none."""
        # Such a row is never updated: a group that does not forget would never have factors.
        if self.summary is None:
            return self
        summary = with_energies(self.summary)
        return self if summary is self.summary else replace(self, summary=summary)


def knows_energies(summary: Summary) -> bool:
    return all(part.channel_energies is not None for part in summary.pieces)


def with_energies(summary: Summary) -> Summary:
    """Return a summary with energies of channels; itself where they are known."""
    if knows_energies(summary):
        return summary
    return summary_of(*map(with_even_energies, summary.parts))


@dataclass(slots=True, eq=False)
class _Contribution:
    """What a node has reported: summaries by schema, and the times that they describe."""

    parts: list[tuple[str, Summary, float]]
    own: bool
    newest: float  # the latest of these times
    read_as: float = math.nan  # the time as of which they were merged


class Pool:
    """The merge of a group's rows, kept up to date.

    age : Returns for how many seconds a node has been heard; by default for ever.
    earlier : Whose rows are read as of `schema` (`FormerSchemas.read_as`).
    reference : Wall time that all rows are faded to.
    latest : The latest wall time that a row may have.
    now : (elapsed, wall) for ages and rows; NaN if the clock is not synchronized.
    """

    def __init__(
        self,
        schema: Schema,
        summaries: Summaries,
        reference: float,
        *,
        age: Callable[[str], float] = lambda _: math.inf,
        robust: bool = False,
        rule: InfluenceRule | None = None,
        histories: Histories | None = None,
        earlier: Mapping[str, Schema] | None = None,
    ) -> None:
        if schema.clip is not None:  # where noise is added, each row counts alike
            robust, rule = False, None
        self.schema, self.fingerprint, self.reference = schema, schema.fingerprint, reference
        self.earlier = {} if earlier is None else earlier
        self.latest, self.now = math.inf, (0.0, math.nan)
        self._summaries, self._age, self._robust, self._rule = summaries, age, robust, rule
        self._tree: Tree = summaries.tree(schema)
        self._placement = ChildPlacement(schema, summaries, self._tree, robust=robust, rule=rule)
        self._contributions: dict[str, _Contribution] = {}
        self._histories = histories
        self._placed: dict[str, tuple[History, float, float]] = {}
        scaled = any(each.scaling is not None for each in self.earlier.values())
        self._may_be_open = scaled and schema.scaling is None
        self._learners = set[str]()  # nodes with something of the present schema

    @property
    def _waits(self) -> bool:
        """Whether a scale seems still to be measured: then rows of earlier schemas wait."""
        # Only the root knows. Where channels were scaled before, a schema without scaling seems
        # open until something is learnt under it: the root would take old rows, with guesses of new
        # channels, for rows of it.
        return self._may_be_open and not self._learners

    def put(self, node: str, rows: Sequence[Row], sealed: Mapping[str, Sealed]) -> None:
        """Replace the rows of a node, sealed ones by fingerprint; without rows it leaves."""
        own, known = True, {self.fingerprint, *self.earlier}
        parts = list[tuple[str, Summary, float]]()
        for row in rows:
            for fingerprint, summary in learnt_in(row.report):
                if fingerprint in known:
                    parts.append((fingerprint, summary, row.as_of))
                    own = row.from_client
        for fingerprint, each in sealed.items():
            folded = each.with_energies.summary
            if fingerprint in known and folded is not None:
                parts.append((fingerprint, folded, each.as_of))
        if parts:
            newest = max(as_of for _, _, as_of in parts)
            self._contributions[node] = _Contribution(parts, own, newest)
        else:
            self._contributions.pop(node, None)
        waited = self._waits
        if any(fingerprint == self.fingerprint for fingerprint, _, _ in parts):
            self._learners.add(node)
        else:
            self._learners.discard(node)
        for name in (node,) if waited == self._waits else {node, *self._contributions}:
            self._read(name)

    def waiting(self) -> Pool | None:
        """Return a merge of the rows that wait, as of the newest earlier schema with a scale."""
        scaled = (each for each in self.earlier.values() if each.scaling is not None)
        schema = next(scaled, None) if self._waits else None
        if schema is None:
            return None
        others = {name: each for name, each in self.earlier.items() if each is not schema}
        pool = Pool(
            schema,
            self._summaries,
            self.reference,
            age=self._age,
            robust=self._robust,
            rule=self._rule,
            earlier=others,
        )
        pool.latest, pool.now = self.latest, self.now
        for node, contribution in self._contributions.items():
            pool._contributions[node] = replace(contribution)
            pool._read(node)
        return pool

    def _read(self, node: str) -> None:
        """Place what a node has contributed, none of it later than `latest`, or nothing."""
        contribution = self._contributions.get(node)
        merged = None if contribution is None else self._restated(contribution)
        if contribution is None or merged is None:
            if node in self._placement:
                self._placement.remove(node)
            return
        contribution.read_as = min(contribution.newest, self.latest)
        unit = self._factor(contribution.read_as, self.reference)
        child = ChildSummary(merged, contribution.own, unit, contribution.read_as)
        self._placement.put(node, child)

    def _restated(self, contribution: _Contribution) -> Summary | None:
        """Merge what a node has contributed, rows of earlier schemas as well; None without any."""
        merged = self._merged(self.schema, contribution)
        for earlier in () if self._waits else self.earlier.values():
            before = self._merged(earlier, contribution)
            if before is not None:
                read = self._summaries.restated(before, earlier, self.schema, like=merged)
                both = [read] if merged is None else [merged, read]
                merged = self._summaries.merged(self.schema, both, own=contribution.own)
        return merged

    def _merged(self, schema: Schema, contribution: _Contribution) -> Summary | None:
        """Merge what a node has contributed of one schema; None without any."""
        faded = [
            self.faded(summary, min(as_of, self.latest), self.reference)
            for fingerprint, summary, as_of in contribution.parts
            if fingerprint == schema.fingerprint
        ]
        return self._summaries.merged(schema, faded, own=contribution.own) if faded else None

    def _read_again(self) -> None:
        """Read again the rows to which another `latest` applied."""
        if self.schema.half_life:
            for node, contribution in self._contributions.items():
                # If the newest part was read as it should be, so were the earlier ones.
                if contribution.read_as != min(contribution.newest, self.latest):
                    self._read(node)

    def summary(self, wall: float | None = None) -> Summary | None:
        """Merge all, as of a wall time; by default of the reference time."""
        self._settle()
        if not len(self._tree):
            return None
        root = self._tree.root()
        return root if wall is None else self.faded(root, self.reference, wall)

    def with_energies(self, merged: Summary, *, even: bool, had: bool = True) -> Summary:
        """Return a merge with channels' energies; children without: `even` ones, or left out."""
        if knows_energies(merged):
            return merged
        tree, placed = self._summaries.tree(self.schema), self._placement.placed()
        known = [node for node, child in placed.items() if knows_energies(child)]
        # One that never has any does not keep most others from factors that they never had.
        if not known or not (had or 2 * len(known) > len(placed)):
            return merged
        for node in placed if even else known:
            tree[node] = with_energies(placed[node])
        for place, (history, read_as, reference) in self._placed.items():
            factor = history.factor * self._factor(read_as, reference)
            tree[place] = self._summaries.faded(history.summary, factor)
        found = tree.root()
        return self._summaries.faded(found, merged.weight / found.weight) if even else found

    def outliers(self) -> Mapping[str, Outlier]:
        """Return the nodes that are left out as outliers; none, if not robust."""
        if not self._robust:
            return {}
        self._settle()
        return self._placement.outliers

    def bounds(self) -> Mapping[str, InfluenceBound]:
        """Return the nodes that count for less than they have reported."""
        self._settle()
        return self._placement.bounds

    def _settle(self) -> None:
        self._read_again()
        self._place_histories()
        self._placement.settle(self._age, self.now)

    def _place_histories(self) -> None:
        """Have the tree hold the histories of this schema, none of them later than `latest`."""
        held = [] if self._histories is None else self._histories.of(self.fingerprint)
        # No node has a name with a space.
        places = {f"history {each.name}": each for each in held}
        for place in self._placed.keys() - places.keys():
            del self._tree[place]
            del self._placed[place]
        for place, history in places.items():
            read_as = min(history.as_of, self.latest)
            if self._placed.get(place) != (history, read_as, self.reference):
                factor = history.factor * self._factor(read_as, self.reference)
                self._tree[place] = self._summaries.faded(history.summary, factor)
                self._placed[place] = history, read_as, self.reference

    def fold(self, old: Sealed, new: Sealed, *, own: bool) -> Sealed:
        """Add one sealed row to another, both faded to the later time."""
        as_of = max(min(old.as_of, self.latest), min(new.as_of, self.latest))
        parts = [
            self.faded(sealed.summary, min(sealed.as_of, self.latest), as_of)
            for sealed in (old.with_energies, new.with_energies)
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
        return self._summaries.faded(summary, self._factor(since, until))

    def _factor(self, since: float, until: float) -> float:
        """Return what is left of a reading's weight."""
        half_life = self.schema.half_life
        if not half_life:
            return 1.0
        # Rows so old that they weigh nothing keep their place, with a finite factor.
        halvings = min(max((until - since) / half_life, -200.0), 200.0)
        return float(2.0**-halvings)

    def out_of_reach(self, wall: float) -> bool:
        """Return whether the reference time is too far from now."""
        half_life = self.schema.half_life or math.inf
        return abs(wall - self.reference) > HALVINGS * half_life


class CountedRows(NamedTuple):
    """Rows and sealed rows, and which of them count."""

    rows: Mapping[tuple[str, Incarnation], Row]
    sealed: Mapping[tuple[str, str], Sealed]
    fingerprint: str  # of the schema
    # those whose rows are read as of the schema; rows of others count for nothing
    earlier: Set[str]
    out: Set[str]  # nodes whose rows do not count

    def current(self) -> Iterator[Row]:
        return (
            row
            for (node, _), row in self.rows.items()
            if row.report.fingerprint == self.fingerprint and node not in self.out
        )

    def counts(self) -> Counts:
        """Add up the readings; what was only measured counts under the schema that was settled."""
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

    def learnt_by_node(self) -> Counter[str]:
        """Return the readings of each node that count, and were learnt."""
        learnt = Counter[str]()
        for (node, _), row in self.rows.items():
            if node not in self.out and (counts := self._counted(row.report)) is not None:
                learnt[node] += counts.learnt
        for (node, fingerprint), each in self.sealed.items():
            if node not in self.out and self._counts(fingerprint, each):
                learnt[node] += each.counts.learnt
        return learnt

    def moments_by_node(self) -> dict[str, Moments]:
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
    """Return whether a row holds readings for moments alone: another incarnation counts them."""
    return said.summary is None and said.moments is not None

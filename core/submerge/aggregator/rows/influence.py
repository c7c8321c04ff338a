"""ChildBounds: which children of an aggregator are bounded (`submerge.robust.influence`)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.protocol.machine import Key, Note, Now, Records
from submerge.protocol.summaries import Summaries, Summary, Tree
from submerge.robust.influence import (
    FIRST_ROWS,
    LEAST_NODES,
    InfluenceBound,
    Loudness,
    Readings,
    Spread,
    bound_of,
    effective_age,
    loudness,
    node_excess,
    row_rates,
    site_excess,
    spread,
)
from submerge.robust.outliers import NO_OUTLIERS, Outlier, Screening
from submerge.schema import Schema
from submerge.stats.moments import LEAST_NODES as LEAST_SHIFTED
from submerge.stats.moments import MOST_MOVED, Moments, movers

DOWN_S = 7 * 86400.0
"""Longest downtime that is believed: a clock that is wrong at a restart gives no more age."""

KEPT_EVERY_S = 3600.0
"""How old the kept time may be. A restart makes up for it, if the clock is synchronized."""


class GroupTime(NamedTuple):
    """A group's time in a store: seconds since it began, and the wall time then, 0 if unsure."""

    elapsed: float
    wall: float


class NodeAges:
    """When each node of a group was first heard, by the time of the group.

    created : The store's wall time.
    changes : Receives the records to keep.
    """

    def __init__(self, group: str, created: float, changes: dict[Key, Any]) -> None:
        self.elapsed = 0.0
        self._group, self._created, self._changes = group, created, changes
        self._first: dict[str, float] = {}
        self._steady: float | None = None
        self._kept_at: float | None = None
        self._down: _Down | None = None

    def load(self, records: Records, nodes: Iterable[str], now: Now) -> None:
        """Load a store's records; nodes of rows without an age were heard since it was created."""
        self._first = dict.fromkeys(nodes, 0.0)
        self._first |= {
            key[2]: first for key, first in records.items() if key[:2] == ("first", self._group)
        }
        known: GroupTime | None = records.get(("elapsed", self._group))
        elapsed, wall = known or GroupTime(0.0, self._created)
        most = DOWN_S if known else float("inf")
        self.elapsed, self._steady = elapsed, now.steady
        self._down = _Down(wall, elapsed, most, []) if wall else None
        self.advance(now)

    def advance(self, now: Now) -> None:
        before, self._steady = self._steady, now.steady
        self.elapsed += 0.0 if before is None else max(0.0, now.steady - before)
        down = self._down
        if down is not None and now.synced:
            passed = now.wall - down.wall - (self.elapsed - down.elapsed)
            passed, self._down = min(max(passed, 0.0), down.most), None
            self.elapsed += passed
            for node in down.heard:
                # It was first heard after the downtime, which must not make it older.
                self._put(node, self._first[node] + passed)

    def hear(self, node: str) -> None:
        """Note that a node was heard: its age begins, if it is new."""
        if node not in self._first:
            self._put(node, self.elapsed)
            if self._down is not None:
                self._down.heard.append(node)

    def forget(self, node: str) -> None:
        """Forget a node: when it is heard again, its age begins again."""
        if self._first.pop(node, None) is not None:
            self._changes["first", self._group, node] = None
            if self._down is not None and node in self._down.heard:
                self._down.heard.remove(node)

    def keep(self, now: Now) -> None:
        """Keep the group's time, if it was not for long."""
        if self._kept_at is None or self.elapsed - self._kept_at >= KEPT_EVERY_S:
            self._kept_at = self.elapsed
            wall = now.wall if now.synced else 0.0
            self._changes["elapsed", self._group] = GroupTime(self.elapsed, wall)

    def age(self, node: str) -> float:
        """Return for how long a node has been heard, in whole seconds; 0 for an unknown one."""
        # Whole: two clocks that say the same differ in their last digits.
        return float(max(0, round(self.elapsed - self._first.get(node, self.elapsed))))

    def _put(self, node: str, first: float) -> None:
        self._first[node] = self._changes["first", self._group, node] = first


class _Down(NamedTuple):
    """Downtime that is not known yet, from a wall and a group time on."""

    wall: float
    elapsed: float
    most: float  # seconds
    heard: list[str]  # nodes that were first heard since


class InfluenceRule(NamedTuple):
    """How the influence of children is bounded."""

    trusted: tuple[str, ...] = ()  # patterns (`*`, `?`) of nodes that count in full, also if robust
    first_rows: float = FIRST_ROWS  # that a first report may have
    known_s: float = 86400.0  # time until the row rate of a node counts

    def trusts(self, node: str) -> bool:
        return is_named(node, self.trusted)


def is_named(node: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(node, pattern) for pattern in patterns)


class ChildSummary(NamedTuple):
    """What a child has reported; `unit` is the weight of one of its readings, when it is fresh."""

    summary: Summary
    client: bool
    unit: float = 1.0
    as_of: float = 0.0


class ChildBounds:
    """The bounds of one group's children."""

    def __init__(self, schema: Schema, rule: InfluenceRule) -> None:
        self._schema, self._rule = schema, rule
        self._clients: _Population | None = None
        self._sites: _Population | None = None

    def measure(self, children: Mapping[str, ChildSummary]) -> None:
        """Measure all children, because some have changed."""
        means = self._schema.center != "own"
        self._clients, self._sites = (
            _population(children, client=client, means=means) for client in (True, False)
        )

    def bounds(self, age: Callable[[str], float], wall: float) -> dict[str, InfluenceBound]:
        """Return the children that are beyond what they may have; a wall time may be NaN."""
        found: dict[str, InfluenceBound] = {}
        if self._sites is not None:
            found |= self._found(
                self._sites, _most(map(site_excess, self._sites.parts, self._sites.loud))
            )
        if self._clients is not None:
            readings = self._readings(self._clients, age, wall)
            if readings is not None:
                both = zip(self._clients.parts, self._clients.loud, strict=True)
                excess = _most(node_excess(*each, readings) for each in both)
                found |= self._found(self._clients, excess)
        return found

    def _readings(
        self, clients: _Population, age: Callable[[str], float], wall: float
    ) -> Readings | None:
        """Return the readings that each client may have; None while no rate is known."""
        seconds = np.array([age(name) for name in clients.names])
        known = seconds >= self._rule.known_s
        if np.count_nonzero(known) < LEAST_NODES:
            return None
        # Without a synchronized clock a node counts as heard just now.
        silent = np.nan_to_num(np.clip(wall - clients.as_of, 0.0, seconds), nan=0.0)
        ages, reported = (
            effective_age(each, self._schema.half_life) for each in (seconds, seconds - silent)
        )
        rates = row_rates(clients.parts[0].rows, ages, reported, known)
        return Readings.of(rates * ages, self._rule.first_rows)

    def _found(self, kind: _Population, excess: Array) -> dict[str, InfluenceBound]:
        bounds = {
            kind.names[i]: bound_of(excess[i]) for i in np.flatnonzero(excess.max(axis=1) > 1)
        }
        return {
            name: bound
            for name, bound in bounds.items()
            if bound is not None and not self._rule.trusts(name)
        }


class _Population(NamedTuple):
    """Children of one kind by name; `parts`: of each piece of their summaries, one or two."""

    names: list[str]
    as_of: Array
    parts: list[Spread]
    loud: list[Loudness]


def _population(
    children: Mapping[str, ChildSummary], *, client: bool, means: bool
) -> _Population | None:
    """Measure the children of one kind; None if they are too few, or sets of ids."""
    names = sorted(
        name
        for name, child in children.items()
        if child.client == client and child.summary.pieces and child.summary.weight > 0
    )
    if len(names) < LEAST_NODES:
        return None
    chosen = [children[name] for name in names]
    units = np.array([child.unit for child in chosen])
    columns = [*zip(*(child.summary.pieces for child in chosen), strict=True)]
    parts = [spread(column, units, means=means) for column in columns]
    loud = [loudness(column, parts[0].rows, means=means) for column in columns]
    return _Population(names, np.array([child.as_of for child in chosen]), parts, loud)


def _most(excesses: Iterable[Array]) -> Array:
    """Return the largest excess over the parts of a kernel group's summaries."""
    return np.asarray(np.maximum.reduce(list(excesses)))


# Only children that are faded otherwise than before are put again, so the tree merges no more
# than it must.


class ChildPlacement:
    """Decides which children of a tree, empty at first, are in it, and how much each counts."""

    def __init__(
        self,
        schema: Schema,
        summaries: Summaries,
        tree: Tree,
        *,
        robust: bool = False,
        rule: InfluenceRule | None = None,
    ) -> None:
        self._schema, self._summaries, self._tree = schema, summaries, tree
        self._robust, self._rule = robust, rule
        self._children: dict[str, ChildSummary] = {}
        self._placed: dict[str, tuple[Summary, float]] = {}
        self._screening, self._stirred = NO_OUTLIERS, False
        self._bounding = None if rule is None else ChildBounds(schema, rule)
        self._bounds: dict[str, InfluenceBound] = {}
        self._settled_at: tuple[float, float] | None = None

    def __contains__(self, node: object) -> bool:
        return node in self._children

    def put(self, node: str, child: ChildSummary) -> None:
        """Take a child's summary, in place of its last one."""
        self._children[node], self._stirred = child, True

    def remove(self, node: str) -> None:
        del self._children[node]
        self._stirred = True

    def placed(self) -> dict[str, Summary]:
        """Return what the tree holds of each child, by name."""
        return {
            node: self._summaries.faded(summary, factor)
            for node, (summary, factor) in sorted(self._placed.items())
        }

    @property
    def outliers(self) -> Mapping[str, Outlier]:
        """The children that are left out, as of the last `settle`."""
        return self._screening.outliers

    @property
    def bounds(self) -> Mapping[str, InfluenceBound]:
        """The children that are bounded, as of the last `settle`."""
        return self._bounds

    def settle(self, age: Callable[[str], float], at: tuple[float, float]) -> None:
        """Compare the children at (elapsed, wall), and have the tree hold what follows."""
        if not self._stirred and (self._bounding is None or self._settled_at == at):
            return
        if self._stirred and self._robust:
            self._screening = self._screen()
        if self._bounding is not None:
            if self._stirred:
                self._bounding.measure(self._children)
            self._bounds = self._bounding.bounds(age, at[1])
        self._stirred, self._settled_at = False, at
        self._place()

    def _screen(self) -> Screening:
        rule = self._rule
        screened = {
            node: child
            for node, child in self._children.items()
            if rule is None or not rule.trusts(node)
        }
        if not screened:
            return NO_OUTLIERS
        # The median: one wild clock must not decide what a reading weighs.
        unit = statistics.median_low(child.unit for child in screened.values())
        parts = {node: child.summary for node, child in screened.items()}
        return self._summaries.screen(self._schema, parts, unit=unit)

    def _place(self) -> None:
        """Put each child's share into the tree, if it has changed."""
        for node in [node for node in self._placed if not self._is_in(node)]:
            del self._tree[node]
            del self._placed[node]
        for node, child in self._children.items():
            if not self._is_in(node):
                continue
            bound = self._bounds.get(node)
            factor = self._screening.factors.get(node, 1.0)
            factor = factor if bound is None else min(factor, bound.factor)
            placed = self._placed.get(node)
            if placed is None or placed[0] is not child.summary or placed[1] != factor:
                self._tree[node] = self._summaries.faded(child.summary, factor)
                self._placed[node] = child.summary, factor

    def _is_in(self, node: str) -> bool:
        return node in self._children and node not in self._screening.outliers


class InfluenceNotes:
    """The nodes of one group that were named last; each change is said once."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._outliers: frozenset[str] = frozenset()
        self._bounded: frozenset[str] = frozenset()
        self._lacking: frozenset[str] = frozenset()
        self._moved: frozenset[str] = frozenset()

    def news(
        self,
        outliers: Mapping[str, Outlier],
        bounds: Mapping[str, InfluenceBound],
        lacking: frozenset[str],
        measured: Mapping[str, Moments],
    ) -> list[Note]:
        """Return notes on the nodes that have changed since the last call."""
        said = self._of_outliers(outliers) + self._of_bounds(bounds)
        return said + self._of_lacking(lacking) + self._of_scales(measured)

    def _of_scales(self, measured: Mapping[str, Moments]) -> list[Note]:
        what, why = "scale of a node refused", "center, scale and gamma are medians over nodes"
        todo = "look whether the node's readings are in the right units"
        if len(measured) < LEAST_SHIFTED:
            what = "node decides the scale"
            why = f"of fewer than {LEAST_SHIFTED} all count: the root waits for ten times as many"
            todo += "; if so, it belongs in `trusted`, else: nodes quarantine NODE"
        facts = {
            "group": self._group,
            "meaning": f"pooled, it moves a scale more than {MOST_MOVED:g} times; {why}",
            "todo": todo,
        }
        moved = frozenset(movers(measured))
        new, self._moved = moved - self._moved, moved
        return [Note(what, {"node": node} | facts, "warning") for node in sorted(new)]

    def _of_lacking(self, lacking: frozenset[str]) -> list[Note]:
        facts = {
            "group": self._group,
            "meaning": "its rows stay out of the noise of each channel; while most nodes lack them,"
            " alarms are raised by SPE and T2 in place of distances",
            "todo": "update it and the nodes below it; rows that an earlier version has left fade,"
            " or `nodes drop` removes them",
        }
        new, self._lacking = lacking - self._lacking, lacking
        what = "no energies of channels"
        return [Note(what, {"node": node} | facts, "warning") for node in sorted(new)]

    def _of_outliers(self, outliers: Mapping[str, Outlier]) -> list[Note]:
        notes = []
        for node in sorted(outliers.keys() ^ self._outliers):
            facts = {"group": self._group, "node": node}
            if node in outliers:
                facts["why"] = f"far from the others: {outliers[node].words}"
                facts["meaning"] = "its rows are kept, and leave the model until they are like them"
            notes.append(Note("node left out" if node in outliers else "node in again", facts))
        self._outliers = frozenset(outliers)
        return notes

    def _of_bounds(self, bounds: Mapping[str, InfluenceBound]) -> list[Note]:
        bounded = frozenset(
            node
            for node, bound in bounds.items()
            # Once said, it is over only when nothing is left of it: no line for each wobble.
            if bound.notable or node in self._bounded
        )
        notes = []
        for node in sorted(bounded ^ self._bounded):
            facts = {"group": self._group, "node": node}
            if node in bounded:
                facts["why"] = bounds[node].words
                facts["meaning"] = "its readings are kept, and weigh less in the model"
                facts["todo"] = "check the node; a node that is as it should be: `trusted`"
            what = "node's influence bounded" if node in bounded else "node counts in full again"
            notes.append(Note(what, facts))
        self._bounded = bounded
        return notes

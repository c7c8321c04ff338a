"""ChildBounds: which children of an aggregator are bounded, by their summaries and ages.

The formulas are in `submerge.robust.influence`. Here they meet an aggregator's children: clients
are bounded by age, energy and mean, aggregators by energy per sample. What does not change with
time is measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.protocol.summaries import Summary
from submerge.robust.influence import (
    FIRST_ROWS,
    LEAST_NODES,
    InfluenceBound,
    Readings,
    Spread,
    bound_of,
    effective_age,
    node_excess,
    row_rates,
    site_excess,
    spread,
)
from submerge.schema import Schema


class InfluenceRule(NamedTuple):
    """How the influence of children is bounded.

    trusted : Patterns of names (`*`, `?`) of children that count in full, also in a robust group.
    first_rows : Readings that a node's first report may have.
    known_s : For how long a node has to be heard before its row rate counts.
    """

    trusted: tuple[str, ...] = ()
    first_rows: float = FIRST_ROWS
    known_s: float = 86400.0

    def trusts(self, node: str) -> bool:
        """Return whether a pattern names a node."""
        return any(fnmatchcase(node, pattern) for pattern in self.trusted)


class ChildSummary(NamedTuple):
    """What a child has reported.

    client : whether a client sent it
    unit : the weight of one of its readings, when it is fresh
    as_of : wall time of its newest reading
    """

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
        """Return the children that are beyond what they may have.

        age : Returns for how many seconds a node has been heard.
        wall : Wall time; NaN if the clock is not synchronized.
        """
        found: dict[str, InfluenceBound] = {}
        if self._sites is not None:
            found |= self._found(self._sites, _most(map(site_excess, self._sites.parts)))
        if self._clients is not None:
            readings = self._readings(self._clients, age, wall)
            if readings is not None:
                parts = self._clients.parts
                excess = _most(node_excess(part, readings) for part in parts)
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
    """Children of one kind, in the order of their names.

    parts : of each piece of their summaries, one or two
    """

    names: list[str]
    as_of: Array
    parts: list[Spread]


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
    columns = zip(*(child.summary.pieces for child in chosen), strict=True)
    parts = [spread(column, units, means=means) for column in columns]
    return _Population(names, np.array([child.as_of for child in chosen]), parts)


def _most(excesses: Iterable[Array]) -> Array:
    """Return the largest excess over the parts of a kernel group's summaries."""
    return np.asarray(np.maximum.reduce(list(excesses)))

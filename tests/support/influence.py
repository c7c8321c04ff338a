"""Bounded influence, slowly: one child at a time, by the words of docs/mathematics.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from submerge import Schema, Subspace
from submerge.aggregator.rows.influence import ChildPlacement, ChildSummary, InfluenceRule
from submerge.protocol.summaries import Subspaces
from support import oracle
from support.liars import RANK, SPARES

DAY = 86400.0
RATE = 0.01
"""Readings a second of every honest node."""

SUMMARIES = Subspaces(RANK, oversample=SPARES)


@dataclass(frozen=True)
class Told:
    """What a node has reported, and for how long it has been heard."""

    rows: float
    energy: float
    mean: np.ndarray
    age: float
    silent: float = 0.0


def effective(age: float, half_life: float | None) -> float:
    """Readings left of one a second, summed second by second where that is quick."""
    if half_life is None:
        return age
    return half_life / math.log(2) * (1 - 2 ** (-age / half_life))


def factors(
    nodes: Mapping[str, Told], ratios: Mapping[str, float], *, half_life: float | None = None
) -> dict[str, float]:
    """Return what each node is faded by, at most 1; ratios: of variances that fewer allow."""
    first = 100.0
    old = {name for name, node in nodes.items() if node.age >= DAY}
    if len(nodes) < 5 or len(old) < 5:
        return dict.fromkeys(nodes, 1.0)
    middle = np.median([node.mean for node in nodes.values()], axis=0)
    offsets = {name: float(np.sum((node.mean - middle) ** 2)) for name, node in nodes.items()}
    energies = {name: node.energy / node.rows + offsets[name] for name, node in nodes.items()}
    rates = {}
    for name in old:
        node = nodes[name]
        age = effective(node.age, half_life)
        since = max(effective(max(node.age - node.silent, 0.0), half_life), age / 2)
        rates[name] = node.rows / since
    found = {}
    for name, node in nodes.items():
        others = sorted((rates[other] for other in old if other != name), reverse=True)
        earned = others[min(5, math.ceil(len(others) / 2)) - 1] * effective(node.age, half_life)
        usual = 3 * float(np.median([each for each in energies.values() if each > 0] or [0.0]))
        louder = sorted((energies[other] for other in nodes if other != name), reverse=True)
        if len(louder) >= 5 and louder[4] > usual:
            usual = 1.25 * louder[4]
        allowed = max(earned, first)
        limits = [
            (earned + max(earned / 4, first), node.rows),
            (allowed * usual, node.rows * energies[name]),
            (allowed * usual**0.5, node.rows * offsets[name] ** 0.5),
            (allowed * (1 + (len(middle) / allowed) ** 0.5) ** 2, node.rows * ratios[name]),
        ]
        found[name] = min([1.0, *(most / has for most, has in limits if has > 0)])
    return found


def placed(
    parts: Mapping[str, Subspace],
    ages: Mapping[str, float],
    *,
    bounds: bool = True,
    robust: bool = False,
    schema: Schema | None = None,
    sites: frozenset[str] = frozenset(),
    trusted: tuple[str, ...] = (),
) -> tuple[Subspace, ChildPlacement]:
    """Merge parts as an aggregator does; `sites`: who reports as an aggregator."""
    schema = Schema.anonymous(len(next(iter(parts.values())).mean)) if schema is None else schema
    tree = SUMMARIES.tree(schema)
    rule = InfluenceRule(trusted) if bounds else None
    placement = ChildPlacement(schema, SUMMARIES, tree, robust=robust, rule=rule)
    for name, part in parts.items():
        placement.put(name, ChildSummary(part, client=name not in sites))
    placement.settle(lambda name: ages[name], (0.0, 0.0))
    return SUMMARIES.directions(tree.root()), placement


def displaced(before: Subspace, after: Subspace, rank: int = RANK) -> tuple[float, float]:
    """Return degrees between the directions, and the mean's shift in standard deviations."""
    shown = [np.asarray(each.truncated(rank).basis, dtype=np.float64) for each in (before, after)]
    deviation = (before.energy / before.weight) ** 0.5
    return oracle.angle(*shown), float(np.linalg.norm(after.mean - before.mean)) / deviation


def same_bytes(one: Subspace, other: Subspace) -> bool:
    """Return whether two models are the same to the last bit."""
    return SUMMARIES.packed(one) == SUMMARIES.packed(other)

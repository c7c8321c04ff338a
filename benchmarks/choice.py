"""Choice: which rank the root chooses, and what rank and lags are worth to alarms.

Rows of a generated plant (docs/plants.md), each measured from its node's own mean: the running one
of its sound rows. The rank is `best_rank` of one summary for each node, as the root has it. Then a
model of the quiet days' rows at each number of lags and directions: the share of fault rows whose
smoothed distance is over a limit that 1 % of all sound rows after these days are over, averaged
over the kinds of faults. Names of nodes and their limits play no part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import measure
from plants.plant import PLANTS, Plant, plant
from report import Table, command
from submerge import SAPCA, Schema
from submerge.pca.choice import best_rank
from submerge.pca.factor import Precision, factors_of
from submerge.stats.smoothing import ewma
from submerge_client.sensors.gather import Lags

SEED, NODES = 201, 18
DAYS = {"loop": (16, 6), "engines": (36, 12), "room": (8, 3)}
"""Days in all, and quiet ones."""

FIRST = (25, 50, 250, 1000)
"""Rows of each node before the choice."""

MOST, LAGS, RANKS = 16, (1, 2, 4, 6), (4, 8, 10, 13, 16, 21, 30)
FALSE = 0.01
LEARNT = 20_000
"""Rows that a model is made from."""

Array = measure.Array


@dataclass(frozen=True)
class History:
    """Rows (n, channels) of one node about its own mean.

    sound, actual : without and with the fault
    faulty, near : rows of the fault; those and some more after it
    kind : of the fault; "" without one
    """

    sound: Array
    actual: Array
    faulty: Array
    near: Array
    kind: str


def scaled(fleet: Plant, node: int) -> Array:
    """Return all rows of a node, scaled, with each gap as the reading before it."""
    parts = [
        fleet.rows(node, a, b) for a, b in pairwise([*range(0, fleet.n_rows, 480), fleet.n_rows])
    ]
    rows = fleet.schema.scaled(np.concatenate(parts))
    at = np.where(np.isnan(rows), 0, np.arange(len(rows))[:, None])
    return np.nan_to_num(np.take_along_axis(rows, np.maximum.accumulate(at), axis=0))


def histories(name: str, nodes: int) -> tuple[list[History], int]:
    """Return the rows of a plant's nodes, and how many rows are quiet."""
    days, quiet = DAYS[name]
    sizes = {"seed": SEED, "nodes": nodes, "days": days, "quiet_days": quiet}
    fleet, sound = plant(name, **sizes), plant(name, **sizes, faults=())
    half_life = fleet.schema.half_life
    kept = 1.0 if half_life is None else 2.0 ** (-fleet.period_s / half_life)
    found = []
    for node in range(nodes):
        actual, plain = scaled(fleet, node), scaled(sound, node)
        mean, weight, means = plain[0], 1.0, np.empty_like(plain)
        for i, row in enumerate(plain):
            means[i] = mean
            weight = kept * weight + 1
            mean = mean + (row - mean) / weight
        faulty = np.zeros(len(plain), dtype=bool)
        near, kind = faulty.copy(), ""
        for fault in fleet.faults:
            if fault.node == node:
                kind, faulty[fault.start : fault.end] = fault.kind, True
                near[fault.start : fault.end + fleet.lingers] = True
        found.append(History(plain - means, actual - means, faulty, near, kind))
    return found, int(quiet * 86400 / fleet.period_s)


def chosen(name: str, fleet: list[History], quiet: int) -> Iterator[tuple[object, ...]]:
    """Yield the rank that the root chooses, by rows of each node."""
    for rows in (*FIRST, quiet):
        folds = []
        for each in fleet:
            schema = Schema(each.sound.shape[1])
            # The running mean is not known from few rows: the node's mean of them is.
            engine = SAPCA(MOST, schema=schema, memory=10**9).partial_fit(each.sound[:rows])
            whole = engine.whole_scatter
            folds.append(engine.subspace if whole is None else whole)
        yield name, rows, best_rank(folds, most=MOST, center="own")


def detection(fleet: list[History], quiet: int, lags: int) -> dict[int, float]:
    """Return the share of fault rows that are over the limit, by directions."""
    rows = [Lags(lags, each.sound.shape[1]).embed(each.sound[50:quiet]) for each in fleet]
    learnt = np.concatenate(rows)[:: max(1, sum(map(len, rows)) // LEARNT)]
    dim = learnt.shape[1]
    # Rows are about their nodes' means: none is subtracted again.
    schema = Schema(dim, center="none")
    whole = SAPCA(dim, schema=schema, memory=10**9).partial_fit(learnt).whole_scatter
    tried = [
        Lags(lags, each.sound.shape[1]).embed(each.actual[quiet - lags + 1 :]) for each in fleet
    ]
    found = {}
    for rank in (rank for rank in RANKS if rank < dim):
        model = whole.directions(rank)
        precision = Precision.of(model, factors_of(model, model))
        scores = [ewma(precision.measure(X)[1]) for X in tried]
        pairs = list(zip(scores, fleet, strict=True))
        limit = np.quantile(np.concatenate([s[~h.near[quiet:]] for s, h in pairs]), 1 - FALSE)
        by_kind: dict[str, list[Array]] = {}
        for s, h in pairs:
            if h.kind:
                by_kind.setdefault(h.kind, []).append(s[h.faulty[quiet:]] > limit)
        found[rank] = float(np.mean([np.concatenate(x).mean() for x in by_kind.values()]))
    return found


def room(quick: bool) -> list[Table]:
    """Return the ranks that are chosen, and what each setting finds."""
    ranks: list[tuple[object, ...]] = []
    shares: list[tuple[object, ...]] = []
    for name in measure.progress(PLANTS, "choice"):
        fleet, quiet = histories(name, 8 if quick else NODES)
        ranks += chosen(name, fleet, quiet)
        for lags in LAGS:
            found = detection(fleet, quiet, lags)
            best = max(found, key=lambda rank: found[rank])
            kept = max(rank for rank in found if rank <= MOST + 5)
            shares.append((name, lags, *map(found.get, RANKS), found[kept], found[best]))
    return [
        Table("The rank that is chosen", {"plant": "", "rows of a node": "d", "rank": "d"}, ranks),
        Table(
            f"Share of fault rows found by their smoothed distance, at {FALSE:.0%} false",
            {"plant": "", "lags": "d"}
            | {f"{rank} directions": ".3f" for rank in RANKS}
            | {"as kept": ".3f", "best": ".3f"},
            shares,
        ),
    ]


if __name__ == "__main__":
    command(room)

"""Scores of single rows, as queries: each channel is a column, each coefficient a number in text.

    rows -> scaled -> within -> left_over -> squared -> summed -> round0, round1, ... -> scored

1. Numbers are compared with the exact bounds in which a scaled number is finite, or below the
   largest, so that a row is refused just where Python refuses it.
2. A refused row goes on with no numbers: it keeps its place, and counts in no window.
3. A scaled number below `SMALLEST` counts as 0: its square may underflow, which PostgreSQL refuses.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge_bridges.export.recipe import Recipe
from submerge_bridges.export.sql.expressions import (
    MANY,
    Contest,
    Query,
    number,
    numbered,
    rounds,
    total,
    weighted,
)

SMALLEST = 1e-50
"""Least size of a scaled number, of a mean and of a deviation."""

LIGHTEST = 1e-100
"""Least weight of a square: a smaller one counts as 0."""

MOST_COLUMNS = 1500
"""Most columns of a query: PostgreSQL takes 1,600, SQLite 2,000."""

GAP, LARGE, INFINITE = 1, 10**6, 10**12
"""What a number that cannot be scored adds to the `fault` of its row. They are far apart, so that
the sum says how many of each there are."""


def score_queries(recipe: Recipe) -> list[Query]:
    """Return the queries from `rows` (n, moment, x0, x1, ...) to `scored`.

    Raises
    ------
    UsageError
        If the model has more channels than a query may have columns.
    """
    d, k, r = recipe.dim, len(recipe.gains), recipe.basis.shape[1]
    wide = 2 * d + k + r + 10
    if wide > MOST_COLUMNS:
        raise UsageError(
            f"expected a model that needs at most {MOST_COLUMNS:,} columns in SQL, got one that"
            f" needs {wide:,}: export it as c or onnx, or fit it with fewer channels"
        )
    centered, off, rest = numbered("c", d), numbered("e", d), numbered("f", d)
    by_distance, by_spe = recipe.by_distance, "spe" in recipe.scores and not recipe.complete
    z, v = numbered("z", k), numbered("v", r) if {"spe", "t2"} & set(recipe.scores) else ()
    sum_of = partial(weighted, many=2 * d * (len(z) + len(v)) > MANY)
    loads = recipe.gains[:, None] * (recipe.inverse_roots[:, None] * recipe.loadings).T
    within = {name: sum_of(loads[i], centered) for i, name in enumerate(z)}
    within |= {name: sum_of(recipe.basis[:, i], centered) for i, name in enumerate(v)}
    left = {
        name: f"{number(recipe.inverse_roots[j])}*c{j}-({sum_of(recipe.loadings[j], z)})"
        for j, name in enumerate(off)
    }
    if by_spe:
        left |= {name: f"c{j}-({sum_of(recipe.basis[j], v)})" for j, name in enumerate(rest)}
    if by_distance:
        left["inside"] = total([f"{each}*{each}" for each in z])
    if "t2" in recipe.scores:
        squares = [f"{each}*{each}" for each in v]
        left["t2"] = f"({weighted(recipe.t2_weights, squares)})/{number(recipe.excess)}"
    return [
        _scaled(recipe),
        Query("within", ("moment", "fault", *centered), within),
        Query("left_over", ("moment", "fault"), left),
        *_compared(recipe, by_spe=by_spe),
    ]


def _compared(recipe: Recipe, *, by_spe: bool) -> list[Query]:
    """Return the queries that sum squares and find the channel to blame."""
    off, rest = numbered("e", recipe.dim), numbered("f", recipe.dim)
    fine = "CASE WHEN fault = 0 THEN {} END"
    made: dict[str, str] = {}
    if recipe.by_distance:
        both = f"{total([f'{each}*{each}' for each in off])}+inside"
        made["distance"] = fine.format(f"({both})/{number(recipe.excess)}")
    if by_spe:
        sum_of = total([f"{each}*{each}" for each in rest])
        made["spe"] = fine.format(f"({sum_of})/{number(recipe.excess)}")
    elif "spe" in recipe.scores:
        made["spe"] = fine.format("0e0")
    if "t2" in recipe.scores:
        made["t2"] = fine.format("t2")
    blame, channel = numbered("b", recipe.dim), numbered("h", recipe.dim)
    squared = _weighed(recipe.blame_weights, off, blame)
    contests: dict[str, Contest] = {"b": [(blame[j], str(j), off[j]) for j in range(recipe.dim)]}
    weights = recipe.channel_weights if "channel" in recipe.computed else None
    apart = weights is not None and not np.array_equal(weights, recipe.blame_weights)
    if apart and weights is not None:
        squared |= _weighed(weights, off, channel)
        contests["h"] = [(each,) for each in channel]
    passed = ("moment", "fault", *made)
    queries, winners = rounds(contests, (*passed, "blame_sum"))
    winner = winners["b"]
    last = {
        "good": "CASE WHEN fault = 0 THEN 1 ELSE 0 END",
        "share": fine.format(f"CASE WHEN blame_sum > 0 THEN {winner[0]}/blame_sum ELSE 0e0 END"),
        "blamed": f"CASE WHEN fault = 0 AND blame_sum > 0 THEN {winner[1]} END",
        "error": fine.format(winner[2]),
    }
    if weights is not None:
        last["channel"] = fine.format(winners["h"][0] if apart else winner[0])
    return [
        Query("squared", (("moment", "fault", *off)), made | squared),
        Query("summed", (*passed, *off, *squared), {"blame_sum": total(blame)}),
        *queries,
        Query("scored", passed, last),
    ]


def _weighed(weights: Array, off: tuple[str, ...], names: tuple[str, ...]) -> dict[str, str]:
    """Return the weighted square of each error."""
    return {
        name: f"{number(weight)}*{each}*{each}" if weight >= LIGHTEST else f"0e0*{each}"
        for name, each, weight in zip(names, off, weights.tolist(), strict=True)
    }


def _scaled(recipe: Recipe) -> Query:
    """Return the query that scales and centers rows, and says what is wrong with one."""
    made, faults = {}, []
    for j in range(recipe.dim):
        offset, scale = float(recipe.offset[j]), float(recipe.scale[j])
        mean = float(recipe.mean[j])
        mean = mean if abs(mean) >= SMALLEST else 0.0
        name, real = f"x{j}", f"CAST(x{j} AS DOUBLE PRECISION)"
        fits = _between(name, bounds(offset, scale, recipe.largest))
        none = _between(name, (offset - SMALLEST * scale, offset + SMALLEST * scale))
        made[f"c{j}"] = (
            f"CASE WHEN {none} THEN {number(-mean)} WHEN {fits}"
            f" THEN ({real}-({number(offset)}))/{number(scale)}-({number(mean)}) END"
        )
        # One over a number that is none is no number either.
        faults.append(
            f"CASE WHEN {name} IS NULL THEN {GAP} WHEN {fits} THEN 0"
            f" WHEN {_between(name, bounds(offset, scale, np.inf))} THEN {LARGE}"
            f" WHEN ABS(1e0/{real}) < 1e-200 THEN {INFINITE} ELSE {GAP} END"
        )
    return Query("scaled", ("moment",), {"fault": total(faults), **made})


def _between(name: str, ends: tuple[float, float]) -> str:
    """Return the condition that a reading is between two numbers.

    SQLite compares text as a number only with what has a type: tables that it imports hold text.
    """
    low, high = (f"CAST({number(each)} AS DOUBLE PRECISION)" for each in ends)
    return f"{name} BETWEEN {low} AND {high}"


def bounds(offset: float, scale: float, largest: float) -> tuple[float, float]:
    """Return the least and the largest double that, scaled, is below `largest` in size.

    Notes
    -----
    Scaling is monotone, rounding included, so that bisection over all doubles finds them.
    """

    def fits(reading: float) -> bool:
        with np.errstate(over="ignore"):
            return bool(abs((np.float64(reading) - offset) / scale) < largest)

    ends = []
    for end in (-np.finfo(float).max, np.finfo(float).max):
        good, bad = _place(offset), _place(float(end))
        if fits(float(end)):
            good = bad
        while abs(good - bad) > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if fits(_double(middle)) else (good, middle)
        ends.append(_double(good))
    return ends[0], ends[1]


def _place(value: float) -> int:
    """Return the place of a double among all doubles in order; 0 is at 0."""
    bits = int(np.float64(abs(value)).view(np.int64))
    return bits if value >= 0 else -bits


def _double(place: int) -> float:
    """Return the double at a place."""
    size = float(np.int64(abs(place)).view(np.float64))
    return size if place >= 0 else -size

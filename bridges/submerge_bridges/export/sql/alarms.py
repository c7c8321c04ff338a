"""Alarms over rows in the order of time, as queries with windows: no recursion, and no state.

    scored -> lagged -> ranked -> medians, ..., averaged -> compared -> recent -> runs -> lasting
        -> alarmed

The state of other exports is here the rows before. Windows go over rows with scores alone
(`PARTITION BY good`), so that a refused row is passed over.

1. The `after`-th largest of the last `of` scores is the one that just so many others are before:
   larger ones, and equal ones that are newer.
2. An alarm is open from a row that is over to the last one that has a high row within `ends_after`
   rows. These runs are numbered by the rows without one.
"""

from __future__ import annotations

from collections.abc import Mapping

from submerge.stats.block_maxima import By
from submerge_bridges.export.recipe import AlarmRecipe, Recipe
from submerge_bridges.export.sql.average import average_queries
from submerge_bridges.export.sql.expressions import AMONG, BEFORE, Query, lag, number


def alarm_queries(recipe: Recipe) -> list[Query]:
    """Return the queries from `scored` to `alarmed`, by the recipe's alarm limits."""
    alarm = recipe.alarm
    passed = ("moment", "fault", "good", "blamed", "share", "error", *recipe.computed)
    queries = [_lagged(alarm, passed)]
    medians = tuple(lag("distance", i) for i in (1, 2) if "smoothed" in alarm.limits)
    ranked = {f"statistic_{kind}": _ranked(alarm, kind) for kind in alarm.windows}
    queries.append(Query("ranked", (*passed, *medians), ranked))
    known = (*passed, *ranked)
    if medians:
        queries += average_queries(alarm, known + medians)
        known = (*known, "statistic_smoothed")
    over = {f"over_{kind}": _flag(_above({kind: alarm.limits[kind]})) for kind in alarm.kinds}
    last = f"{AMONG} ROWS BETWEEN {alarm.ends_after - 1} PRECEDING AND CURRENT ROW"
    compared = {"is_over": _flag(_above(alarm.limits)), "high": _flag(_above(alarm.calm))}
    since = "PARTITION BY good, run ORDER BY n ROWS UNBOUNDED PRECEDING"
    opened = f"CASE WHEN good = 1 THEN lasts * MAX(is_over) OVER ({since}) ELSE 0 END"
    # A refused row belongs to the row with scores before it.
    place = "SUM(good) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING)"
    runs = {"run": f"SUM(1 - lasts) OVER ({BEFORE})", "place": place}
    return [
        *queries,
        Query("compared", known, over | compared),
        Query("recent", (*known, *over, "is_over"), {"lasts": f"MAX(high) OVER ({last})"}),
        Query("runs", (*known, *over, "is_over", "lasts"), runs),
        Query("lasting", (*known, *over, "place"), {"is_open": opened}),
        Query("alarmed", (*known, *over), {"alarm": "MAX(is_open) OVER (PARTITION BY place)"}),
    ]


def _lagged(alarm: AlarmRecipe, passed: tuple[str, ...]) -> Query:
    """Return the query that puts the scores of the last rows beside a row; 0 before the first."""
    backs = {(kind, i) for kind in alarm.windows for i in range(1, alarm.of)}
    if "smoothed" in alarm.limits:
        backs |= {("distance", 1), ("distance", 2)}
    made = {lag(kind, i): f"LAG({kind}, {i}, 0e0) OVER ({AMONG})" for kind, i in sorted(backs)}
    return Query("lagged", passed, made)


def _ranked(alarm: AlarmRecipe, kind: By) -> str:
    """Return the k-of-m statistic of a kind."""
    each = [str(kind), *(lag(kind, i) for i in range(1, alarm.of))]
    cases = []
    for i, score in enumerate(each):
        before = [f"{other}>={score}" for other in each[:i]]
        before += [f"{other}>{score}" for other in each[i + 1 :]]
        rank = "+".join(map(_flag, before)) or "0"
        cases.append(f"WHEN {rank} = {alarm.after - 1} THEN {score}")
    return f"CASE WHEN good = 0 THEN NULL {' '.join(cases)} END"


def _flag(condition: str) -> str:
    """Return 1 where a condition holds, 0 elsewhere, as for a row without scores."""
    return f"CASE WHEN {condition or '1 = 0'} THEN 1 ELSE 0 END"


def _above(limits: Mapping[By, float]) -> str:
    """Return the condition that any statistic is above its limit."""
    return " OR ".join(f"statistic_{kind} > {number(limit)}" for kind, limit in limits.items())

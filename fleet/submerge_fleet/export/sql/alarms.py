"""Alarms over rows in the order of time, as queries with windows: no recursion, and no state.

    scored -> sorted -> averaged -> compared -> recent -> runs -> lasting -> alarmed

The state of other exports is here the rows before. Windows go over rows with scores alone
(`PARTITION BY good`), so that a refused row is passed over.

1. The `after`-th largest of the last `of` scores is above a limit where `after` of them are.
2. The moving average is a sum of the medians m_i, each times w (1 - w)^(n - i). Rows are taken in
   spans of `SPAN`: within a span it is a running sum of w m_i (1 - w)^-i, divided by (1 - w)^-n; to
   that comes what the span before had at its end. All terms are positive, so that nothing cancels.
   Older spans weigh less than 1e-79, and are left out.
3. The average begins with the first median that is not 0, which counts whole. If later all medians
   of thousands of rows are 0, Python's average underflows, and begins again; this one does not.
4. An alarm is open from a row that is over to the last one that has a high row within `ends_after`
   rows. These runs are numbered by the rows without one.
"""

from __future__ import annotations

from submerge_fleet.export.recipe import AlarmRecipe, Recipe
from submerge_fleet.export.sql.expressions import Query, number

SPAN = 512
"""Rows of a span: 0.7^-512 is 2e79, and the largest distances are below 1e100."""

DIGITS = 8
"""Powers are put together from those of three digits to this base, as 512 cases would be slow."""

AMONG = "PARTITION BY good ORDER BY n"
BEFORE = f"{AMONG} ROWS UNBOUNDED PRECEDING"


def alarm_queries(recipe: Recipe) -> list[Query]:
    """Return the queries from `scored` to `alarmed`, by the recipe's alarm limits."""
    alarm = recipe.alarm
    passed = ("moment", "fault", "blamed", "share", "error", *recipe.computed)
    good = {"good": "CASE WHEN fault = 0 THEN 1 ELSE 0 END"}
    queries = [Query("sorted", passed, good)]
    known = (*passed, "good")
    if "smoothed" in alarm.limits:
        queries += _average(alarm, known)
        known = queries[-1].columns
    over = {
        f"over_{kind}": _flag(_above(alarm, kind, number(alarm.limits[kind])))
        for kind in alarm.kinds
    }
    high = " OR ".join(_above(alarm, kind, number(alarm.calm[kind])) for kind in alarm.kinds)
    known = (*known, *over)
    last = f"{AMONG} ROWS BETWEEN {alarm.ends_after - 1} PRECEDING AND CURRENT ROW"
    is_over = _flag(" OR ".join(f"{each} = 1" for each in over))
    return [
        *queries,
        Query("compared", known[: len(known) - len(over)], {**over, "high": _flag(high)}),
        Query("recent", known, {"lasts": f"MAX(high) OVER ({last})", "is_over": is_over}),
        Query(
            "runs",
            (*known, "is_over", "lasts"),
            {
                "run": f"SUM(1 - lasts) OVER ({BEFORE})",
                # A refused row belongs to the row with scores before it.
                "place": "SUM(good) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING)",
            },
        ),
        Query(
            "lasting",
            (*known, "place"),
            {
                "is_open": "CASE WHEN good = 1 THEN lasts * MAX(is_over) OVER"
                " (PARTITION BY good, run ORDER BY n ROWS UNBOUNDED PRECEDING) ELSE 0 END",
            },
        ),
        Query("alarmed", known, {"alarm": "MAX(is_open) OVER (PARTITION BY place)"}),
    ]


def _flag(condition: str) -> str:
    """Return 1 where a condition holds, 0 elsewhere, as for a row without scores."""
    return f"CASE WHEN {condition or '1 = 0'} THEN 1 ELSE 0 END"


def _above(alarm: AlarmRecipe, kind: str, limit: str) -> str:
    """Return the condition that the statistic of a kind is above a limit."""
    if kind == "smoothed":
        return f"smoothed > {limit}"
    last = f"{AMONG} ROWS BETWEEN {alarm.of - 1} PRECEDING AND CURRENT ROW"
    return f"SUM({_flag(f'{kind} > {limit}')}) OVER ({last}) >= {alarm.after}"


def _average(alarm: AlarmRecipe, known: tuple[str, ...]) -> list[Query]:
    """Return the queries that add `smoothed`."""
    lags = {f"lag{i}": f"LAG(distance, {i}, 0e0) OVER ({AMONG})" for i in (1, 2)}
    low = "CASE WHEN lag1 <= lag2 THEN lag1 ELSE lag2 END"
    top = "CASE WHEN lag1 <= lag2 THEN lag2 ELSE lag1 END"
    median = f"CASE WHEN distance <= {low} THEN {low} WHEN distance >= {top} THEN {top}"
    kept = 1 - alarm.weight
    place = f"(row_number() OVER ({AMONG}) - 1)"
    started = f"SUM(CASE WHEN median > 0 THEN 1 ELSE 0 END) OVER ({BEFORE})"
    # What a median adds, before the powers.
    added = (
        f"CASE WHEN started = 1 AND median > 0 THEN median ELSE {number(alarm.weight)}*median END"
    )
    before = f"{AMONG} ROWS BETWEEN {SPAN} PRECEDING AND 1 PRECEDING"
    carried = f"MAX(CASE WHEN step = {SPAN - 1} THEN part/power END) OVER ({before})"
    return [
        Query("lagged", known, lags),
        Query("medians", known, {"median": f"{median} ELSE distance END", "i": place}),
        Query(
            "started",
            (*known, "median"),
            {
                "step": f"i % {SPAN}",
                "span": f"i - i % {SPAN}",
                "started": started,
            },
        ),
        Query("powers", (*known, "step", "span"), {"power": _power(kept), "added": added}),
        Query(
            "parts",
            (*known, "step", "power"),
            {
                "part": "SUM(added * power) OVER (PARTITION BY good, span ORDER BY n"
                " ROWS UNBOUNDED PRECEDING)",
            },
        ),
        Query("carried", (*known, "part", "power"), {"carry": carried}),
        Query(
            "averaged",
            known,
            {
                "smoothed": f"(part + COALESCE(carry, 0e0) * {number(kept)})/power",
            },
        ),
    ]


def _power(kept: float) -> str:
    """Return kept^-step, for steps of a span."""
    factors = []
    for i in range(3):
        unit = DIGITS**i
        digit = f"step % {unit * DIGITS} - step % {unit}"
        cases = [f"WHEN {j * unit} THEN {number(kept ** (-j * unit))}" for j in range(DIGITS)]
        factors.append(f"CASE {digit} {' '.join(cases)} END")
    return "*".join(factors)

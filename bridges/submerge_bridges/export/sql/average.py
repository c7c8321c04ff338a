"""The moving average of distances (`smoothed`), as queries with windows.

    s_n = w m_n + (1 - w) s_(n-1),    m_n the median of the newest three distances

1. It is a sum of the medians m_i, each times w (1 - w)^(n - i). Rows are taken in spans of `SPAN`:
   within a span it is a running sum of w m_i (1 - w)^-i, divided by (1 - w)^-n; to that comes what
   the span before had at its end. All terms are positive, so that nothing cancels. Older spans
   weigh less than 1e-79, and are left out.
2. The average begins with the first median that is not 0, which counts whole. If later all medians
   of thousands of rows are 0, Python's average underflows, and begins again; this one does not.
"""

from __future__ import annotations

from submerge_bridges.export.recipe import AlarmRecipe
from submerge_bridges.export.sql.expressions import AMONG, BEFORE, Query, lag, number

SPAN = 512
"""Rows of a span: 0.7^-512 is 2e79, and the largest distances are below 1e100."""

DIGITS = 8
"""Powers are put together from those of three digits to this base, as 512 cases would be slow."""


def average_queries(alarm: AlarmRecipe, known: tuple[str, ...]) -> list[Query]:
    """Return the queries that add `statistic_smoothed`.

    known : columns that go on, among them `distance` and the two before it (`expressions.lag`)
    """
    first, second = lag("distance", 1), lag("distance", 2)
    low = f"CASE WHEN {first} <= {second} THEN {first} ELSE {second} END"
    top = f"CASE WHEN {first} <= {second} THEN {second} ELSE {first} END"
    median = f"CASE WHEN distance <= {low} THEN {low} WHEN distance >= {top} THEN {top}"
    kept, weight = 1 - alarm.weight, number(alarm.weight)
    # What a median adds, before the powers.
    added = f"CASE WHEN started = 1 AND median > 0 THEN median ELSE {weight}*median END"
    within = "PARTITION BY good, span ORDER BY n ROWS UNBOUNDED PRECEDING"
    before = f"{AMONG} ROWS BETWEEN {SPAN} PRECEDING AND 1 PRECEDING"
    ended = f"MAX(CASE WHEN step = {SPAN - 1} THEN part/power END) OVER ({before})"
    place = f"(row_number() OVER ({AMONG}) - 1)"
    spans = {
        "step": f"i % {SPAN}",
        "span": f"i - i % {SPAN}",
        "started": f"SUM(CASE WHEN median > 0 THEN 1 ELSE 0 END) OVER ({BEFORE})",
    }
    smoothed = f"(part + COALESCE(carry, 0e0) * {number(kept)})/power"
    return [
        Query("medians", known, {"median": f"{median} ELSE distance END", "i": place}),
        Query("spans", (*known, "median"), spans),
        Query("powers", (*known, "step", "span"), {"power": _power(kept), "added": added}),
        Query("parts", (*known, "step", "power"), {"part": f"SUM(added * power) OVER ({within})"}),
        Query("carried", (*known, "part", "power"), {"carry": ended}),
        Query("averaged", known, {"statistic_smoothed": smoothed}),
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

"""The whole text of an SQL export: a view of scores, and a view that checks it.

1. `submerge_scores` reads one table, a row for each moment, and returns a row for each of them.
2. `submerge_check` runs the same queries on golden rows that are part of it, and returns one row:
   how many there are, and how many differ from what Python says.
3. The text creates these two views and does nothing else. Names of channels are in it as
   `column_names` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from submerge._linalg import Array
from submerge_fleet.export.interpreter import ExportResult
from submerge_fleet.export.recipe import Recipe
from submerge_fleet.export.sql.alarms import alarm_queries
from submerge_fleet.export.sql.column_names import ColumnNames, checked, identifier, string
from submerge_fleet.export.sql.expressions import PREFIX, chained, number, numbered
from submerge_fleet.export.sql.scores import score_queries

STATUS = ("scored", "gap", "too large")
"""By the status of the interpreter."""

SAME = 1e-9
"""Largest relative difference of a golden number."""


@dataclass(frozen=True, slots=True)
class SqlNames:
    """What the table and the views are called.

    table, time : the table of readings, and its column that orders them
    scores, check : the views
    """

    table: str = "readings"
    time: str = "time"
    scores: str = "submerge_scores"
    check: str = "submerge_check"


def script(
    recipe: Recipe, rows: Array, expected: Sequence[ExportResult], names: SqlNames = SqlNames()
) -> str:
    """Return a recipe as SQL.

    Parameters
    ----------
    rows : (n, d)
        Golden rows, in units; NaN is a gap.
    expected : sequence of ExportResult
        What Python says of them.

    Raises
    ------
    UsageError
        If the model is too wide for SQL, or a name of the table cannot be one.
    """
    columns = ColumnNames.of(recipe.channels, taken=(names.time,))
    queries = [*score_queries(recipe), *alarm_queries(recipe)]
    body = chained("rows", queries)
    table, time = checked(names.table, "the table"), checked(names.time, "the column of times")
    read = ",\n".join(f"t.{identifier(column)} AS x{j}" for j, column in enumerate(columns.columns))
    readings = (
        f"{PREFIX}rows AS (\nSELECT row_number() OVER (ORDER BY t.{time}) AS n,\n"
        f"t.{time} AS moment,\n{read}\nFROM {table} AS t)"
    )
    scores = ",\n".join(_results(recipe, columns))
    return (
        f"{_header(recipe)}"
        f"CREATE VIEW {checked(names.scores, 'the view')} AS\nWITH {readings},\n{body}\n"
        f"SELECT moment AS {time},\n{scores}\nFROM {PREFIX}alarmed\nORDER BY n;\n\n"
        f"CREATE VIEW {checked(names.check, 'the view')} AS\n"
        f"WITH {_golden(rows)},\n{body},\n{_expected(recipe, expected)}\n{_comparison(recipe)};\n"
    )


def _results(recipe: Recipe, columns: ColumnNames) -> list[str]:
    """Return the columns of the view of scores."""
    cases = " ".join(f"WHEN {i} THEN {string(each)}" for i, each in enumerate(STATUS))
    found = [f"CASE {_status()} {cases} END AS status", *recipe.scores]
    found += [f"{_passed(recipe, kind)} AS passed_{kind}" for kind in recipe.limits]
    found += [kind for kind in recipe.alarm.kinds if kind not in recipe.scores]
    called = " ".join(f"WHEN {j} THEN {string(each)}" for j, each in enumerate(columns.columns))
    sizes = (recipe.error_weights * recipe.scale).tolist()
    each = " ".join(f"WHEN {j} THEN {number(size)}" for j, size in enumerate(sizes))
    return [
        *found,
        "is_over AS over_limit",
        "alarm",
        f"CASE blamed {called} END AS blame",
        "blame_share",
        f"error * CASE blamed {each} END AS deviation",
    ]


def _status() -> str:
    """Return a row's status as in the interpreter, by what is wrong with its numbers."""
    return (
        "CASE WHEN fault = 0 THEN 0 WHEN fault >= 1000000000000 THEN 2"
        " WHEN fault % 1000000 > 0 THEN 1 ELSE 2 END"
    )


def _passed(recipe: Recipe, kind: str) -> str:
    """Return the highest share whose limit a score is above."""
    steps = list(zip(*recipe.limits[kind], strict=True))[::-1]  # type: ignore[index]
    cases = " ".join(
        f"WHEN {kind} > {number(limit)} THEN {number(share)}" for share, limit in steps
    )
    return f"CASE WHEN {kind} IS NULL THEN NULL {cases} ELSE 0e0 END"


def _golden(rows: Array) -> str:
    """Return the golden rows as the query `readings`."""
    columns = ", ".join(("n", "moment", *numbered("x", rows.shape[1])))
    each = ",\n".join(
        f"({i}, {i}, {', '.join('NULL' if math.isnan(x) else number(x) for x in row)})"
        for i, row in enumerate(rows.tolist(), start=1)
    )
    return f"{PREFIX}rows ({columns}) AS (VALUES\n{each})"


def _expected(recipe: Recipe, expected: Sequence[ExportResult]) -> str:
    """Return what Python says of the golden rows, as a query."""
    kinds = tuple(dict.fromkeys((*recipe.scores, *recipe.alarm.kinds)))
    columns = ("wanted_n", "wanted_status", "wanted_alarm", "wanted_blame",
               *(f"wanted_{kind}" for kind in kinds if kind in _compared(recipe)))  # fmt: skip
    lines = []
    for n, each in enumerate(expected, start=1):
        known = {**each.statistics, **each.scores}
        values = (
            number(known[kind]) if kind in known else "NULL"
            for kind in kinds
            if kind in _compared(recipe)
        )
        blame = "-1" if each.status or each.blame < 0 else str(each.blame)
        lines.append(f"({n}, {each.status}, {int(each.alarm)}, {blame}, {', '.join(values)})")
    rows = ",\n".join(lines)
    return f"{PREFIX}wanted ({', '.join(columns)}) AS (VALUES\n{rows})"


def _compared(recipe: Recipe) -> tuple[str, ...]:
    """Return the numbers that are compared: the k-of-m statistic of `channel` is none of them."""
    smoothed = ("smoothed",) if "smoothed" in recipe.alarm.limits else ()
    return (*recipe.scores, *smoothed)


def _comparison(recipe: Recipe) -> str:
    """Return the query that counts golden rows that differ."""
    differs = [
        f"{_status()} <> wanted_status",
        "alarm <> wanted_alarm",
        "COALESCE(blamed, -1) <> wanted_blame",
    ]
    for kind in _compared(recipe):
        most = f"{number(SAME)} * wanted_{kind} + 1e-12"
        differs.append(f"ABS({kind} - wanted_{kind}) > {most}")
        differs.append(f"({kind} IS NULL) <> (wanted_{kind} IS NULL)")
    condition = "\nOR ".join(differs)
    return (
        "SELECT COUNT(*) AS golden_rows,\n"
        f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) AS different\n"
        f"FROM {PREFIX}wanted LEFT JOIN {PREFIX}alarmed ON n = wanted_n"
    )


def _header(recipe: Recipe) -> str:
    """Return comments that say what the text is; no foreign text is in them."""
    alarm = recipe.alarm
    return (
        f"-- A model of submerge: {recipe.dim} channels, version {recipe.version},\n"
        f"-- fingerprint {recipe.fingerprint}.\n"
        "-- submerge_scores has a row for each row of the table, by the order of time.\n"
        "-- submerge_check compares golden rows with what Python says: `different` must be 0.\n"
        f"-- Alarms: {alarm.after} of {alarm.of} rows above a limit, open until {alarm.ends_after}"
        " rows were calm.\n\n"
    )

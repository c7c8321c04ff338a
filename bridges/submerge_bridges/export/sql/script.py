"""The whole text of an SQL export: a view of scores, and a view that checks it.

1. `..._scores` reads one table, a row for each moment, and returns a row for each of them.
2. `..._check` runs the same queries on golden rows that are part of it, and returns one row: how
   many there are, and how many differ from what Python says.
3. The text creates these two views and does nothing else. Names of channels are in it as
   `column_names` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from submerge._linalg import Array
from submerge.stats.block_maxima import By
from submerge_bridges.export.golden import GoldenRows, golden_rows
from submerge_bridges.export.interpreter import ExportResult
from submerge_bridges.export.plain_text import about_lines
from submerge_bridges.export.recipe import Recipe
from submerge_bridges.export.sql.alarms import alarm_queries
from submerge_bridges.export.sql.column_names import ColumnNames, checked, identifier, string
from submerge_bridges.export.sql.expressions import PREFIX, chained, number, numbered
from submerge_bridges.export.sql.scores import INFINITE, LARGE, score_queries
from submerge_files.console.printable import name_text

STATUS = ("scored", "gaps", "too large")
"""By the status of the interpreter."""

MOST_NOTES = 10
"""Channels that are named to the user."""

ENORMOUS = 1e308
"""Stands for infinity in golden rows: there is no way to write that in all databases."""


@dataclass(frozen=True, slots=True)
class SqlNames:
    """What the table and the views are called.

    table, time : the table of readings, and its column that orders them
    prefix : what names of the views begin with
    """

    table: str = "readings"
    time: str = "time"
    prefix: str = "submerge"


def script(recipe: Recipe, names: SqlNames = SqlNames()) -> str:
    """Return a recipe as SQL.

    Raises
    ------
    UsageError
        If the model is too wide for SQL, or the table or its column cannot have that name.
    """
    columns = columns_of(recipe, names)
    table, time = checked(names.table, "--table"), checked(names.time, "--time")
    scores, check = (checked(f"{names.prefix}_{each}", "--prefix") for each in ("scores", "check"))
    body = chained("rows", [*score_queries(recipe), *alarm_queries(recipe)])
    read = ",\n".join(f"t.{identifier(name)} AS x{j}" for j, name in enumerate(columns.columns))
    golden, results = golden_rows(recipe), ",\n".join(_results(recipe, time, columns))
    return (
        f"{_header(recipe)}"
        f"CREATE VIEW {scores} AS\n"
        f"WITH {PREFIX}rows AS (\nSELECT row_number() OVER (ORDER BY t.{time}) AS n,\n"
        f"t.{time} AS moment,\n{read}\nFROM {table} AS t),\n{body}\n"
        f"SELECT {results}\n"
        f"FROM {PREFIX}alarmed\nORDER BY n;\n\n"
        f"CREATE VIEW {check} AS\n"
        f"WITH {_golden(golden.rows)},\n{body},\n{_expected(recipe, golden.results)}\n"
        f"{_comparison(recipe, golden)};\n"
    )


def columns_of(recipe: Recipe, names: SqlNames) -> ColumnNames:
    """Return the columns of the table that hold the channels."""
    return ColumnNames.of(recipe.channels, taken=(names.time,))


def column_notes(recipe: Recipe, names: SqlNames) -> list[str]:
    """Return a sentence on each channel whose column has another name, the first few of them."""
    changed = columns_of(recipe, names).changed
    notes = [
        f"no column can be called {name_text(recipe.channels[j])!r} here: name that of channel"
        f" {j + 1} {column}"
        for j, column in changed[:MOST_NOTES]
    ]
    more = len(changed) - len(notes)
    return [*notes, f"{more:,} more channels have columns channel_N"] if more > 0 else notes


def _results(recipe: Recipe, time: str, columns: ColumnNames) -> list[str]:
    """Return the columns of the view of scores."""
    cases = " ".join(f"WHEN {i} THEN {string(each)}" for i, each in enumerate(STATUS))
    called = " ".join(f"WHEN {j} THEN {string(each)}" for j, each in enumerate(columns.columns))
    sizes = (recipe.error_weights * recipe.scale).tolist()
    weights = " ".join(f"WHEN {j} THEN {number(size)}" for j, size in enumerate(sizes))
    return [
        f"moment AS {time}",
        f"CASE {_status()} {cases} END AS status",
        *recipe.computed,
        *(f"{_passed(recipe, kind)} AS passed_{kind}" for kind in recipe.limits),
        *(f"statistic_{kind}" for kind in recipe.alarm.kinds),
        *(f"over_{kind}" for kind in recipe.alarm.kinds),
        "alarm",
        f"CASE blamed {called} END AS blame",
        "share",
        f"error * CASE blamed {weights} END AS deviation",
    ]


def _numbers(recipe: Recipe) -> tuple[str, ...]:
    """Return the columns of scores and statistics, which a check compares."""
    return (*recipe.computed, *(f"statistic_{kind}" for kind in recipe.alarm.kinds))


def _status() -> str:
    """Return a row's status as in the interpreter, by what is wrong with its numbers."""
    return (
        f"CASE WHEN fault = 0 THEN 0 WHEN fault >= {INFINITE} THEN 2"
        f" WHEN fault % {LARGE} > 0 THEN 1 ELSE 2 END"
    )


def _passed(recipe: Recipe, kind: By) -> str:
    """Return the highest share whose limit a score is above."""
    steps = recipe.limits[kind]
    pairs = reversed(list(zip(steps.shares.tolist(), steps.values.tolist(), strict=True)))
    cases = " ".join(
        f"WHEN {kind} > {number(limit)} THEN {number(share)}" for share, limit in pairs
    )
    return f"CASE WHEN {kind} IS NULL THEN NULL {cases} ELSE 0e0 END"


def _golden(rows: Array) -> str:
    """Return the golden rows as the first query."""
    columns = ", ".join(("n", "moment", *numbered("x", rows.shape[1])))
    each = ",\n".join(
        f"({i}, {i}, {', '.join(map(_reading, row))})"
        for i, row in enumerate(rows.tolist(), start=1)
    )
    return f"{PREFIX}rows ({columns}) AS (VALUES\n{each})"


def _reading(value: float) -> str:
    if math.isnan(value):
        return "NULL"
    return number(math.copysign(ENORMOUS, value) if math.isinf(value) else value)


def _expected(recipe: Recipe, expected: Sequence[ExportResult]) -> str:
    """Return what Python says of the golden rows, as a query."""
    kinds = _numbers(recipe)
    columns = ("n", "status", "alarm", "blame", *kinds)
    lines = []
    for n, each in enumerate(expected, start=1):
        known = {str(kind): size for kind, size in each.scores.items()}
        known |= {f"statistic_{kind}": size for kind, size in each.statistics.items()}
        values = (number(known[kind]) if kind in known else "NULL" for kind in kinds)
        whole = map(str, (n, each.status, int(each.alarm), each.blame))
        lines.append(f"({', '.join((*whole, *values))})")
    rows, named = ",\n".join(lines), ", ".join(f"wanted_{each}" for each in columns)
    return f"{PREFIX}wanted ({named}) AS (VALUES\n{rows})"


def _comparison(recipe: Recipe, golden: GoldenRows) -> str:
    """Return the query that counts golden rows that differ."""
    differs = [
        f"{_status()} <> wanted_status",
        "alarm <> wanted_alarm",
        "COALESCE(blamed, -1) <> wanted_blame",
    ]
    for kind in _numbers(recipe):
        most = f"{number(golden.near)} * wanted_{kind} + {number(golden.floor)}"
        differs.append(f"ABS({kind} - wanted_{kind}) > {most}")
        differs.append(f"({kind} IS NULL) <> (wanted_{kind} IS NULL)")
    condition = "\nOR ".join(differs)
    return (
        "SELECT COUNT(*) AS golden_rows,\n"
        f"SUM(CASE WHEN n IS NULL OR {condition} THEN 1 ELSE 0 END) AS different\n"
        f"FROM {PREFIX}wanted LEFT JOIN {PREFIX}alarmed ON n = wanted_n"
    )


def _header(recipe: Recipe) -> str:
    """Return comments that say what the text is; no foreign text is in them as it came."""
    views = [
        "",
        "The view of scores has a row for each row of the table, by its column of times. The view",
        "of the check compares golden rows with what Python says: `different` has to be 0.",
    ]
    return "".join(f"-- {line}".rstrip() + "\n" for line in (*about_lines(recipe), *views)) + "\n"

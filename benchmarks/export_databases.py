"""The SQL export in other databases than SQLite: the same marks, alarms and channels to blame.

A model of 54 channels and 8 directions is exported as SQL, and read by DuckDB (the Python package
`duckdb`, which no extra of ours has) and PostgreSQL (the program `psql`, where the environment
variable SUBMERGE_POSTGRES has connection words such as "host=/tmp/pg dbname=try": the tables and
views of that database called readings, submerge_scores and submerge_check are replaced). A database
that is not here is left out. Rows have faults, NaN, infinities and numbers beyond all sense; each
database has to say of each row what plain Python says.
"""

import blas  # noqa: F401, I001 (before numpy: it sets one thread)

import csv
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from report import Table, command
from submerge_bridges.export.exported_model import recipe_of
from submerge_bridges.export.interpreter import ExportResult, ExportState, step
from submerge_bridges.export.recipe import Recipe
from submerge_bridges.export.sql.script import STATUS, script

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import exported

ROWS = 10_000
POSTGRES = os.environ.get("SUBMERGE_POSTGRES", "")

Found = tuple[str, str, list[dict[str, str]], float]
"""Version, what the check said, the view of scores, and seconds that it took."""


def wild_rows(recipe: Recipe, n: int) -> np.ndarray:
    """Return rows with faults, of which every tenth is no reading."""
    rows = exported.plant_rows(n, 7, faults=n // 500)
    rows[::10] = exported.fuzzed_rows(len(rows[::10]), recipe.offset, recipe.scale)
    return rows


def by_python(recipe: Recipe, rows: np.ndarray) -> list[ExportResult]:
    state, results = ExportState(), []
    for row in rows:
        result, state = step(recipe, row, state)
        results.append(result)
    return results


def made_table(recipe: Recipe) -> str:
    columns = ", ".join(f'"{name}" DOUBLE PRECISION' for name in recipe.channels)
    return f'CREATE TABLE readings ("time" INTEGER, {columns})'


def by_duckdb(recipe: Recipe, rows: Path) -> Found:
    import duckdb

    held = duckdb.connect()
    held.execute(made_table(recipe))
    held.execute(f"COPY readings FROM '{rows}' (HEADER false)")
    held.execute(script(recipe))
    checked = held.execute("SELECT * FROM submerge_check").fetchall()
    start = time.perf_counter()
    found = held.execute("SELECT * FROM submerge_scores")
    names = [each[0] for each in found.description]
    table = [dict(zip(names, map(str, row), strict=True)) for row in found.fetchall()]
    said = ",".join(map(str, checked[0]))
    return f"DuckDB {duckdb.__version__}", said, table, time.perf_counter() - start


def by_postgres(recipe: Recipe, rows: Path) -> Found:
    (rows.parent / "model.sql").write_text(script(recipe), "utf-8")
    asked = f"""\\set ON_ERROR_STOP 1
SET client_min_messages = warning;
DROP VIEW IF EXISTS submerge_scores, submerge_check;
DROP TABLE IF EXISTS readings;
{made_table(recipe)};
\\copy readings from {rows} csv
\\i {rows.parent}/model.sql
\\pset format csv
\\pset null None
\\o {rows.parent}/version.csv
SHOW server_version;
\\o {rows.parent}/check.csv
SELECT * FROM submerge_check;
\\o {rows.parent}/scores.csv
SELECT * FROM submerge_scores;
"""  # noqa: S608
    start = time.perf_counter()
    subprocess.run(["psql", "-q", POSTGRES], input=asked, text=True, check=True)  # noqa: S603, S607
    spent = time.perf_counter() - start
    version, checked = (
        (rows.parent / f"{name}.csv").read_text("utf-8").splitlines()[1]
        for name in ("version", "check")
    )
    with (rows.parent / "scores.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    return f"PostgreSQL {version}", checked, table, spent


def compared(recipe: Recipe, expected: list[ExportResult], found: Found) -> tuple[object, ...]:
    """Return a line of the table."""
    version, checked, table, spent = found
    marks = alarms = over = blamed = 0
    worst = 0.0
    for result, row in zip(expected, table, strict=True):
        marks += row["status"] != STATUS[result.status]
        alarms += int(row["alarm"]) != int(result.alarm)
        if result.status:
            continue
        over += any(int(row[f"over_{kind}"]) != (kind in result.over) for kind in result.statistics)
        blamed += row["blame"] != (recipe.channels[result.blame] if result.blame >= 0 else "None")
        for kind, each in result.scores.items():
            worst = max(worst, abs(float(row[kind]) / each - 1))
    return version, checked, len(table), marks, over, alarms, blamed, worst, spent


def room(quick: bool) -> list[Table]:
    """Export one model, and run it in the databases that are here."""
    recipe = recipe_of(exported.plant(3_000 if quick else 20_000))
    rows = wild_rows(recipe, ROWS // (10 if quick else 1))
    expected = by_python(recipe, rows)
    runs: list[Callable[[Recipe, Path], Found]] = []
    if importlib.util.find_spec("duckdb"):
        runs.append(by_duckdb)
    if POSTGRES:
        runs.append(by_postgres)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([i, *row] for i, row in enumerate(rows.tolist()))
        lines = [compared(recipe, expected, run(recipe, path)) for run in runs]
    counts = ("rows", "other mark", "other limit", "other alarm", "other blame")
    columns = {"database": "", "golden rows, different": "", **dict.fromkeys(counts, ",")}
    columns |= {"worst score": ".1e", "seconds": ".1f"}
    scored = sum(not each.status for each in expected)
    alarmed = sum(each.alarm for each in expected)
    notes = (
        f"{scored:,} rows have scores, and in {alarmed:,} an alarm is open. Worst score: largest"
    )
    return [Table("SQL in other databases", columns, lines, f"{notes} relative error.")]


def agrees(tables: list[Table]) -> bool:
    """Whether all databases say the same."""
    return all(line[1] == "11,0" and not any(line[3:7]) for line in tables[0].rows)


if __name__ == "__main__":
    command(room, passes=agrees)

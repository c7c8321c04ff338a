"""SQL and ONNX exports, run on rows by sqlite3 and ONNX Runtime.

Used by tests/bridges/export and benchmarks/export.py, as `export_runs`, which has other languages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from submerge_bridges.export.onnx_graph.model import first_state, onnx_model
from submerge_bridges.export.recipe import Recipe
from submerge_bridges.export.sql.column_names import ColumnNames, identifier
from submerge_bridges.export.sql.script import STATUS, SqlNames, columns_of, script
from support.export_runs import ProgramRows


def table_of(rows: np.ndarray, columns: Sequence[str], *, kind: str = "REAL") -> sqlite3.Connection:
    """Return a database in memory with a table of readings; NaN is NULL."""
    held = sqlite3.connect(":memory:")
    declared = ", ".join(f"{identifier(name)} {kind}" for name in columns)
    held.execute(f'CREATE TABLE readings ("time" INTEGER, {declared})')
    places = ", ".join("?" * (len(columns) + 1))
    numbered = ((i, *row) for i, row in enumerate(rows.tolist()))
    held.executemany(f"INSERT INTO readings VALUES ({places})", numbered)  # noqa: S608
    held.commit()
    return held


def selected(held: sqlite3.Connection, query: str) -> dict[str, list[Any]]:
    """Return the columns of a query, by name."""
    cursor = held.execute(query)
    names = [each[0] for each in cursor.description]
    table = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
    return {name: list(column) for name, column in zip(names, table, strict=True)}


def run_sql(recipe: Recipe, rows: np.ndarray, _: Path | None = None) -> ProgramRows:
    """Run the SQL export with sqlite3; it checks itself."""
    columns = columns_of(recipe, SqlNames())
    held = table_of(rows, columns.columns)
    held.executescript(script(recipe))
    checked = held.execute("SELECT golden_rows, different FROM submerge_check").fetchall()
    if checked != [(11, 0)]:
        raise AssertionError(f"expected 11 golden rows, none of them different, got {checked}")
    return _of_view(recipe, selected(held, "SELECT * FROM submerge_scores"), columns)


def _of_view(recipe: Recipe, found: dict[str, list[Any]], columns: ColumnNames) -> ProgramRows:
    place = {name: j for j, name in enumerate(columns.columns)} | {None: -1}
    kinds = recipe.alarm.kinds

    def numbers(name: str) -> np.ndarray:
        return np.array(found[name], dtype=np.float64)

    return ProgramRows(
        np.array([STATUS.index(each) for each in found["status"]]),
        np.array(found["alarm"]),
        np.array([place[each] for each in found["blame"]]),
        {kind: np.array(found[f"over_{kind}"]) == 1 for kind in kinds},
        numbers("share"),
        numbers("deviation"),
        {kind: numbers(kind) for kind in recipe.computed},
        {kind: numbers(f"statistic_{kind}") for kind in kinds},
    )


def run_onnx(
    recipe: Recipe,
    rows: np.ndarray,
    _: Path | None = None,
    *,
    single: bool = False,
    cuts: Sequence[int] = (1, 7, 7, 1000),
) -> ProgramRows:
    """Run the ONNX export with ONNX Runtime; its writer has checked the golden rows.

    cuts : rows before which a new batch begins
    """
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1
    data = onnx_model(recipe, single=single)
    session = InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    state, parts = first_state(recipe, single=single), []
    with np.errstate(over="ignore"):
        read = rows.astype(np.float32) if single else rows
    for batch in np.split(read, [each for each in cuts if each <= len(rows)]):
        found = dict(zip(names, session.run(None, {"rows": batch, **state}), strict=True))
        state = {name: found[f"next_{name}"] for name in state}
        parts.append(found)
    joined = {
        name: np.concatenate([part[name] for part in parts])
        for name in names
        if not name.startswith("next_")
    }
    kinds = recipe.alarm.kinds
    return ProgramRows(
        *(joined[name] for name in ("status", "alarm", "blame")),
        {kind: joined[f"over_{kind}"] for kind in kinds},
        *(joined[name].astype(np.float64) for name in ("share", "deviation")),
        {kind: joined[kind].astype(np.float64) for kind in recipe.computed},
        {kind: joined[f"statistic_{kind}"].astype(np.float64) for kind in kinds},
    )

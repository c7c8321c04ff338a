"""An SQL export, run by sqlite3, says what the recipe says; no name of a channel does anything."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from submerge import UsageError
from submerge_bridges.export.exported_model import recipe_of
from submerge_bridges.export.interpreter import SCORED, ExportState, step
from submerge_bridges.export.recipe import AlarmRecipe, Recipe
from submerge_bridges.export.sql import scores
from submerge_bridges.export.sql.column_names import ColumnNames
from submerge_bridges.export.sql.expressions import chained, rounds
from submerge_bridges.export.sql.scores import bounds
from submerge_bridges.export.sql.script import SqlNames, column_notes, script
from support import exported, pump_files
from support.export_engines import run_sql, selected, table_of
from support.export_runs import statuses

SQLITE = shutil.which("sqlite3")

HOSTILE = (
    'a" FROM x; DROP TABLE canary; --',
    "b'; DROP TABLE canary; --",
    "c\n.shell rm -rf /\n\\! rm -rf /\n-- /*",
    "\0",
)


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return recipe_of(exported.pump())


def gappy_day() -> np.ndarray:
    rows = np.array(pump_files.bad_day())
    rows[[20, 150, 905, 906], [1, 1, 2, 0]] = np.nan
    rows[21, 0], rows[907, 3] = 1e300, -np.inf
    return rows


def test_it_says_what_the_recipe_says(recipe: Recipe):
    """Every result of a day with a fault, gaps and infinities; the average goes over its spans."""
    rows, state = gappy_day(), ExportState()
    program = run_sql(recipe, rows)

    for i, row in enumerate(rows):
        result, state = step(recipe, row, state)
        assert (result.status, result.alarm, result.blame) == (
            program.status[i],
            program.alarm[i],
            program.blame[i],
        )
        if result.status != SCORED:
            continue
        assert result.over == {kind for kind, each in program.over.items() if each[i]}
        numbers = {**result.scores, "share": result.shares[result.blame]}
        numbers |= {"deviation": result.deviation}
        found = {kind: each[i] for kind, each in program.scores.items()}
        found |= {"share": program.share[i], "deviation": program.deviation[i]}
        assert numbers == pytest.approx(found)
        statistics = {kind: each[i] for kind, each in program.statistics.items()}
        assert result.statistics == pytest.approx(statistics)
    assert program.alarm.any()


def test_rows_that_are_no_readings_are_marked(recipe: Recipe):
    """NaN, infinities and absurd numbers give the marks that the product gives."""
    rows = exported.fuzzed_rows(500, recipe.offset, recipe.scale)

    assert statuses(recipe, rows).tolist() == run_sql(recipe, rows).status.tolist()


def test_a_long_text_says_the_same(recipe: Recipe, monkeypatch):
    """Weights of large models are written so that SQLite does not take them for constants."""
    rows = gappy_day()[890:920]
    plain = run_sql(recipe, rows)
    monkeypatch.setattr(scores, "MANY", 0)
    long = run_sql(recipe, rows)

    assert "IS NOT NULL THEN" in script(recipe)
    for kind in recipe.computed:
        np.testing.assert_array_equal(plain.scores[kind], long.scores[kind])


def test_imported_text_is_read_as_numbers(recipe: Recipe):
    """The sqlite3 shell imports text: a number in it counts as one, and all else is a gap."""
    rows = pump_files.bad_day()[:40]
    numbers, text = (table_of(rows, recipe.channels, kind=kind) for kind in ("REAL", "TEXT"))
    found = []
    for held in (numbers, text):
        held.execute("UPDATE readings SET flow = ? WHERE time = 7", ("n/a",))
        held.executescript(script(recipe))
        found.append(selected(held, "SELECT * FROM submerge_scores"))

    assert found[0]["status"] == found[1]["status"]
    assert [7] == [i for i, each in enumerate(found[1]["status"]) if each == "gaps"]
    distances = [np.array(each["distance"], dtype=float) for each in found]
    # SQLite writes numbers as text of 15 digits.
    np.testing.assert_allclose(distances[0], distances[1], rtol=1e-9)


def test_a_missing_column_is_an_error(recipe: Recipe):
    """SQLite reads a quoted name without a column as text; that must not be scored."""
    held = table_of(pump_files.bad_day()[:3, :3], recipe.channels[:3])
    held.executescript(script(recipe))

    with pytest.raises(sqlite3.OperationalError, match=recipe.channels[3]):
        held.execute("SELECT * FROM submerge_scores")


def test_hostile_names_are_harmless(recipe: Recipe):
    """Quotes, line breaks, comments and shell commands stay names; a NUL gets another name."""
    hostile = replace(recipe, channels=HOSTILE, group="'; DROP TABLE canary; --\n")
    columns = ColumnNames.of(HOSTILE, ("time",))
    held = table_of(gappy_day()[890:920], columns.columns)
    held.execute("CREATE TABLE canary (x)")
    held.executescript(script(hostile))
    blamed = selected(held, "SELECT blame FROM submerge_scores")["blame"]

    assert [(11, 0)] == held.execute("SELECT * FROM submerge_check").fetchall()
    assert {*blamed} <= {*columns.columns, None}
    assert ((3, "channel_4"),) == columns.changed
    assert ["readings", "canary", "submerge_scores", "submerge_check"] == selected(
        held, "SELECT name FROM sqlite_master"
    )["name"]
    (note,) = column_notes(hostile, SqlNames())
    assert "channel 4 channel_4" in note


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(HOSTILE)


@given(st.lists(NAMES, min_size=4, max_size=4, unique=True))
@example(["x" * 65_536, "Flow", "flow", ""])
@example(["é", "É", "ß", "SS"])
@settings(max_examples=10)
def test_any_names_make_two_views_and_nothing_else(recipe: Recipe, names: list[str]):
    """Whatever channels are called, the text creates two views, and both can be read."""
    columns = ColumnNames.of(names, ("time",))
    held = table_of(pump_files.bad_day()[:2], columns.columns)
    held.executescript(script(replace(recipe, channels=tuple(names))))

    assert [(11, 0)] == held.execute("SELECT * FROM submerge_check").fetchall()
    assert 2 == len(held.execute("SELECT * FROM submerge_scores").fetchall())
    assert 3 == len(held.execute("SELECT name FROM sqlite_master").fetchall())


def test_names_of_the_table_are_quoted_or_refused(recipe: Recipe):
    """A table, its times and the views may have any name, but an empty one or one with a NUL."""
    with pytest.raises(UsageError, match="--table"):
        script(recipe, SqlNames(table="a\0"))
    with pytest.raises(UsageError, match="--time"):
        script(recipe, SqlNames(time=""))
    names = SqlNames('x"; --', "flow", "pump 3")
    held = table_of(pump_files.bad_day()[:2], recipe.channels)
    held.execute("ALTER TABLE readings RENAME COLUMN flow TO channel_1")
    held.execute("ALTER TABLE readings RENAME COLUMN time TO flow")
    held.execute('ALTER TABLE readings RENAME TO "x""; --"')
    held.executescript(script(recipe, names))

    assert 2 == len(held.execute('SELECT "flow" FROM "pump 3_scores"').fetchall())


def test_a_model_that_is_too_wide_is_refused(recipe: Recipe):
    """Databases limit the columns of a query."""
    wide = replace(recipe, channels=tuple(map(str, range(800))))

    with pytest.raises(UsageError, match="columns in SQL"):
        script(wide)


@pytest.mark.skipif(SQLITE is None, reason="there is no sqlite3 here")
def test_the_page_shows_commands_that_run(recipe: Recipe, tmp_path):
    """The commands of docs/export.md, on a day with a fault."""
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text("utf-8")
    (commands,) = (each for each in page.split("```") if "sqlite3 plant.db" in each)
    (tmp_path / "pump.sql").write_text(script(recipe), "utf-8")
    with sqlite3.connect(tmp_path / "plant.db") as held:
        table_of(gappy_day(), recipe.channels).backup(held)
    held.close()
    loaded, checked, alarms = (
        subprocess.run(shlex.split(line), cwd=tmp_path, capture_output=True, text=True, check=True)
        for line in commands.strip().splitlines()
    )

    assert ("", "11|0\n") == (loaded.stdout, checked.stdout)
    program = run_sql(recipe, gappy_day())
    assert int(program.alarm.sum()) == len(alarms.stdout.splitlines())


@pytest.mark.parametrize("kind", ["distance", "spe", "t2"])
def test_one_statistic(recipe: Recipe, kind: str):
    """A recipe of one score checks its golden rows, with or without alarms."""
    assert run_sql(recipe.only(kind), pump_files.bad_day()[:3]).status.tolist() == [SCORED] * 3
    bare = replace(recipe.only(kind), alarm=AlarmRecipe(), limits={})
    assert not run_sql(bare, pump_files.bad_day()[895:910]).alarm.any()


NUMBERS = st.floats(-1e6, 1e6)


@given(NUMBERS, st.floats(1e-9, 1e9), st.sampled_from([1e12, np.inf]))
@example(0.0, 5e-324, 1e12)
def test_bounds_are_the_last_numbers_that_fit(offset: float, scale: float, largest: float):
    """The next double beyond a bound is too large when scaled, and the bound itself is not."""
    for end, beyond in zip(bounds(offset, scale, largest), (-np.inf, np.inf), strict=True):
        with np.errstate(over="ignore"):
            assert abs((np.float64(end) - offset) / scale) < largest
            assert not abs((np.nextafter(end, beyond) - offset) / scale) < largest


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_rounds_find_the_first_of_the_largest(entrants: list[int]):
    """As `argmax` does, however many there are."""
    queries, winners = rounds({"b": [(f"x{i}", str(i)) for i in range(len(entrants))]}, ())
    first = ", ".join(f"{each} AS x{i}" for i, each in enumerate(entrants))
    with_ = f"WITH submerge_rows AS (SELECT 1 AS n, {first})"
    text = ",\n".join([with_, *([chained("rows", queries)] if queries else [])])
    last = queries[-1].name if queries else "rows"
    found = sqlite3.connect(":memory:").execute(
        f"{text} SELECT {winners['b'][1]} FROM submerge_{last}"  # noqa: S608
    )

    assert [(int(np.argmax(entrants)),)] == found.fetchall()

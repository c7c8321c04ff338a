"""An ONNX export, run by ONNX Runtime, says what the recipe says, wherever a stream is cut."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import SubmergeError, UsageError
from submerge_bridges.export import onnx_graph
from submerge_bridges.export.command import recipe_of
from submerge_bridges.export.interpreter import SCORED, ExportState, golden_rows, step
from submerge_bridges.export.onnx_graph import onnx_model
from submerge_bridges.export.recipe import AlarmRecipe, Recipe
from support import exported, pump_files
from support.export_engines import run_onnx
from support.export_runs import agreement, statuses

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def pump():
    return exported.pump()


@pytest.fixture(scope="module")
def recipe(pump) -> Recipe:
    return recipe_of(pump)


@pytest.mark.parametrize("cuts", [(), (0, 1, 2, 104, 104, 130)])
def test_it_says_what_the_recipe_says(recipe: Recipe, cuts: tuple[int, ...]):
    """Every result of a day with a fault and gaps, in one batch, and in several with empty ones."""
    rows, state = np.array(pump_files.bad_day()[800:1000]), ExportState()
    rows[[20, 105], [1, 2]], rows[107, 3] = np.nan, -np.inf
    program = run_onnx(recipe, rows, cuts=cuts)

    for i, row in enumerate(rows):
        result, state = step(recipe, row, state)
        assert (result.status, result.alarm, result.blame) == (
            program.status[i],
            program.alarm[i],
            program.blame[i],
        )
        if result.status != SCORED:
            assert np.isnan([each[i] for each in program.scores.values()]).all()
            continue
        assert result.over == {kind for kind, each in program.over.items() if each[i]}
        assert result.scores == pytest.approx({k: v[i] for k, v in program.scores.items()})
        assert result.statistics == pytest.approx({k: v[i] for k, v in program.statistics.items()})
        wanted = result.shares[result.blame], result.deviation
        assert wanted == pytest.approx((program.share[i], program.deviation[i]))
    assert program.alarm.any()


def test_in_float32_alarm_rows_are_the_same(pump, recipe: Recipe):
    """On rows as float32 holds them, up to a hundred-thousandth of a limit."""
    rows = pump_files.bad_day()[800:1000].astype(np.float32).astype(np.float64)
    product = exported.by_product(pump, recipe, rows)
    found = agreement(recipe, product, run_onnx(recipe, rows, single=True), within=1e-5)

    assert (0, 0, 0) == (found.differ, found.opened, found.blamed)
    assert found.alarms
    assert found.worst < 1e-4


@pytest.mark.parametrize("single", [False, True])
def test_rows_that_are_no_readings_are_marked(recipe: Recipe, single: bool):
    """NaN, infinities and absurd numbers give the marks that the product gives."""
    rows = exported.fuzzed_rows(500, recipe.offset, recipe.scale)
    with np.errstate(over="ignore"):
        read = rows.astype(np.float32).astype(np.float64) if single else rows

    assert statuses(recipe, read).tolist() == run_onnx(recipe, read, single=single).status.tolist()


@pytest.mark.parametrize("kind", ["distance", "spe", "t2"])
def test_one_statistic(recipe: Recipe, kind: str):
    """A recipe of one score runs, with or without alarms."""
    rows = pump_files.bad_day()[895:910]
    bare = replace(recipe.only(kind), alarm=AlarmRecipe(), limits={})

    assert [SCORED] * 15 == run_onnx(recipe.only(kind), rows).status.tolist()
    assert not run_onnx(bare, rows).alarm.any()


def test_names_are_data(recipe: Recipe):
    """Names of channels are in the properties, as they are, and name no node."""
    hostile = ('a"\n', "\0", "é" * 30_000, "../x")
    made = onnx.load_from_string(onnx_model(replace(recipe, channels=hostile)))
    properties = {each.key: each.value for each in made.metadata_props}

    assert list(hostile) == json.loads(properties["channels"])
    assert all(name.isascii() for node in made.graph.node for name in node.output)
    assert 11 == len(json.loads(properties["golden_rows"]))


def test_the_same_recipe_gives_the_same_bytes(recipe: Recipe):
    """So that two exports can be compared. A user finds who made the file at its beginning."""
    assert onnx_model(recipe) == onnx_model(recipe)
    assert onnx_graph.MADE_BY.encode() in onnx_model(recipe)[:1000]


def test_a_model_that_computes_otherwise_is_not_written(recipe: Recipe, monkeypatch):
    """The golden rows are checked before there is a file."""
    other = golden_rows(replace(recipe, excess=1.001))
    monkeypatch.setattr(onnx_graph, "golden_rows", lambda *_, **__: other)

    with pytest.raises(SubmergeError, match="distance of golden row 0"):
        onnx_model(recipe)


def test_without_the_package_the_extra_is_named(recipe: Recipe, monkeypatch):
    """One line says what to install."""
    monkeypatch.setitem(sys.modules, "onnx", None)

    with pytest.raises(UsageError, match="extra `onnx`"):
        onnx_model(recipe)


def test_the_page_shows_python_that_runs(recipe: Recipe, tmp_path, monkeypatch, capsys):
    """The example of docs/export.md: an alarm goes on from batch to batch."""
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text("utf-8")
    (code,) = (each for each in page.split("```") if each.startswith("python\n"))
    (tmp_path / "pump.onnx").write_bytes(onnx_model(recipe))
    monkeypatch.chdir(tmp_path)
    exec(compile(code.removeprefix("python\n"), "export.md", "exec"), {})  # noqa: S102

    said = capsys.readouterr().out
    assert (0, 20) == (said.count("False"), said.count("True"))
    assert 20 == said.count("'flow'")

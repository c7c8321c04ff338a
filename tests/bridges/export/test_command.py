"""`submerge model export`: what it writes, what it prints, and what it refuses."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import Channel, Schema
from submerge.features import Gaussian, RandomFourier
from submerge_bridges.export import recipe
from submerge_bridges.export.c_source import c_source
from submerge_bridges.export.command import recipe_of
from submerge_bridges.export.javascript import javascript
from submerge_client.config.plugins import plugin
from submerge_files import model_file
from support import exported, pump_files
from support.commands import shell


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of a pump, and one of two machines."""
    folder = tmp_path_factory.mktemp("export")
    model_file.save(folder / "pump.model", exported.pump().learnt)
    two = np.concatenate([pump_files.readings(2000), pump_files.readings(2000, 1, level=5.0)])
    both = exported.fitted(two, pump_files.NAMES, machines=2)
    model_file.save(folder / "two.model", both.learnt)
    return folder


@pytest.mark.parametrize("language", ["c", "js", "onnx"])
def test_each_language_says_who_made_it(house, language):
    """Only an exported file is written over, and it is known by its first bytes."""
    if language == "onnx":
        pytest.importorskip("onnx")
    saved = model_file.read(house / "pump.model")
    writer = plugin("submerge.exports", language)
    data = writer.write(recipe_of(saved), recipe.ExportOptions())

    assert recipe.MADE_BY.encode() in data[: recipe.HEAD]


def test_it_writes_the_program(submerge, house):
    """The file of the recipe, and a line on it."""
    made = recipe_of(model_file.read(house / "pump.model"))
    ran = submerge("model", "export", house / "pump.model", "--as", "c", "-o", house / "pump.c")

    assert (0, "") == (ran.status, ran.err)
    assert f"{house}/pump.c: c, 4 channels, {len(c_source(made)):,} bytes\n" == ran.out
    assert c_source(made) == (house / "pump.c").read_text()


def test_options_reach_the_program(submerge, house):
    """One statistic, in float, under another name, at another rate; and JSON for a script."""
    words = ["--as", "c", "--statistic", "distance", "--float32", "--prefix", "pump3"]
    words += ["--at-most", "1 false per day", "--json"]
    ran = submerge("model", "export", house / "pump.model", *words, "-o", house / "small.c")
    said, text = json.loads(ran.out), (house / "small.c").read_text()

    assert (["distance"], ["ewma"]) == (said["scores"], said["alarms_by"])
    assert "typedef float pump3_real" in text
    assert "limits     at most 1 false per day" in text
    weekly = recipe_of(model_file.read(house / "pump.model")).alarm.limits
    assert said["limits"]["ewma"] < weekly["ewma"]


def test_an_older_program_is_written_over_and_nothing_else(submerge, house):
    """A mistyped name must not destroy another file, or a model."""
    (house / "history.csv").write_text("time,flow\n")
    words = ["model", "export", house / "pump.model", "--as", "js", "-o"]

    assert [0, 0] == [submerge(*words, house / "again.mjs").status for _ in range(2)]
    for name in ("history.csv", "pump.model"):
        before = (house / name).read_bytes()
        ran = submerge(*words, house / name)
        assert (2, 1) == (ran.status, ran.err.count("\n"))
        assert "exists and is no exported model" in ran.err
        assert before == (house / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["two.model", "--as", "js", "-o", "x.mjs"], "its own mean"),
        (["two.model", "--as", "js", "-o", "x.mjs", "--machine", "m9"], "m0, m1"),
        (["pump.model", "--as", "js", "-o", "x.mjs", "--float32"], "--float32 has no effect"),
        (["pump.model", "--as", "js", "-o", "x.mjs", "--prefix", "p"], "--prefix has no effect"),
        (["pump.model", "--as", "c", "-o", "x.mjs", "--prefix", "3"], "expected --prefix"),
        (["pump.model", "--as", "c", "-o", "none/x.c"], "make it"),
        (["pump.model", "--as", "c", "-o", "x.mjs", "--at-most", "off"], "raises no alarms"),
        (["none.model", "--as", "c", "-o", "x.mjs"], "expected a saved model"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(submerge, house, monkeypatch, words, said):
    """Nothing is written."""
    monkeypatch.chdir(house)
    ran = submerge("model", "export", *words)

    assert (2, 1) == (ran.status, ran.err.count("\n"))
    assert said in ran.err
    assert not (house / "x.mjs").exists()


def test_a_machine_is_chosen(submerge, house):
    """Of a model in which each machine has its own mean."""
    saved = model_file.read(house / "two.model")
    words = ["--as", "js", "-o", house / "m1.mjs", "--machine", "m1"]

    assert 0 == submerge("model", "export", house / "two.model", *words).status
    assert javascript(recipe_of(saved, machine="m1")) == (house / "m1.mjs").read_text()


def test_a_kernel_and_lags_are_refused(house):
    """In one line that says what takes them."""
    saved = model_file.read(house / "pump.model")
    lagged = Schema(tuple(map(Channel, ("flow", "speed", "flow-1", "speed-1"))))
    kernel = replace(saved.schema, features=RandomFourier(Gaussian(0.5), 8, seed=0))
    for schema, what in ((lagged, "lags"), (kernel, "a kernel")):
        with pytest.raises(Exception, match=f"got one with {what}.*`submerge score` takes it"):
            recipe_of(saved._replace(schema=schema))


def test_an_option_of_another_language_is_refused(submerge, house):
    """It would have no effect."""
    to = ["-o", house / "pump.onnx", "--prefix", "p3"]
    refused = submerge("model", "export", house / "pump.model", "--as", "onnx", *to)

    assert 2 == refused.status
    assert "--prefix has no effect on --as onnx" in refused.err


def test_the_query_of_the_page_gives_the_scores_of_its_model():
    """In sqlite3, as `submerge.spe` does: SPE of each row, and the channel to blame."""
    page = (Path(__file__).parents[3] / "docs" / "export.md").read_text("utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    mean, (*direction,) = np.array([40.2, 9.3, 13.6]), (0.85, 0.43, 0.30)
    rows = mean + np.random.default_rng(0).normal(size=(50, 3))
    with closing(sqlite3.connect(":memory:")) as held:
        held.execute("CREATE TABLE readings (time, flow, pressure, current)")
        each = [(i, *row) for i, row in enumerate(rows.tolist())]
        held.executemany("INSERT INTO readings VALUES (?, ?, ?, ?)", each)
        found = held.execute(query).fetchall()
    along = np.outer((rows - mean) @ direction, direction)
    off = (rows - mean - along) ** 2
    names = np.array(["flow", "pressure", "current"])

    assert 30 < len(found) < 50
    for time, spe, blame in found:
        assert off[time].sum() == pytest.approx(spe, rel=1e-9)
        assert names[off[time].argmax()] == blame
    assert [i for i, each in enumerate(off.sum(axis=1)) if each > 0.4] == [
        each[0] for each in found
    ]

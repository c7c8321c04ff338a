"""Exported programs, run by gcc and node: they say of rows what the product says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import UsageError
from submerge_bridges.export.c_source import c_source
from submerge_bridges.export.command import recipe_of
from submerge_bridges.export.javascript import javascript
from submerge_bridges.export.recipe import Recipe
from submerge_files.model_file import SavedModel
from support import exported, pump_files
from support.export_runs import (
    GCC,
    NODE,
    SANITIZERS,
    STRICT,
    ProgramRows,
    agreement,
    run_c,
    run_in_node,
    run_js,
    sizes,
    statuses,
)
from support.hostile_names import HOSTILE

DOCS = (Path(__file__).parents[3] / "docs" / "export.md").read_text("utf-8")

needs_gcc = pytest.mark.skipif(GCC is None, reason="needs gcc")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")

ODD = '*/ int x; /*|??/|a??/\nb|"|\\|%n%s|__proto__|constructor|flow|FLOW|f-1a|\u00e9|\U0001f600|'
NAMES = (*HOSTILE.values(), *ODD.split("|"), "\0", "x" * 600)
"""Names that would do something where they are not written with care."""


LISTING = r"""
#define SUBMERGE_DECLARATIONS
#include "model.c"
#include <stdio.h>
#include <string.h>
int main(void)
{
    int i;
    for (i = 0; i < SUBMERGE_CHANNELS; i++)
        fwrite(submerge_channels[i], strlen(submerge_channels[i]) + 1, 1, stdout);
    return 0;
}
"""

FUNCTION_NODE = """
const run = new Function("msg", "context", NODE), kept = {};
const context = {
  get: (key) => kept[key],
  set: (key, value) => { kept[key] = JSON.parse(JSON.stringify(value)); },
};
console.log(JSON.stringify(READINGS.map((payload) => run({ payload }, context).payload.alarm)));
"""
"""What Node-RED does with a function node and its context."""


@pytest.fixture(scope="module")
def pump() -> SavedModel:
    return exported.pump()


@pytest.fixture(scope="module")
def recipe(pump: SavedModel) -> Recipe:
    return recipe_of(pump)


def run_float(recipe: Recipe, rows: np.ndarray, folder: Path) -> ProgramRows:
    return run_c(recipe, rows, folder, single=True)


RUNS = [
    pytest.param(run_c, 1e-9, marks=[needs_gcc, pytest.mark.slow], id="c"),
    pytest.param(run_float, 1e-5, marks=[needs_gcc, pytest.mark.slow], id="c-float"),
    pytest.param(run_js, 1e-9, marks=[needs_node, pytest.mark.slow], id="js"),
]


def rounded(rows: np.ndarray, within: float) -> np.ndarray:
    """Return rows as the program reads them."""
    with np.errstate(over="ignore"):
        return rows.astype(np.float32).astype(np.float64) if within > 1e-9 else rows


@pytest.mark.parametrize(("run", "within"), RUNS)
def test_alarm_rows_are_those_of_the_product(pump, recipe, run, within, tmp_path):
    """Statistics over their limits, open alarms and channels to blame, on a day with a fault."""
    rows = rounded(pump_files.bad_day(), within)
    found = agreement(recipe, exported.by_product(pump, recipe, rows), run(recipe, rows, tmp_path),
                      within=within)  # fmt: skip

    assert (1440, 0, 0, 0) == (found.scored, found.differ, found.opened, found.blamed)
    assert found.alarms > 90
    assert found.worst < 100 * within


@pytest.mark.parametrize(("run", "within"), RUNS)
def test_a_row_on_its_limit_is_counted(pump, recipe, run, within, tmp_path):
    """A limit that is a row's own statistic: whatever a program says there, it is near."""
    rows = rounded(pump_files.bad_day()[840:860], within)
    free = replace(recipe, alarm=replace(recipe.alarm, limits={}))
    limit = float(exported.by_product(pump, free, rows).statistics["ewma"][10])
    alarm = replace(recipe.alarm, limits={"ewma": limit}, calm={"ewma": limit / 2})
    on_it = replace(recipe, alarm=alarm)
    found = agreement(on_it, exported.by_product(pump, on_it, rows), run(on_it, rows, tmp_path),
                      within=within)  # fmt: skip

    assert (0, True) == (found.differ, found.near >= 1)


@pytest.mark.parametrize(
    ("run", "within"),
    [
        pytest.param(
            lambda recipe, rows, folder: run_c(recipe, rows, folder, flags=SANITIZERS),
            1e-9,
            marks=[needs_gcc, pytest.mark.slow],
            id="c",
        ),
        pytest.param(
            lambda recipe, rows, folder: run_c(recipe, rows, folder, single=True, flags=SANITIZERS),
            1e-5,
            marks=[needs_gcc, pytest.mark.slow],
            id="c-float",
        ),
        pytest.param(run_js, 1e-9, marks=[needs_node, pytest.mark.slow], id="js"),
    ],
)
def test_rows_that_are_no_readings_are_marked(recipe, run, within, tmp_path):
    """NaN, infinities and numbers beyond all sense, under sanitizers: marks, and no crash."""
    rows = rounded(exported.fuzzed_rows(1000, recipe.offset, recipe.scale), within)
    found = run(recipe, rows, tmp_path)

    assert statuses(recipe, rows).tolist() == found.status.tolist()
    assert {0, 1, 2} == set(found.status)
    assert all(np.isfinite(each).all() for each in found.scores.values())


def with_names(recipe: Recipe, names: tuple[str, ...]) -> Recipe:
    """Return a recipe of as many channels as there are names, its own again and again."""
    pick = np.arange(len(names)) % recipe.dim
    fields = ("offset", "scale", "mean", "inverse_roots", "loadings", "basis", "error_weights",
              "blame_weights", "channel_weights")  # fmt: skip
    parts = {name: getattr(recipe, name)[pick] for name in fields}
    return replace(recipe, group=names[0], channels=names, units=names, **parts)


@needs_gcc
@pytest.mark.slow
def test_c_compiles_whatever_channels_are_called(recipe, tmp_path):
    """Without a warning of the strictest compiler, and each name is there, byte by byte."""
    named = with_names(recipe, NAMES)
    run_c(named, np.zeros((1, len(NAMES))), tmp_path, flags=SANITIZERS)
    (tmp_path / "names.c").write_text(LISTING)
    words = [str(GCC), *STRICT, "-trigraphs", "names.c", "model.c", "-o", "names"]
    subprocess.run(words, cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "names"], check=True, stdout=subprocess.PIPE).stdout

    # A C string ends at the first NUL.
    assert [name.encode().partition(b"\0")[0] for name in NAMES] == found.split(b"\0")[:-1]


@needs_node
@pytest.mark.slow
def test_javascript_has_every_name_as_it_is(recipe, tmp_path):
    """Nothing of a name is run, and an object of readings finds its channels by name."""
    (tmp_path / "model.mjs").write_text(javascript(with_names(recipe, NAMES)), "ascii")
    found = run_in_node(
        'import { model, rowOf, selfTest } from "./model.mjs";\n'
        "const names = model.channels;\n"
        "const read = Object.fromEntries(names.map((name, i) => [name, i]));\n"
        "console.log(JSON.stringify([selfTest(), names, rowOf(read), rowOf({}), rowOf(null)]));",
        tmp_path,
    )

    none = [None] * len(NAMES)
    assert [0, list(NAMES), list(range(len(NAMES))), none, none] == found
    text = javascript(with_names(recipe, NAMES))
    assert "<" not in text.partition("MODEL = ")[2].partition("\n")[0]


def test_the_same_recipe_gives_the_same_bytes(recipe):
    """Files can be compared, and kept in a repository."""
    assert c_source(recipe) == c_source(recipe)
    assert javascript(recipe) == javascript(recipe)


def test_prefixes_are_names(recipe):
    """A prefix that is no beginning of a name is refused in one line."""
    assert "pump3_score(" in c_source(recipe, prefix="pump3")
    for prefix in ("3pump", "", "pump-3", "a" * 40, "x*/"):
        with pytest.raises(UsageError, match="expected --prefix"):
            c_source(recipe, prefix=prefix)


def test_a_name_of_the_model_is_not_renamed_with_the_prefix(recipe):
    """The prefix replaces what the program is called by, and not what a channel is called."""
    names = tuple(f"submerge_{i}" for i in range(recipe.dim))

    assert '"submerge_1"' in c_source(replace(recipe, channels=names), prefix="pump3")


def test_a_number_that_does_not_fit_float_is_refused(recipe):
    """In one line that says what to leave out."""
    huge = replace(recipe, t2_weights=recipe.t2_weights * 1e60)
    tiny = replace(recipe, scale=recipe.scale * 1e-60)
    for each in (huge, tiny):
        with pytest.raises(UsageError, match="leave --float32 out"):
            c_source(each, single=True)


@needs_gcc
@pytest.mark.slow
def test_one_statistic_fits_a_microcontroller(tmp_path):
    """At most 4 kB of code for one statistic of 54 channels and 8 directions; and no library."""
    recipe = recipe_of(exported.plant(2_000))
    assert (54, 8) == recipe.basis.shape

    for kind in recipe.scores:
        found = sizes(c_source(recipe.only(kind)), tmp_path)
        assert 0 < found["code"] <= 4096
        words = [str(shutil.which("nm")), "-u", "sized.o"]
        needs = subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.PIPE).stdout
        assert b"" == needs


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spe", "t2"])
def test_a_program_of_one_score_runs(pump, recipe, kind, tmp_path):
    """Without alarm limits it scores, blames, and raises no alarm."""
    rows, part = pump_files.bad_day()[830:850], recipe.only(kind)
    found = run_c(part, rows, tmp_path)
    product = exported.by_product(pump, recipe, rows)

    np.testing.assert_allclose(found.scores[kind], product.scores.even[kind], rtol=1e-9)
    assert product.scores.blame().argmax(axis=1).tolist() == found.blame.tolist()
    assert not found.alarm.any()


def block(language: str, containing: str) -> str:
    """Return a block of code of the page."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    (found,) = [text for kind, text in blocks if kind == language and containing in text]
    return found


@needs_gcc
@pytest.mark.slow
def test_the_page_shows_c_that_runs(recipe, tmp_path):
    """The example of docs/export.md, by its own commands."""
    (tmp_path / "pump.c").write_text(c_source(recipe))
    (tmp_path / "main.c").write_text(block("c", "int main"))
    for line in block("", "gcc -std").splitlines():
        subprocess.run(line.split(), cwd=tmp_path, check=True)
    found = subprocess.run([tmp_path / "main"], check=True, stdout=subprocess.PIPE, text=True)

    assert re.fullmatch(r"distance \d+\.\d, alarm 1, blame flow\n", found.stdout)


@needs_node
@pytest.mark.slow
def test_the_page_shows_javascript_that_runs(recipe, tmp_path):
    """The module in Node.js, and its text in a function node of Node-RED."""
    (tmp_path / "pump.mjs").write_text(javascript(recipe))
    found = run_in_node(block("js", "import"), tmp_path)
    assert {"status": "scored", "alarm": True, "blame": "flow"} == found

    node = javascript(recipe).rstrip().rpartition("\n")[0] + "\n" + block("js", "msg.payload")
    rows = pump_files.bad_day()[835:850].tolist()
    readings = [dict(zip(recipe.channels, row, strict=True)) for row in rows]
    script = f"const NODE = {json.dumps(node)}, READINGS = {json.dumps(readings)};{FUNCTION_NODE}"
    expected = run_js(recipe, np.array(rows), tmp_path).alarm.astype(bool).tolist()
    assert True in expected
    assert expected == run_in_node(script, tmp_path)


def odd_machines() -> dict[str, np.ndarray]:
    """Rows of machines in which a number may get out of hand."""
    rng, pump = np.random.default_rng(1), pump_files.readings(4000)
    stuck = pump.copy()
    stuck[:, 1] = 7.0
    return {
        "one channel, far from 0": 1e5 + 3 * rng.normal(size=(4000, 1)),
        "channels that say nothing of each other": rng.normal(size=(4000, 3)),
        "a channel that stands still": stuck,
        "a channel that is a copy, far from 0": np.column_stack([pump, 1e6 + 2 * pump[:, 0]]),
        "few rows": pump[:60],
    }


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("what", odd_machines())
@pytest.mark.parametrize("single", [False, True])
def test_odd_machines_have_the_same_alarms(what, single, tmp_path):
    """What factors leave of a channel is a small difference of large numbers, also in float.

    A program does not know by what step a channel moves that stood still, and blames it more.
    """
    rows = odd_machines()[what]
    saved = exported.fitted(rows, tuple(f"c{i}" for i in range(rows.shape[1])))
    recipe, rng = recipe_of(saved), np.random.default_rng(2)
    wild = np.concatenate([rows[:200], rows[:50] + rows.std() * rng.normal(size=rows[:50].shape)])
    wild = rounded(wild, 1e-5 if single else 1e-9)
    found = agreement(recipe, exported.by_product(saved, recipe, wild),
                      run_c(recipe, wild, tmp_path, single=single),
                      within=1e-5 if single else 1e-9)  # fmt: skip

    assert (0, 0) == (found.differ, found.opened)
    assert found.blamed == 0 or what == "a channel that stands still"

"""Exported models beside the product: the same alarm rows, sizes, and rows that are no readings.

A model of 54 channels and 8 directions is exported in each language, and run on rows with faults by
what runs that language (gcc, node, ONNX Runtime). Alarm rows are those at which a
statistic is over its limit. They have to be the product's, except where a statistic is within 1e-9
of its limit (in float32: 1e-5), relative to it; these are counted. Each program checks its golden
rows first.

The fuzz replaces readings by NaN, infinities and numbers beyond all sense, and asks for the marks
that the product gives; C runs under AddressSanitizer and UndefinedBehaviorSanitizer.
"""

import blas  # noqa: F401, I001 (before numpy: it sets one thread)

import sys
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from report import Table, command
from submerge_bridges.export.c_source import c_source
from submerge_bridges.export.command import recipe_of
from submerge_bridges.export.javascript import javascript
from submerge_bridges.export.onnx_graph import onnx_model
from submerge_bridges.export.recipe import Recipe
from submerge_files.model_file import SavedModel

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import exported
from support.export_engines import run_onnx
from support.export_runs import (
    SANITIZERS,
    ProgramRows,
    agreement,
    run_c,
    run_js,
    sizes,
    statuses,
)

ROWS, FUZZED = 100_000, 10_000

Run = Callable[[Recipe, np.ndarray, Path], ProgramRows]


@dataclass(frozen=True)
class Contender:
    """One way to run an exported model.

    within : how near to its limit a statistic may be for another answer, relative
    size : bytes of the exported file
    fuzz : how it is run on rows that are no readings
    """

    name: str
    run: Run
    size: Callable[[Recipe], int]
    fuzz: Run
    within: float = 1e-9
    single: bool = False


onnx_in_float = partial(run_onnx, single=True)
CONTENDERS = [
    Contender(
        "C, double", run_c, lambda each: len(c_source(each)), partial(run_c, flags=SANITIZERS)
    ),
    Contender(
        "C, float",
        partial(run_c, single=True),
        lambda recipe: len(c_source(recipe, single=True)),
        partial(run_c, single=True, flags=SANITIZERS),
        within=1e-5,
        single=True,
    ),
    Contender("JavaScript", run_js, lambda recipe: len(javascript(recipe)), run_js),
    Contender("ONNX, double", run_onnx, lambda recipe: len(onnx_model(recipe)), run_onnx),
    Contender(
        "ONNX, float",
        onnx_in_float,
        lambda recipe: len(onnx_model(recipe, single=True)),
        onnx_in_float,
        within=1e-5,
        single=True,
    ),
]


def as_read(rows: np.ndarray, contender: Contender) -> np.ndarray:
    """Return rows as the program gets them."""
    with np.errstate(over="ignore"):
        return rows.astype(np.float32).astype(np.float64) if contender.single else rows


def alarm_rows(saved: SavedModel, recipe: Recipe, folder: Path, n: int) -> Table:
    """Compare alarm rows, row by row."""
    rows, lines = exported.plant_rows(n, 7, faults=n // 500), []
    for contender in CONTENDERS:
        read = as_read(rows, contender)
        product = exported.by_product(saved, recipe, read)
        program = contender.run(recipe, read, folder)
        found = agreement(recipe, product, program, within=contender.within)
        lines.append(
            (
                contender.name,
                contender.size(recipe),
                found.scored,
                found.alarms,
                found.near,
                found.differ,
                found.opened,
                int((program.alarm.astype(bool) != exported.by_detect(saved, read)).sum()),
                found.blamed,
                found.worst,
            )
        )
    counts = (
        "rows",
        "alarm rows",
        "near a limit",
        "differ",
        "open otherwise",
        "than detect",
        "other blame",
    )
    columns = {"program": "", "bytes": ",", **dict.fromkeys(counts, ","), "worst number": ".1e"}
    notes = (
        "Near a limit: within 1e-9 of it (float: 1e-5). Open otherwise: rows at which an alarm is"
        " open for one alone, by the product's statistics; than detect: by `submerge detect`, which"
        " goes on learning typical errors. Worst number: largest relative error of a score or"
        " statistic."
    )
    return Table(f"Alarm rows on {n:,} rows", columns, lines, notes)


def fuzz(recipe: Recipe, folder: Path, n: int) -> Table:
    """Count the marks of rows that are no readings."""
    rows, lines = exported.fuzzed_rows(n, recipe.offset, recipe.scale), []
    for contender in CONTENDERS:
        read = as_read(rows, contender)
        expected = statuses(recipe, read)
        status = contender.fuzz(recipe, read, folder).status
        counts = [int((status == each).sum()) for each in range(3)]
        lines.append((contender.name, *counts, int((status != expected).sum())))
    columns = {"program": "", "scored": ",", "gaps": ",", "too large": ",", "other mark": ","}
    return Table(f"Marks on {n:,} rows with infinities and NaN", columns, lines)


def c_sizes(recipe: Recipe, folder: Path) -> Table:
    """Measure the C programs of one score each, and of all."""
    lines = []
    for kind in (*recipe.scores, "all"):
        part = recipe if kind == "all" else recipe.only(kind)
        for single in (False, True):
            source = c_source(part, single=single)
            bare = sizes(source, folder, "-DSUBMERGE_NO_SELFTEST")
            whole = sizes(source, folder)
            word = "float" if single else "double"
            lines.append((kind, word, bare["code"], bare["data"], whole["code"], whole["data"]))
    columns = {"score": "", "in": ""} | dict.fromkeys(
        ("code", "data", "code with self-test", "data with self-test"), ","
    )
    notes = "Bytes by `gcc -Os` and `size -A`, x86-64: .text*, and .rodata* with .data*."
    dims = f"d = {recipe.dim}, {recipe.basis.shape[1]} directions, {recipe.loadings.shape[1]}"
    return Table(f"C programs, {dims} columns of loadings", columns, lines, notes)


def arm_sizes(recipe: Recipe, folder: Path) -> list[Table]:
    """Measure the C programs of one score each for microcontrollers, if there is a compiler."""
    gcc = shutil.which("arm-none-eabi-gcc")
    if gcc is None:
        return []
    lines = []
    for core in ("cortex-m0", "cortex-m4"):
        for single in (False, True):
            for kind in recipe.scores:
                source = c_source(recipe.only(kind), single=single)
                flags = (f"-mcpu={core}", "-mthumb", "-DSUBMERGE_NO_SELFTEST")
                bare = sizes(source, folder, *flags, gcc=gcc)
                word = "float" if single else "double"
                lines.append((core, kind, word, bare["code"], bare["data"]))
    columns = {"core": "", "score": "", "in": "", "code": ",", "data": ","}
    notes = "Bytes by `arm-none-eabi-gcc -mthumb -Os`, without the self-test. Compiled, not run."
    return [Table("C programs for microcontrollers", columns, lines, notes)]


def room(quick: bool) -> list[Table]:
    """Export one model, and run all programs."""
    saved = exported.plant(3_000 if quick else 20_000)
    recipe = recipe_of(saved)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            alarm_rows(saved, recipe, folder, ROWS // (10 if quick else 1)),
            fuzz(recipe, folder, FUZZED // (10 if quick else 1)),
            c_sizes(recipe, folder),
            *arm_sizes(recipe, folder),
        ]


def agrees(tables: list[Table]) -> bool:
    """Whether no row differs, none has another mark, and one score is at most 4 kB of code."""
    rows, marks, programs = tables
    alike = all(line[5] == 0 for line in rows.rows) and all(line[4] == 0 for line in marks.rows)
    small = all(line[2] <= 4096 for line in programs.rows if line[0] != "all")  # type: ignore[operator]
    return alike and small


if __name__ == "__main__":
    command(room, passes=agrees)

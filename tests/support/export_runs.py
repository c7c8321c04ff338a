"""Exported programs, run on rows by their own compilers and interpreters; and how they agree.

Used by tests/bridges/export and benchmarks/export.py. Each `run_*` takes a recipe and rows, and
returns a `ProgramRows`; `agreement` compares it with what the product says.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from submerge.judge.prepare import GAPS as GAPS_WHY
from submerge.judge.prepare import TOO_LARGE as LARGE_WHY
from submerge.judge.prepare import prepare
from submerge.schema import Scaling, Schema
from submerge_bridges.export.c_source import c_source
from submerge_bridges.export.interpreter import GAPS, SCORED, TOO_LARGE
from submerge_bridges.export.javascript import javascript
from submerge_bridges.export.recipe import Recipe
from support.exported import ByProduct

GCC = shutil.which("gcc")
NODE = shutil.which("node")
SIZE = shutil.which("size")

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

MAIN = r"""
#define SUBMERGE_DECLARATIONS
#include "model.c"
#include <stdio.h>
#include <string.h>
int main(void)
{
    static double in[SUBMERGE_CHANNELS];
    static submerge_real row[SUBMERGE_CHANNELS];
    submerge_state state = {{{0}}, 0, 0, 0};
    submerge_result found;
    int j, failed = submerge_selftest();
    if (failed) {
        fprintf(stderr, "golden row %d failed\n", failed);
        return 1;
    }
    for (j = 0; j < 256; j++) { /* a damaged state is no reason to crash */
        memset(&state, j, sizeof state);
        submerge_score(row, &state, &found);
    }
    memset(&state, 0, sizeof state);
    while (fread(in, sizeof in, 1, stdin) == 1) {
        double out[6 + SUBMERGE_SCORES + SUBMERGE_STATISTICS];
        for (j = 0; j < SUBMERGE_CHANNELS; j++)
            row[j] = (submerge_real)in[j];
        submerge_score(row, &state, &found);
        out[0] = found.status;
        out[1] = found.alarm;
        out[2] = found.over;
        out[3] = found.blame;
        out[4] = found.share;
        out[5] = found.deviation;
        for (j = 0; j < SUBMERGE_SCORES; j++)
            out[6 + j] = found.scores[j];
        for (j = 0; j < SUBMERGE_STATISTICS; j++)
            out[6 + SUBMERGE_SCORES + j] = found.statistics[j];
        fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
"""

MODULE = r"""
import { readFileSync, writeFileSync } from "node:fs";
import { model, selfTest, step } from "./model.mjs";
const failed = selfTest();
if (failed) throw new Error(`golden row ${failed} failed`);
const bytes = readFileSync("rows.bin"), d = model.channels.length;
const all = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
const kinds = Object.keys(model.limits), out = [];
let state;
for (let i = 0; i < all.length; i += d) {
  const after = step(Array.from(all.subarray(i, i + d)), state), found = after.result;
  state = after.state;
  const over = (found.over ?? []).reduce((bits, kind) => bits | (1 << kinds.indexOf(kind)), 0);
  out.push(["scored", "gaps", "too large"].indexOf(found.status), Number(found.alarm), over,
    found.blame == null ? -1 : model.channels.indexOf(found.blame), found.share ?? 0,
    found.deviation ?? 0, ...model.scores.map((kind) => found.scores?.[kind] ?? 0),
    ...kinds.map((kind) => found.statistics?.[kind] ?? 0));
}
writeFileSync("found.bin", Buffer.from(new Float64Array(out).buffer));
"""


@dataclass(frozen=True)
class ProgramRows:
    """What a program says of n rows.

    status, alarm, blame : (n,) of int
    over : by kind, (n,) of bool
    share, deviation : (n,)
    scores, statistics : by kind, (n,)
    """

    status: np.ndarray
    alarm: np.ndarray
    blame: np.ndarray
    over: dict[str, np.ndarray]
    share: np.ndarray
    deviation: np.ndarray
    scores: dict[str, np.ndarray]
    statistics: dict[str, np.ndarray]

    @classmethod
    def of_bytes(cls, data: bytes, recipe: Recipe) -> ProgramRows:
        """Read the numbers that the programs above write."""
        scores, kinds = recipe.computed, recipe.alarm.kinds
        table = np.frombuffer(data).reshape(-1, 6 + len(scores) + len(kinds)).T
        status, alarm, over, blame = table[:4].astype(int)
        return cls(
            *(status, alarm, blame),
            {kind: (over >> i & 1).astype(bool) for i, kind in enumerate(kinds)},
            *table[4:6],
            dict(zip(scores, table[6:], strict=False)),
            dict(zip(kinds, table[6 + len(scores) :], strict=True)),
        )


def run_c(
    recipe: Recipe,
    rows: np.ndarray,
    folder: Path,
    *,
    single: bool = False,
    flags: Sequence[str] = ("-O2",),
) -> ProgramRows:
    """Compile the C export with gcc and its strictest warnings, and run it; it checks itself."""
    (folder / "model.c").write_text(c_source(recipe, single=single), "ascii")
    (folder / "main.c").write_text(MAIN, "ascii")
    words = [str(GCC), *STRICT, *flags, "main.c", "model.c", "-o", "scorer"]
    subprocess.run(words, cwd=folder, check=True)
    found = subprocess.run(
        [str(folder / "scorer")], input=rows.tobytes(), stdout=subprocess.PIPE, check=True
    )
    return ProgramRows.of_bytes(found.stdout, recipe)


def run_js(recipe: Recipe, rows: np.ndarray, folder: Path) -> ProgramRows:
    """Run the JavaScript export with node; it checks itself."""
    (folder / "model.mjs").write_text(javascript(recipe), "ascii")
    (folder / "main.mjs").write_text(MODULE, "ascii")
    (folder / "rows.bin").write_bytes(rows.tobytes())
    subprocess.run([str(NODE), "main.mjs"], cwd=folder, check=True)
    return ProgramRows.of_bytes((folder / "found.bin").read_bytes(), recipe)


def run_in_node(code: str, folder: Path) -> object:
    """Run a script with node, and return what it prints as JSON."""
    words = [str(NODE), "--input-type=module", "-e", code]
    found = subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE)
    return json.loads(found.stdout)


def sizes(source: str, folder: Path, *flags: str, gcc: str = str(GCC)) -> dict[str, int]:
    """Return the bytes of code and of constant data of a C export, compiled for size."""
    (folder / "sized.c").write_text(source, "ascii")
    words = [gcc, *STRICT, "-Os", *flags, "-c", "sized.c", "-o", "sized.o"]
    subprocess.run(words, cwd=folder, check=True)
    found = subprocess.run(
        [str(SIZE), "-A", "sized.o"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    parts = {"code": 0, "data": 0}
    for name, size in re.findall(r"^\.(\S+)\s+(\d+)", found.stdout, re.MULTILINE):
        if name.startswith("text"):
            parts["code"] += int(size)
        elif name.startswith(("rodata", "data", "bss")):
            parts["data"] += int(size)
    return parts


@dataclass(frozen=True)
class ExportAgreement:
    """How a program's alarm rows agree with the product's.

    rows, scored : rows, and those with scores
    alarms : rows at which a statistic is over its limit, by the product
    near : rows at which a statistic is within the tolerance of its limit
    differ : rows with another answer that are not near
    opened : rows at which the program says otherwise whether an alarm is open
    blamed : rows over a limit at which another channel is to blame
    worst : largest relative difference of a score or a statistic
    """

    rows: int
    scored: int
    alarms: int
    near: int
    differ: int
    opened: int
    blamed: int
    worst: float


def agreement(
    recipe: Recipe, product: ByProduct, program: ProgramRows, *, within: float
) -> ExportAgreement:
    """Compare a program with the product, on the rows that both score."""
    which, n = product.which, len(program.status)
    scored = program.status == 0
    misread = int((~np.isin(np.flatnonzero(scored), which)).sum() + (~scored[which]).sum())
    alarmed, near, differ = (np.zeros(len(which), dtype=bool) for _ in range(3))
    for kind, limit in recipe.alarm.limits.items():
        each = product.statistics[kind]
        over = each > limit
        alarmed |= over
        close = np.abs(each - limit) <= within * limit
        near |= close
        differ |= (over != program.over[kind][which]) & ~close
    pairs = [
        *((program.scores[kind], product.scores.even[kind]) for kind in recipe.computed),
        *((program.statistics[kind], product.statistics[kind]) for kind in recipe.alarm.kinds),
    ]
    worst = max(
        float(np.max(np.abs(found[which] - each) / np.where(each, np.abs(each), 1.0)))
        for found, each in pairs
    )
    blame = product.scores.blame().argmax(axis=1)
    return ExportAgreement(
        n,
        len(which),
        int(alarmed.sum()),
        int(near.sum()),
        int(differ.sum()) + misread,
        int((open_by_product(recipe, product) != program.alarm[which].astype(bool)).sum()),
        int((alarmed & (blame != program.blame[which])).sum()),
        worst,
    )


def open_by_product(recipe: Recipe, product: ByProduct) -> np.ndarray:
    """Return at which rows an alarm is open, (m,), by the product's statistics."""
    limits, calm = recipe.alarm.limits, recipe.alarm.calm
    over, high = np.zeros((2, len(product.which)), dtype=bool)
    for kind in limits:
        over |= product.statistics[kind] > limits[kind]
        high |= product.statistics[kind] > calm[kind]
    found, is_open, last = np.zeros(len(over), dtype=bool), False, 0
    for i, (begins, stays) in enumerate(zip(over.tolist(), high.tolist(), strict=True)):
        last = i if stays else last
        is_open = begins or (is_open and i - last < recipe.alarm.ends_after)
        found[i] = is_open
    return found


def statuses(recipe: Recipe, rows: np.ndarray) -> np.ndarray:
    """Return the status that the product gives to each row if it fills no gap."""
    scaling = Scaling(tuple(recipe.offset.tolist()), tuple(recipe.scale.tolist()))
    schema = Schema(recipe.dim, scaling=scaling)
    with np.errstate(over="ignore", invalid="ignore"):
        why = prepare(rows, schema, fill=None).why
    marks = {0: SCORED, GAPS_WHY: GAPS, LARGE_WHY: TOO_LARGE}
    return np.array([marks[each] for each in why.tolist()])

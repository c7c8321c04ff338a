"""A recipe as one module of JavaScript: `scorer.mjs` beside this one, with the recipe in it.

Names reach the file as JSON in ASCII, without "<": no name can end a string, or a script element of
a page. Its last line alone is of modules: the rest runs in a function node of Node-RED.
"""

from __future__ import annotations

import json
import math
import re
from importlib.resources import files
from typing import Any

import numpy as np

from submerge_bridges.export.interpreter import SCORED, ExportResult, golden_rows
from submerge_bridges.export.recipe import ExportWriter, Recipe, about_lines

STATUS = ("scored", "gaps", "too large")


def javascript(recipe: Recipe) -> str:
    """Return the text of the module, in ASCII."""
    template = files(__package__).joinpath("scorer.mjs").read_text("ascii")
    golden = golden_rows(recipe)
    rows = [[_number(each) for each in row] for row in golden.rows.tolist()]
    results = [_result(recipe, each) for each in golden.results]
    parts = {
        "about": "\n".join(["/*", *(f" * {each}".rstrip() for each in about_lines(recipe)), " */"]),
        "model": _json(_model(recipe)),
        "golden": "\n".join(
            [
                "{",
                f"  near: {_json(golden.near)}, floor: {_json(golden.floor)},",
                "  rows: [",
                *(f"    {_json(each)}," for each in rows),
                "  ],",
                "  results: [",
                *(f"    {_json(each)}," for each in results),
                "  ],",
                "}",
            ]
        ),
    }
    return re.sub(r"@(\w+)@", lambda found: parts[found[1]], template)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def _model(recipe: Recipe) -> dict[str, Any]:
    alarm, directions = recipe.alarm, bool({"spe", "t2"} & {*recipe.scores})
    arrays = {
        "offset": recipe.offset,
        "scale": recipe.scale,
        "mean": recipe.mean,
        "inverseRoots": recipe.inverse_roots,
        "loadings": recipe.loadings,
        "gains": recipe.gains,
        "errorWeights": recipe.error_weights,
        "blameWeights": recipe.blame_weights,
        "channelWeights": recipe.channel_weights if "channel" in recipe.computed else None,
        "basis": recipe.basis if directions else None,
        "ones": np.ones(recipe.basis.shape[1]) if directions else None,
        "t2Weights": recipe.t2_weights if "t2" in recipe.scores else None,
    }
    return {
        "group": recipe.group,
        "version": recipe.version,
        "fingerprint": recipe.fingerprint,
        "channels": recipe.channels,
        "units": recipe.units,
        "periodS": recipe.period_s,
        "scores": recipe.computed,
        "steps": {
            kind: list(zip(steps.shares.tolist(), steps.values.tolist(), strict=True))
            for kind, steps in recipe.limits.items()
        },
        "limits": alarm.limits,
        "calm": alarm.calm,
        "of": alarm.of,
        "after": alarm.after,
        "endsAfter": alarm.ends_after,
        "weight": alarm.weight,
        "kept": 1 - alarm.weight,
        "averages": alarm.averages,
        "held": alarm.held if alarm.averages else None,
        "provisionalRows": alarm.provisional_rows,
        "atMost": alarm.at_most,
        "excess": recipe.excess,
        "complete": recipe.complete,
        "largest": recipe.largest,
        **{name: None if each is None else each.tolist() for name, each in arrays.items()},
    }


def _result(recipe: Recipe, result: ExportResult) -> dict[str, Any]:
    if result.status != SCORED:
        return {"status": STATUS[result.status], "alarm": result.alarm}
    share = float(result.shares[result.blame]) if result.blame >= 0 else 0.0
    return {
        "status": STATUS[SCORED],
        "scores": result.scores,
        "passed": result.passed,
        "statistics": result.statistics,
        "over": [kind for kind in recipe.alarm.kinds if kind in result.over],
        "alarm": result.alarm,
        "blame": recipe.channels[result.blame] if result.blame >= 0 else None,
        "share": share,
        "deviation": result.deviation,
    }


def _number(value: float) -> float | str:
    """Return a reading as JSON has it: words for what is no number there."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


WRITER = ExportWriter(lambda recipe, _: javascript(recipe).encode("ascii"))

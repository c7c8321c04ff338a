"""The whole ONNX model: inputs, outputs, what it says of itself, and a check of the finished model.

Inputs are `rows` (n, d), in units, and the state (`alarms.state_shapes`). Outputs have a value for
each row: `status` (as in `export.interpreter`), each score, `passed_...` (the highest share of
normal rows that it is above), `statistic_...` (what is compared with alarm limits), `over_...`,
`alarm`, `blame` (a channel's number, -1 for none), `share` and `deviation`. The state after comes
out as `next_...`. Numbers of a row without scores are NaN.

1. The same recipe gives the same bytes.
2. Names of channels are in the properties of the model alone, as JSON, and never names of nodes.
3. No file is written that the checker of `onnx` refuses, or whose golden rows differ from what
   Python says when `onnx`'s own evaluator runs it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge.errors import SubmergeError, UsageError
from submerge_bridges.export.golden import GoldenRows, golden_rows
from submerge_bridges.export.interpreter import SCORED, ExportResult
from submerge_bridges.export.onnx_graph.alarms import add_alarms, state_shapes
from submerge_bridges.export.onnx_graph.nodes import GraphNodes, value
from submerge_bridges.export.onnx_graph.scores import add_scores
from submerge_bridges.export.plain_text import about_lines
from submerge_bridges.export.recipe import Recipe

OPSET, IR_VERSION = 13, 7
"""ONNX Runtime 1.7 and later take them."""

MADE_BY = "submerge model export"

EXACT = ("status", "alarm", "blame", "share", "deviation")
"""Outputs to which the floor of golden rows does not apply."""


def onnx_model(recipe: Recipe, *, single: bool = False) -> bytes:
    """Return the bytes of a model.

    single : whether rows, state and scores are float32

    Raises
    ------
    UsageError
        If a number of the model does not fit float32, or `onnx` is not installed.
    """
    onnx = _onnx()
    from onnx import helper

    golden = golden_rows(recipe, single=single)
    made = helper.make_model(
        _graph(recipe, single=single),
        producer_name=MADE_BY,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        doc_string="\n".join(about_lines(recipe)),
        model_version=recipe.version,
    )
    helper.set_model_props(made, _properties(recipe, golden))
    onnx.checker.check_model(made, full_check=True)
    _check_golden(recipe, made, golden, single=single)
    return bytes(made.SerializeToString(deterministic=True))


def first_state(recipe: Recipe, *, single: bool = False) -> dict[str, npt.NDArray[Any]]:
    """Return the state before the first row: zeros."""
    kind = np.float32 if single else np.float64
    return {
        name: np.zeros(shape, np.int64 if name == "alarm_state" else kind)
        for name, shape in state_shapes(recipe).items()
    }


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
    except ImportError:
        raise UsageError(
            "--as onnx needs the package onnx: install submerge with the extra `onnx`"
        ) from None
    return onnx


def _graph(recipe: Recipe, *, single: bool) -> Any:
    """Return the graph of a model."""
    from onnx import TensorProto

    nodes = GraphNodes(np.float32 if single else np.float64)
    found = add_scores(nodes, recipe, "rows")
    add_alarms(nodes, recipe, found)
    state = {
        name: (TensorProto.INT64 if name == "alarm_state" else nodes.kind, shape)
        for name, shape in state_shapes(recipe).items()
    }
    inputs = [value("rows", nodes.kind, ["n", recipe.dim])]
    inputs += [value(name, *each) for name, each in state.items()]
    outputs = [value("status", TensorProto.INT64, ["n"])]
    outputs += [value(name, nodes.kind, ["n"]) for name in _numbers(recipe)]
    outputs += [value(name, TensorProto.BOOL, ["n"]) for name in _flags(recipe)]
    outputs.append(value("blame", TensorProto.INT64, ["n"]))
    outputs += [value(name, nodes.kind, ["n"]) for name in ("share", "deviation")]
    outputs += [value(f"next_{name}", *each) for name, each in state.items()]
    return nodes.graph("submerge", inputs, outputs)


def _numbers(recipe: Recipe) -> list[str]:
    """Return the names of outputs that are scores and what follows from them."""
    return [
        *recipe.computed,
        *(f"passed_{kind}" for kind in recipe.limits),
        *(f"statistic_{kind}" for kind in recipe.alarm.kinds),
    ]


def _flags(recipe: Recipe) -> list[str]:
    return [*(f"over_{kind}" for kind in recipe.alarm.kinds), "alarm"]


def _properties(recipe: Recipe, golden: GoldenRows) -> dict[str, str]:
    """Return what the model says of itself: JSON, by name."""
    rows = [[_json_number(each) for each in row] for row in golden.rows.tolist()]
    known: Mapping[str, object] = {
        "channels": recipe.channels,
        "units": recipe.units,
        "group": recipe.group,
        "fingerprint": recipe.fingerprint,
        "period_s": recipe.period_s,
        "scores": recipe.computed,
        "statistics": recipe.alarm.kinds,
        "limits": recipe.alarm.limits,
        "calm": recipe.alarm.calm,
        "golden_rows": rows,
        "golden_results": [_json_result(each) for each in golden.results],
    }
    return {name: json.dumps(each, allow_nan=False) for name, each in known.items()}


def _json_number(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def _json_result(result: ExportResult) -> dict[str, float | bool]:
    """Return what Python says of a row, by the names of outputs."""
    found: dict[str, float | bool] = {"status": result.status, "alarm": result.alarm}
    if result.status == SCORED:
        found |= _wanted(result)
    return found


def _wanted(result: ExportResult) -> dict[str, float | bool]:
    """Return the outputs of a row that has scores."""
    return {
        **{str(kind): each for kind, each in result.scores.items()},
        **{f"passed_{kind}": each for kind, each in result.passed.items()},
        **{f"statistic_{kind}": each for kind, each in result.statistics.items()},
        **{f"over_{kind}": kind in result.over for kind in result.statistics},
        "blame": result.blame,
        "share": float(result.shares[result.blame]) if result.blame >= 0 else 0.0,
        "deviation": result.deviation,
    }


def _compared(golden: GoldenRows, result: ExportResult) -> dict[str, float | bool]:
    """Return the outputs of a golden row that are no matter of rounding."""
    small = {f"passed_{kind}" for kind, each in result.scores.items() if each <= golden.floor}
    return {name: each for name, each in _json_result(result).items() if name not in small}


def _check_golden(recipe: Recipe, made: Any, golden: GoldenRows, *, single: bool) -> None:
    """Run a model on its golden rows, cut in two.

    Raises
    ------
    SubmergeError
        If a result differs: an error of ours.
    """
    from onnx.reference import ReferenceEvaluator

    evaluator, state = ReferenceEvaluator(made), first_state(recipe, single=single)
    kind = np.dtype(np.float32 if single else np.float64)
    names, n = evaluator.output_names, 0
    for part in np.array_split(golden.rows.astype(kind), 2):
        found = dict(zip(names, evaluator.run(None, {"rows": part, **state}), strict=True))
        state = {name: found[f"next_{name}"] for name in state}
        for i, result in enumerate(golden.results[n : n + len(part)]):
            for name, wanted in _compared(golden, result).items():
                got = float(found[name][i])
                floor = 0.0 if name in EXACT else golden.floor
                if not abs(got - wanted) <= golden.near * abs(wanted) + floor:
                    raise SubmergeError(
                        f"{name} of golden row {n + i}: expected {wanted}, got {got}: report this"
                    )
        n += len(part)

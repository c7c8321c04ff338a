"""The whole ONNX model: inputs, outputs, what it says of itself, and a check of the finished model.

Inputs are `rows` (n, d), in units, and the state; outputs are in docs/export.md. Names of channels
are in the properties of the model alone, as JSON, and never names of nodes. No file is written that
the checker of `onnx` refuses, or whose golden rows differ from what Python says when `onnx`'s own
evaluator runs it. The same recipe gives the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge.errors import SubmergeError, UsageError
from submerge.stats.statistic import By
from submerge_bridges.export.interpreter import (
    GAPS,
    SCORED,
    TOO_LARGE,
    ExportResult,
    GoldenRows,
    golden_rows,
)
from submerge_bridges.export.recipe import MADE_BY, AlarmRecipe, ExportWriter, Recipe, about_lines

# A row that is never scored is put before all others, because ONNX Runtime scans no empty batch.


class GraphNodes:
    """Nodes and constants of one graph; each has its own prefix of names."""

    def __init__(self, dtype: npt.DTypeLike, prefix: str = "") -> None:
        self.dtype = np.dtype(dtype)
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: dict[tuple[str, bytes, tuple[int, ...]], Any] = {}

    @property
    def kind(self) -> int:
        """The type of its numbers, as ONNX has it."""
        from onnx import helper

        return int(helper.np_dtype_to_tensor_dtype(self.dtype))

    def add(self, operator: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add a node with one output; return the output's name."""
        return self.add_many(operator, inputs, (out,), **attributes)[0]

    def add_many(
        self, operator: str, inputs: Sequence[str], outs: Sequence[str], **attributes: Any
    ) -> list[str]:
        """Add a node with several outputs, named or not; return their names."""
        from onnx import helper

        made = [
            out or f"{self._prefix}{operator}_{len(self._nodes)}_{i}" for i, out in enumerate(outs)
        ]
        self._nodes.append(helper.make_node(operator, list(inputs), made, **attributes))
        return made

    def numbers(self, value: Any) -> str:
        """Return the name of a constant of the graph's type."""
        return self.constant(np.asarray(value, dtype=self.dtype))

    def whole(self, value: Any) -> str:
        """Return the name of a constant of whole numbers."""
        return self.constant(np.asarray(value, dtype=np.int64))

    def constant(self, value: npt.NDArray[Any]) -> str:
        """Return the name of a constant; equal ones are one."""
        from onnx import numpy_helper

        key = value.dtype.str, value.tobytes(), value.shape
        if key not in self._constants:
            name = f"{self._prefix}constant_{len(self._constants)}"
            self._constants[key] = numpy_helper.from_array(value, name)
        return str(self._constants[key].name)

    def any_of(self, flags: str, axis: int) -> str:
        """Return whether any of flags along an axis is true."""
        from onnx import TensorProto

        each = self.add("Cast", flags, to=TensorProto.INT32)
        most = self.add("ReduceMax", each, axes=[axis], keepdims=0)
        return self.add("Cast", most, to=TensorProto.BOOL)

    def sum_of(self, terms: str) -> str:
        """Return the sums of terms (n, m), (n,)."""
        return self.add("ReduceSum", terms, self.whole([1]), keepdims=0)

    def graph(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the graph of these nodes."""
        from onnx import helper

        return helper.make_graph(
            self._nodes, name, list(inputs), list(outputs), list(self._constants.values())
        )


def value(name: str, kind: int, shape: Sequence[int | str]) -> Any:
    """Return the declaration of an input or an output."""
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, list(shape))


OWN = 0.05  # share of y that is left of a channel, below which float32 is refined, as in C


class ScoreNodes(NamedTuple):
    """Names of results (n,): which rows have scores, and these by kind, the mean's if refused."""

    fine: str
    scores: dict[By, str]


def add_scores(nodes: GraphNodes, recipe: Recipe, rows: str) -> ScoreNodes:
    """Add the nodes that score rows (n, d), and the outputs that need no state."""
    centered, status = _centered(nodes, recipe, rows)
    y = nodes.add("Mul", centered, nodes.numbers(recipe.inverse_roots))
    loads = nodes.add("MatMul", y, nodes.numbers(recipe.loadings))
    z = nodes.add("Mul", loads, nodes.numbers(recipe.gains))
    held = nodes.add("MatMul", z, nodes.numbers(np.ascontiguousarray(recipe.loadings.T)))
    off = _refined(nodes, recipe, y, nodes.add("Sub", y, held))
    squares = nodes.add("Mul", off, off)
    scores: dict[By, str] = {}
    if recipe.by_distance:
        inside = nodes.sum_of(nodes.add("Mul", z, z))
        both = nodes.add("Add", nodes.sum_of(squares), inside)
        scores["distance"] = nodes.add("Div", both, nodes.numbers(recipe.excess))
    scores |= _of_directions(nodes, recipe, centered)
    if "channel" in recipe.computed:
        weighted = nodes.add("Mul", squares, nodes.numbers(recipe.channel_weights))
        scores["channel"] = nodes.add("ReduceMax", weighted, axes=[1], keepdims=0)
    fine = _finite(nodes, list(scores.values()), status)
    for kind in recipe.computed:
        nodes.add("Where", fine, scores[kind], nodes.numbers(np.nan), out=kind)
    for kind in recipe.limits:
        _add_passed(nodes, recipe, kind, scores[kind], fine)
    _add_blame(nodes, recipe, off, squares, fine)
    return ScoreNodes(fine, scores)


def _centered(nodes: GraphNodes, recipe: Recipe, rows: str) -> tuple[str, str]:
    """Scale and center rows; return them, and their status."""
    from onnx import TensorProto

    known = {name: getattr(recipe, name) for name in ("offset", "scale", "mean")}
    offset, scale, mean = (nodes.constant(np.asarray(each, np.float64)) for each in known.values())
    readings = nodes.add("Cast", rows, to=TensorProto.DOUBLE)
    scaled = nodes.add("Div", nodes.add("Sub", readings, offset), scale)
    infinite = nodes.any_of(nodes.add("IsInf", scaled), 1)
    gaps = nodes.any_of(nodes.add("IsNaN", scaled), 1)
    largest = nodes.constant(np.asarray(recipe.largest, np.float64))
    small = nodes.add("Less", nodes.add("Abs", scaled), largest)
    large = nodes.any_of(nodes.add("Not", small), 1)
    status = nodes.add("Where", large, nodes.whole(TOO_LARGE), nodes.whole(SCORED))
    status = nodes.add("Where", gaps, nodes.whole(GAPS), status)
    status = nodes.add("Where", infinite, nodes.whole(TOO_LARGE), status)
    fine = nodes.add("Equal", status, nodes.whole(SCORED))
    column = nodes.add("Unsqueeze", fine, nodes.whole([1]))
    centered = nodes.add("Where", column, nodes.add("Sub", scaled, mean),
                         nodes.constant(np.zeros((), np.float64)))  # fmt: skip
    return nodes.add("Cast", centered, to=nodes.kind), status


def _refined(nodes: GraphNodes, recipe: Recipe, y: str, off: str) -> str:
    """Return what factors leave of y, with the digits that float32 has lost."""
    # That is a difference of two numbers that are nearly the same where a channel has a factor to
    # itself. There it is y times a row of I - L G L', computed in float64.
    own = 1 / (recipe.error_weights * recipe.inverse_roots)
    which = np.flatnonzero(own < OWN)
    if nodes.dtype != np.float32 or not len(which):
        return off
    rows = np.eye(recipe.dim) - (recipe.loadings * recipe.gains) @ recipe.loadings.T
    exact = nodes.add("MatMul", y, nodes.numbers(np.ascontiguousarray(rows[which].T)))
    places = np.arange(recipe.dim)
    places[which] = recipe.dim + np.arange(len(which))
    both = nodes.add("Concat", off, exact, axis=1)
    return nodes.add("Gather", both, nodes.whole(places), axis=1)


def _finite(nodes: GraphNodes, scores: Sequence[str], status: str) -> str:
    """Add the output `status`; return which rows have scores, all of them finite."""
    # In float32, squares of what is not too large may be.
    most = nodes.add("Max", *scores)
    infinite = nodes.add("Not", nodes.add("Less", most, nodes.numbers(np.inf)))
    scored = nodes.add("Equal", status, nodes.whole(SCORED))
    large = nodes.add("And", scored, infinite)
    nodes.add("Where", large, nodes.whole(TOO_LARGE), status, out="status")
    return nodes.add("And", scored, nodes.add("Not", infinite))


def _of_directions(nodes: GraphNodes, recipe: Recipe, centered: str) -> dict[By, str]:
    """Add SPE and T2, as far as the recipe has them."""
    found: dict[By, str] = {}
    v = nodes.add("MatMul", centered, nodes.numbers(recipe.basis))
    excess = nodes.numbers(recipe.excess)
    if "spe" in recipe.scores:
        held = nodes.add("MatMul", v, nodes.numbers(np.ascontiguousarray(recipe.basis.T)))
        rest = nodes.add("Sub", centered, held)
        spe = nodes.add("Div", nodes.sum_of(nodes.add("Mul", rest, rest)), excess)
        if recipe.complete:
            spe = nodes.add("Mul", spe, nodes.numbers(0.0))
        found["spe"] = spe
    if "t2" in recipe.scores:
        variances = nodes.add("Mul", nodes.add("Mul", v, v), nodes.numbers(recipe.t2_weights))
        found["t2"] = nodes.add("Div", nodes.sum_of(variances), excess)
    return found


def _add_passed(nodes: GraphNodes, recipe: Recipe, kind: By, score: str, fine: str) -> None:
    """Add the output `passed_...`: the highest share whose limit a score is above."""
    steps = recipe.limits[kind]
    column = nodes.add("Unsqueeze", score, nodes.whole([1]))
    above = nodes.add("Greater", column, nodes.numbers(steps.values))
    shares = nodes.add("Where", above, nodes.numbers(steps.shares), nodes.numbers(0.0))
    most = nodes.add("ReduceMax", shares, axes=[1], keepdims=0)
    nodes.add("Where", fine, most, nodes.numbers(np.nan), out=f"passed_{kind}")


def _add_blame(nodes: GraphNodes, recipe: Recipe, off: str, squares: str, fine: str) -> None:
    """Add the outputs `blame`, `share` and `deviation`."""
    weighted = nodes.add("Mul", squares, nodes.numbers(recipe.blame_weights))
    first = nodes.add("ArgMax", weighted, axis=1, keepdims=1)
    total, zero = nodes.sum_of(weighted), nodes.numbers(0.0)
    some = nodes.add("And", nodes.add("Greater", total, zero), fine)

    def of_first(values: str) -> str:
        column = nodes.add("GatherElements", values, first, axis=1)
        return nodes.add("Squeeze", column, nodes.whole([1]))

    index = nodes.add("Squeeze", first, nodes.whole([1]))
    nodes.add("Where", some, index, nodes.whole(-1), out="blame")
    over = nodes.add("Where", some, total, nodes.numbers(1.0))
    share = nodes.add("Div", of_first(weighted), over)
    nodes.add("Where", fine, share, nodes.numbers(np.nan), out="share")
    errors = nodes.add("Mul", off, nodes.numbers(recipe.error_weights * recipe.scale))
    nodes.add("Where", fine, of_first(errors), nodes.numbers(np.nan), out="deviation")


BODY = "row_"  # prefix of names inside the Scan


def state_shapes(recipe: Recipe) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the state: scores of `AlarmRecipe.windows`, average, open and quiet."""
    alarm = recipe.alarm
    return {
        "recent": (max(len(alarm.windows), 1), alarm.of - 1),
        "average": (1,),
        "alarm_state": (2,),
    }


def add_alarms(nodes: GraphNodes, recipe: Recipe, found: ScoreNodes) -> None:
    """Add the Scan, the outputs `statistic_...`, `over_...` and `alarm`, and the state after."""
    from onnx import TensorProto

    alarm = recipe.alarm
    columns = [found.scores[each] for each in alarm.windows or recipe.scores[:1]]
    distance = found.scores.get("distance", columns[0])
    each = [nodes.add("Unsqueeze", name, nodes.whole([1])) for name in (*columns, distance)]
    joined = nodes.add("Concat", *each, axis=1)
    blank = nodes.numbers(np.zeros((1, len(each))))
    padded = nodes.add("Concat", blank, joined, axis=0)
    fine = nodes.add("Concat", nodes.constant(np.zeros(1, bool)), found.fine, axis=0)
    names = list(state_shapes(recipe))
    outs = [*(f"next_{name}" for name in names), "", ""]
    scanned = nodes.add_many(
        "Scan",
        [*names, padded, fine],
        outs,
        body=_body(recipe, nodes, len(each)),
        num_scan_inputs=2,
    )
    statistics, opened = (
        nodes.add("Slice", name, nodes.whole([1]), nodes.whole([2**62]), nodes.whole([0]))
        for name in scanned[-2:]
    )
    for i, kind in enumerate(alarm.kinds):
        picked = nodes.add("Gather", statistics, nodes.whole(i), axis=1)
        known = nodes.add(
            "Where", found.fine, picked, nodes.numbers(np.nan), out=f"statistic_{kind}"
        )
        nodes.add("Greater", known, nodes.numbers(alarm.limits[kind]), out=f"over_{kind}")
    nodes.add("Cast", opened, to=TensorProto.BOOL, out="alarm")


def _body(recipe: Recipe, outer: GraphNodes, width: int) -> Any:
    """Return the graph of one row: state, its scores and whether it is fine."""
    from onnx import TensorProto

    alarm, nodes = recipe.alarm, GraphNodes(outer.dtype, BODY)
    shapes = state_shapes(recipe)
    kinds = {"recent": nodes.kind, "average": nodes.kind, "alarm_state": TensorProto.INT64}
    windows = nodes.add("Slice", f"{BODY}scores", *_range(nodes, 0, width - 1))
    after, ranked = _windows(nodes, alarm, windows)
    newest = nodes.add("Slice", f"{BODY}scores", *_range(nodes, width - 1, width))
    average = _average(nodes, alarm, newest)
    found = [ranked] if alarm.windows else []
    if alarm.averages:
        found.append(average)
    if not found:
        found = [nodes.numbers(np.zeros(1))]
    statistics = nodes.add("Concat", *found, axis=0, out=f"{BODY}statistics")
    state = _follow(nodes, alarm, statistics)
    fine = f"{BODY}fine"
    for name, new in (("recent", after), ("average", average), ("alarm_state", state)):
        nodes.add("Where", fine, new, f"{BODY}{name}", out=f"{BODY}next_{name}")
    nodes.add("Gather", f"{BODY}next_alarm_state", nodes.whole(0), axis=0, out=f"{BODY}open")
    inputs = [value(f"{BODY}{name}", kinds[name], shape) for name, shape in shapes.items()]
    inputs += [value(f"{BODY}scores", nodes.kind, [width]), value(fine, TensorProto.BOOL, [])]
    outputs = [value(f"{BODY}next_{name}", kinds[name], shape) for name, shape in shapes.items()]
    outputs += [
        value(f"{BODY}statistics", nodes.kind, [max(len(alarm.kinds), 1)]),
        value(f"{BODY}open", TensorProto.INT64, []),
    ]
    return nodes.graph("row", inputs, outputs)


def _range(nodes: GraphNodes, start: int, stop: int, axis: int = 0) -> tuple[str, str, str]:
    return nodes.whole([start]), nodes.whole([stop]), nodes.whole([axis])


def _windows(nodes: GraphNodes, alarm: AlarmRecipe, scores: str) -> tuple[str, str]:
    """Return the scores that are remembered, and the k-of-m statistics (windows,)."""
    column = nodes.add("Unsqueeze", scores, nodes.whole([1]))
    window = nodes.add("Concat", f"{BODY}recent", column, axis=1)
    top, _ = nodes.add_many("TopK", (window, nodes.whole([alarm.after])), ("", ""), axis=1)
    least = nodes.add("Slice", top, *_range(nodes, alarm.after - 1, alarm.after, 1))
    after = nodes.add("Slice", window, *_range(nodes, 1, alarm.of, 1))
    return after, nodes.add("Squeeze", least, nodes.whole([1]))


def _average(nodes: GraphNodes, alarm: AlarmRecipe, newest: str) -> str:
    """Return the moving average after the newest distance, (1,)."""
    held = alarm.held if alarm.averages else 0.0
    before = nodes.add("Min", f"{BODY}average", nodes.numbers(held))
    share = nodes.add("Mul", newest, nodes.numbers(alarm.weight))
    return nodes.add("Add", share, nodes.add("Mul", before, nodes.numbers(1 - alarm.weight)))


def _follow(nodes: GraphNodes, alarm: AlarmRecipe, statistics: str) -> str:
    """Return the state of the alarm after a row, (2,)."""
    limits, calm = (
        [bounds[kind] for kind in alarm.kinds] or [math.inf]
        for bounds in (alarm.limits, alarm.calm)
    )
    over = nodes.any_of(nodes.add("Greater", statistics, nodes.numbers(limits)), 0)
    high = nodes.any_of(nodes.add("Greater", statistics, nodes.numbers(calm)), 0)
    opened = nodes.add("Gather", f"{BODY}alarm_state", nodes.whole(0), axis=0)
    quiet = nodes.add("Gather", f"{BODY}alarm_state", nodes.whole(1), axis=0)
    longer = nodes.add("Add", quiet, nodes.whole(1))
    quiet = nodes.add("Where", high, nodes.whole(0), longer)
    lasts = nodes.add(
        "And",
        nodes.add("Equal", opened, nodes.whole(1)),
        nodes.add("Less", quiet, nodes.whole(alarm.ends_after)),
    )
    is_open = nodes.add("Or", over, lasts)
    quiet = nodes.add("Where", is_open, quiet, nodes.whole(0))
    one = nodes.add("Where", is_open, nodes.whole(1), nodes.whole(0))
    each = [nodes.add("Unsqueeze", name, nodes.whole([0])) for name in (one, quiet)]
    return nodes.add("Concat", *each, axis=0)


OPSET, IR_VERSION = 13, 7  # ONNX Runtime 1.7 and later take them

EXACT = ("status", "alarm", "blame", "share", "deviation")
"""Outputs to which the floor of golden rows does not apply."""


def onnx_model(recipe: Recipe, *, single: bool = False) -> bytes:
    """Return the bytes of a model."""
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
    flags = [*(f"over_{kind}" for kind in recipe.alarm.kinds), "alarm"]
    outputs += [value(name, TensorProto.BOOL, ["n"]) for name in flags]
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


def _properties(recipe: Recipe, golden: GoldenRows) -> dict[str, str]:
    """Return what the model says of itself: JSON, by name."""
    rows = [[n if math.isfinite(n) else str(n) for n in row] for row in golden.rows.tolist()]
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


def _json_result(result: ExportResult) -> dict[str, float | bool]:
    """Return what Python says of a row, by the names of outputs."""
    found: dict[str, float | bool] = {"status": result.status, "alarm": result.alarm}
    if result.status == SCORED:
        found |= _wanted(result)
    return found


def _wanted(result: ExportResult) -> dict[str, float | bool]:
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
    """Run a model on its golden rows, cut in two; another result is an error of ours."""
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


WRITER = ExportWriter(
    lambda recipe, options: onnx_model(recipe, single=options.single), frozenset({"single"})
)

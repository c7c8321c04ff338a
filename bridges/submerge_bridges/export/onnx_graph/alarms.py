"""Alarms over rows in the order of time, as a Scan: state goes in, and the state after comes out.

A stream may be cut into batches anywhere: the state after one is that before the next. The first
batch takes zeros. A refused row changes no state. A row that is never scored is put before all
others, because ONNX Runtime scans no empty batch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from submerge_bridges.export.onnx_graph.nodes import GraphNodes, value
from submerge_bridges.export.onnx_graph.scores import ScoreNodes
from submerge_bridges.export.recipe import AlarmRecipe, Recipe

BODY = "row_"
"""Prefix of names inside the Scan."""


def state_shapes(recipe: Recipe) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the state, by name.

    recent : the last of - 1 scores of each kind in `AlarmRecipe.windows`, oldest first
    average : the last two distances, and the moving average after them
    alarm_state : 1 where an alarm is open, and rows since a statistic was above its calm value
    """
    alarm = recipe.alarm
    return {
        "recent": (max(len(alarm.windows), 1), alarm.of - 1),
        "average": (3,),
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
    if "smoothed" in alarm.limits:
        found.append(nodes.add("Slice", average, *_range(nodes, 2, 3)))
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
    """Return the inputs of a Slice."""
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
    """Return the state of the moving average after the newest distance, (3,)."""
    earlier, last, before = (
        nodes.add("Slice", f"{BODY}average", *_range(nodes, i, i + 1)) for i in range(3)
    )
    low, high = nodes.add("Min", earlier, last), nodes.add("Max", earlier, last)
    median = nodes.add("Max", low, nodes.add("Min", high, newest))
    share = nodes.add("Mul", median, nodes.numbers(alarm.weight))
    kept = nodes.add("Mul", before, nodes.numbers(1 - alarm.weight))
    runs = nodes.add(
        "And",
        nodes.add("Greater", before, nodes.numbers(0.0)),
        nodes.add("Less", before, nodes.numbers(math.inf)),
    )
    after = nodes.add("Where", runs, nodes.add("Add", share, kept), median)
    return nodes.add("Concat", last, newest, after, axis=0)


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

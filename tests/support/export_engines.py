"""ONNX exports, run on rows by ONNX Runtime.

Used by tests/bridges/export and benchmarks/export.py, as `export_runs`, which has other languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from submerge_bridges.export.onnx_graph import first_state, onnx_model
from submerge_bridges.export.recipe import Recipe
from support.export_runs import ProgramRows


def run_onnx(
    recipe: Recipe,
    rows: np.ndarray,
    _: Path | None = None,
    *,
    single: bool = False,
    cuts: Sequence[int] = (1, 7, 7, 1000),
) -> ProgramRows:
    """Run the ONNX export with ONNX Runtime; its writer has checked the golden rows.

    cuts : rows before which a new batch begins
    """
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = 1
    data = onnx_model(recipe, single=single)
    session = InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    state, parts = first_state(recipe, single=single), []
    with np.errstate(over="ignore"):
        read = rows.astype(np.float32) if single else rows
    for batch in np.split(read, [each for each in cuts if each <= len(rows)]):
        found = dict(zip(names, session.run(None, {"rows": batch, **state}), strict=True))
        state = {name: found[f"next_{name}"] for name in state}
        parts.append(found)
    joined = {
        name: np.concatenate([part[name] for part in parts])
        for name in names
        if not name.startswith("next_")
    }
    kinds = recipe.alarm.kinds
    return ProgramRows(
        *(joined[name] for name in ("status", "alarm", "blame")),
        {kind: joined[f"over_{kind}"] for kind in kinds},
        *(joined[name].astype(np.float64) for name in ("share", "deviation")),
        {kind: joined[kind].astype(np.float64) for kind in recipe.computed},
        {kind: joined[f"statistic_{kind}"].astype(np.float64) for kind in kinds},
    )

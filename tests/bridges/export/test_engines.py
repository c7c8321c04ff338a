"""ONNX Runtime has the product's alarms on machines of hard numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from submerge_bridges.export.command import recipe_of
from submerge_bridges.export.recipe import Recipe
from support import exported, pump_files
from support.export_engines import run_onnx
from support.export_runs import ProgramRows, agreement

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def run_onnx_in_float(recipe: Recipe, rows: np.ndarray) -> ProgramRows:
    return run_onnx(recipe, rows, single=True)


def machines() -> dict[str, np.ndarray]:
    """Rows of machines of which a factor explains one channel alone, or all of it."""
    rng, pump = np.random.default_rng(1), pump_files.readings(4000)
    return {
        "one channel, far from 0": 1e5 + 3 * rng.normal(size=(4000, 1)),
        "channels that say nothing of each other": rng.normal(size=(4000, 3)),
        "a channel that is a copy": np.column_stack([pump, 1e6 + 2 * pump[:, 0]]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("what", machines())
def test_odd_machines_have_the_same_alarms(what: str):
    """In float32 the matrix of what factors leave is taken for such channels."""
    rows, rng = machines()[what], np.random.default_rng(2)
    saved = exported.fitted(rows, tuple(f"c{i}" for i in range(rows.shape[1])))
    recipe = recipe_of(saved)
    wild = np.concatenate([rows[:100], rows[:50] + rows.std() * rng.normal(size=rows[:50].shape)])
    engines: list[tuple[Callable[..., ProgramRows], type, float]] = [
        (run_onnx, np.float64, 1e-9),
        (run_onnx_in_float, np.float32, 1e-5),
    ]
    for run, kind, within in engines:
        read = wild.astype(kind).astype(np.float64)
        product = exported.by_product(saved, recipe, read)
        found = agreement(recipe, product, run(recipe, read), within=within)

        assert (0, 0, 0) == (found.differ, found.opened, found.blamed)

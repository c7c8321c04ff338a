"""Golden rows: a few rows with their results, which each exported program checks itself by.

They follow from the recipe alone: rows that the model calls normal, a fault of one channel that
raises an alarm, a row with a gap, one with an infinity, and a normal row again. No statistic of a
row is within `MARGIN` of a limit, and no two channels are about equally to blame, so that rounding
to float32 changes no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from submerge._linalg import Array
from submerge_bridges.export.interpreter import SCORED, ExportResult, ExportState, step
from submerge_bridges.export.recipe import Recipe

MARGIN = 0.02
"""Least distance of a golden row's statistic from a limit, relative to it."""

NEAR = {True: 1e-3, False: 1e-9}
"""How near the numbers of a program have to be, relative, in float32 and in double."""

ROUNDINGS = 10
"""Errors of rounding in a number of a residual."""

NORMAL, FAULTY = 2, 6
"""Rows without and with a fault: an alarm needs five of eight."""

TRIES = 200
"""Seeds that are tried; the last is taken as it is, without a clear margin."""


@dataclass(frozen=True, slots=True, eq=False)
class GoldenRows:
    """Rows, in order, and what a program has to say of each, from a new state on.

    rows : (n, d), in units
    near : how near a program's numbers have to be, relative
    floor : scores and statistics may also differ by this: less is rounding
    """

    rows: Array
    results: tuple[ExportResult, ...]
    near: float
    floor: float


def golden_rows(recipe: Recipe, *, single: bool = False) -> GoldenRows:
    """Return golden rows of a recipe; the same recipe gives the same rows.

    single : rows are float32 numbers, and the program computes in float32
    """
    near = NEAR[single]
    for seed in range(TRIES):
        rows = _rows(recipe, np.random.default_rng(seed))
        if single:
            with np.errstate(over="ignore"):
                rows = rows.astype(np.float32).astype(np.float64)
        state, results = ExportState(), []
        for row in rows:
            result, state = step(recipe, row, state)
            results.append(result)
        scored = [each.status == SCORED for each in results]
        floor = _floor(recipe, rows[scored], near, np.float32 if single else np.float64)
        found = GoldenRows(rows, tuple(results), near, floor)
        if all(_is_clear(recipe, each, floor) for each in results if each.status == SCORED):
            break
    return found


def _rows(recipe: Recipe, rng: np.random.Generator) -> Array:
    n, (dim, k) = NORMAL + FAULTY + 3, recipe.loadings.shape
    y = rng.normal(size=(n, k)) @ recipe.loadings.T + rng.normal(size=(n, dim))
    most = max((dim, *recipe.alarm.limits.values()))
    y[NORMAL : NORMAL + FAULTY, int(rng.integers(dim))] += 4 * np.sqrt(most)
    rows = recipe.offset + recipe.scale * (recipe.mean + y / recipe.inverse_roots)
    rows[NORMAL + FAULTY, dim // 2] = np.nan
    rows[NORMAL + FAULTY + 1, dim - 1] = -np.inf
    return np.asarray(rows)


def _floor(recipe: Recipe, rows: Array, near: float, kind: type) -> float:
    """Return how much SPE may differ by rounding: it is what is left of large numbers.

    An error of `each` in the residual changes its square by 2 sqrt(SPE) each + each^2. That is less
    than a share `near` of SPE, or less than this.
    """
    centered = (rows - recipe.offset) / recipe.scale - recipe.mean
    each = ROUNDINGS * float(np.finfo(kind).eps) * float(np.abs(centered).max())
    return 4 / near * each**2


def _is_clear(recipe: Recipe, result: ExportResult, floor: float) -> bool:
    """Return whether rounding cannot change an answer."""
    pairs = chain(
        ((each, recipe.alarm.limits[kind]) for kind, each in result.statistics.items()),
        ((each, recipe.alarm.calm[kind]) for kind, each in result.statistics.items()),
        (
            (result.scores[kind], float(limit))
            for kind, steps in recipe.limits.items()
            for limit in steps.values
            if result.scores[kind] > floor
        ),
    )
    first, *others = np.sort(result.shares)[::-1]
    clear = not others or first > (1 + MARGIN) * others[0]
    return clear and all(abs(each - limit) > MARGIN * limit for each, limit in pairs)

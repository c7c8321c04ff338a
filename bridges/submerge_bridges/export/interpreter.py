"""A recipe carried out row by row in plain NumPy: slow, and what every exported program has to do.

`step(recipe, row, state)` changes no argument. Golden rows in exported files are made with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from submerge._linalg import Array
from submerge.stats.statistic import By
from submerge_bridges.export.recipe import AlarmRecipe, Recipe

SCORED, GAPS, TOO_LARGE = 0, 1, 2
"""Status of a row: it has scores; it has a gap (NaN); a number of it is infinite or too large."""


@dataclass(frozen=True, slots=True)
class ExportState:
    """What the next row's statistics need."""

    recent: Mapping[By, tuple[float, ...]] = field(default_factory=dict)  # of - 1, oldest first
    average: float = 0.0  # moving average of distances
    open: bool = False
    quiet: int = 0  # rows since a statistic of the open alarm was above its calm value


@dataclass(frozen=True, slots=True, eq=False)
class ExportResult:
    status: int
    scores: Mapping[By, float] = field(default_factory=dict)
    # The highest share of normal rows that the score is above, 0 for none.
    passed: Mapping[By, float] = field(default_factory=dict)
    statistics: Mapping[By, float] = field(default_factory=dict)  # compared with alarm limits
    over: frozenset[By] = frozenset()  # of them, which raise an alarm
    alarm: bool = False
    # (d,), of channels in what is anomalous, all 0 as predicted.
    shares: Array = field(default_factory=lambda: np.zeros(0))
    blame: int = -1  # the first channel with the largest share, -1 for none
    deviation: float = 0.0  # of that channel, in its units


def step(recipe: Recipe, row: Array, state: ExportState) -> tuple[ExportResult, ExportState]:
    """Score one row (d,), in units; return the state after it."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (np.asarray(row, dtype=np.float64) - recipe.offset) / recipe.scale
    status = _status(scaled, recipe.largest)
    if status:
        return ExportResult(status, alarm=state.open), state
    scores, off = _scores(recipe, scaled - recipe.mean)
    passed = {
        kind: max((share for share, limit in zip(*steps, strict=True) if scores[kind] > limit),
                  default=0.0)
        for kind, steps in recipe.limits.items()
    }  # fmt: skip
    blame = recipe.blame_weights * off**2
    total, first = float(blame.sum()), int(blame.argmax())
    shares = blame / total if total else np.zeros_like(blame)
    statistics, after = _statistics(recipe.alarm, scores, state)
    over = frozenset(kind for kind, each in statistics.items() if each > recipe.alarm.limits[kind])
    high = any(each > recipe.alarm.calm[kind] for kind, each in statistics.items())
    quiet = 0 if high else state.quiet + 1
    is_open = bool(over) or (state.open and quiet < recipe.alarm.ends_after)
    result = ExportResult(
        SCORED,
        {kind: scores[kind] for kind in recipe.computed},
        passed,
        statistics,
        over,
        is_open,
        shares,
        first if total else -1,
        float(recipe.error_weights[first] * off[first] * recipe.scale[first]) if total else 0.0,
    )
    return result, replace(after, open=is_open, quiet=quiet if is_open else 0)


def _status(scaled: Array, largest: float) -> int:
    """Return why a row has no scores, in the order of `judge.prepare`."""
    if np.isinf(scaled).any():
        return TOO_LARGE
    if np.isnan(scaled).any():
        return GAPS
    return SCORED if (np.abs(scaled) < largest).all() else TOO_LARGE


def _scores(recipe: Recipe, centered: Array) -> tuple[dict[By, float], Array]:
    """Return all scores of a centered row, and what its factors leave of it, (d,)."""
    y = recipe.inverse_roots * centered
    z = recipe.gains * (y @ recipe.loadings)
    off = y - recipe.loadings @ z
    v = centered @ recipe.basis
    rest = centered - recipe.basis @ v
    scores: dict[By, float] = {
        "distance": float(off @ off + z @ z) / recipe.excess,
        "spe": 0.0 if recipe.complete else float(rest @ rest) / recipe.excess,
        "t2": float(v**2 @ recipe.t2_weights) / recipe.excess,
    }
    if recipe.channel_weights is not None:
        scores["channel"] = float((recipe.channel_weights * off**2).max())
    return scores, off


def _statistics(
    alarm: AlarmRecipe, scores: Mapping[By, float], state: ExportState
) -> tuple[dict[By, float], ExportState]:
    """Return the statistic of each kind that raises alarms, and the state with the row's scores."""
    found: dict[By, float] = {}
    recent = dict(state.recent)
    average = state.average
    for kind in alarm.kinds:
        if kind in alarm.averages:
            before = min(average, alarm.held)
            found[kind] = average = alarm.weight * scores["distance"] + (1 - alarm.weight) * before
        else:
            window = (*recent.get(kind, ()), scores[kind])[-alarm.of :]
            ranked = sorted((0.0,) * (alarm.of - len(window)) + window)
            found[kind] = ranked[alarm.of - alarm.after]
            recent[kind] = window[len(window) == alarm.of :]
    return found, replace(state, recent=recent, average=average)


# No statistic of a row is within `MARGIN` of a limit, and no two channels are about equally to
# blame, so that rounding to float32 changes no answer.

MARGIN = 0.02  # least distance of a golden row's statistic from a limit, relative to it

NEAR = {True: 1e-3, False: 1e-9}
"""How near the numbers of a program have to be, relative, in float32 and in double."""

ROUNDINGS = 10  # errors of rounding in a number of a residual
NORMAL, FAULTY = 2, 6  # rows without and with a fault: an alarm of single channels needs 5 of 8
TRIES = 200  # seeds that are tried; the last is taken as it is, without a clear margin


@dataclass(frozen=True, slots=True, eq=False)
class GoldenRows:
    """Rows (n, d), in units, and what a program has to say of each, from a new state on."""

    rows: Array
    results: tuple[ExportResult, ...]
    near: float  # relative, of numbers
    floor: float  # by which scores and statistics may also differ


def golden_rows(recipe: Recipe, *, single: bool = False) -> GoldenRows:
    """Return golden rows of a recipe; the same recipe gives the same rows."""
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
    """Return how much SPE may differ by rounding: it is what is left of large numbers."""
    # An error of `each` in the residual changes its square by 2 sqrt(SPE) each + each^2. That is
    # less than a share `near` of SPE, or less than this.
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

"""recipe_of(): the recipe of a saved model, of one machine, and at one rate of false alarms.

Limits are those that `history.detection` compares with, and the mean and the typical errors are
those of `submerge.Model.score`. Models of a kernel or with lags are refused: a program for them
needs more than one row's readings, or a map with thousands of numbers.
"""

from __future__ import annotations

import math

import numpy as np

from submerge._linalg import EPS, Array
from submerge.client.alarms.detect import LONGER
from submerge.errors import UsageError
from submerge.history.detection import watching
from submerge.history.knowledge import Learnt
from submerge.history.settings import SOON
from submerge.pca.factor import Precision
from submerge.pca.reconstruct import KNOWN, Reconstruction
from submerge.pca.subspace import Subspace
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Scaling
from submerge.stats.block_maxima import WITH_FACTORS, WITHOUT_FACTORS, By
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.score_limits import Limits, LimitSteps
from submerge_bridges.export.recipe import SCORES, AlarmRecipe, Recipe
from submerge_files.model_file import SavedModel
from submerge_files.python.scoring import FrameScorer
from submerge_files.score.columns import lags_of
from submerge_files.score.mean import Center

MOST_NUMBERS = 4_000_000
"""Most numbers in a recipe: each takes some 20 bytes of a program's text."""


def recipe_of(
    saved: SavedModel,
    *,
    machine: str | None = None,
    alarms: AlarmSettings = SOON,
    at_most: str = "1 false per week",
) -> Recipe:
    """Return the recipe of a model.

    machine : Whose mean and typical errors; needed where each machine has its own mean.
    alarms : The rate of false alarms, and of how many rows they are raised.
    at_most : The same rate, in words.

    Raises
    ------
    UsageError
        If the model has a kernel or lags, learnt nothing or is too wide, or knows no such machine.
    """
    _check_kind(saved)
    scorer = FrameScorer.of(saved, machine)
    normal, center, schema = scorer.normal, scorer.center, saved.schema
    shown = normal.shown.shown(normal.summary).parts[0].shown
    readings = normal.summary.parts[0] if normal.factors else shown
    _check_learnt(saved, readings)
    precision = Precision.of(readings, *normal.factors[:1])
    _check_size(precision.loadings.size + shown.basis.size)
    model, width = saved.model, schema.width
    scaling = schema.scaling or Scaling((0.0,) * width, (1.0,) * width)
    columns, sizes, _ = np.linalg.svd(precision.loadings, full_matrices=False)
    scores: tuple[By, ...] = SCORES if normal.factors else SCORES[1:]
    expected = Reconstruction(readings, width, precision).expected
    errors, typical, own = expected / precision.roots, _typical(center), center.own
    channel_weights = None if typical is None else errors**2 * typical.weights(expected)
    return Recipe(
        *(model.group, model.version, model.fingerprint, schema.names),
        units=tuple(each.unit for each in schema.named),
        period_s=0.0 if saved.learnt is None else saved.learnt.period_s,
        offset=np.array(scaling.offset),
        scale=np.array(scaling.scale),
        mean=np.asarray(readings.mean if own is None else own.rows, dtype=np.float64),
        inverse_roots=1 / precision.roots,
        loadings=columns * sizes,
        gains=1 / (1 + sizes**2),
        basis=np.asarray(shown.basis, dtype=np.float64),
        t2_weights=_t2_weights(shown),
        error_weights=errors,
        blame_weights=errors**2 / _usual(expected, typical),
        channel_weights=channel_weights,
        scores=scores,
        limits={} if normal.limits is None else _steps(normal.limits, scores),
        alarm=_alarm(saved, center, alarms, at_most),
        excess=1.0 if own is None else own.excess,
        complete=shown.rank == shown.dim,
    )


def _check_kind(saved: SavedModel) -> None:
    schema = saved.schema
    if not schema.linear or lags_of(schema.names) > 1:
        what = "lags" if schema.linear else "a kernel"
        raise UsageError(
            f"expected a model of single rows without a kernel, got one with {what} in"
            f" {saved.whence}: `submerge score` takes it"
        )


def _check_learnt(saved: SavedModel, readings: Subspace) -> None:
    if not readings.rank:
        raise UsageError(f"{saved.whence} has learnt no directions yet: export a later one")


def _check_size(numbers: int) -> None:
    if numbers > MOST_NUMBERS:
        raise UsageError(
            f"expected a model of at most {MOST_NUMBERS:,} numbers, got {numbers:,}: fit it with"
            " fewer channels"
        )


def _typical(center: Center) -> ResidualScale | None:
    """Return the typical errors of the machine, once they cover a day."""
    scale = center.typical
    return scale if scale is not None and scale.ready else None


def _usual(expected: Array, typical: ResidualScale | None) -> Array:
    """Return the mean square error of each channel on normal rows, as `shares_of` takes it."""
    if typical is None:
        return expected
    return np.where(typical.squares > KNOWN * expected, typical.squares, expected)


def _t2_weights(shown: Subspace) -> Array:
    """Return the weights of squares along each direction, as `pca.score.Scorer` has them."""
    variance = shown.explained_variance
    solid = variance > shown.dim * EPS * variance[:1]
    return np.divide(1.0, variance, out=np.zeros_like(variance), where=solid)


def _steps(limits: Limits, scores: tuple[By, ...]) -> dict[By, LimitSteps]:
    """Return the shares of normal rows below each score, without those that are no limits."""
    found = {}
    for kind in scores:
        shares, values = limits.steps(kind)
        if len(shares) > 1:
            found[kind] = LimitSteps(shares[1:], values[1:])
    return found


def _alarm(saved: SavedModel, center: Center, alarms: AlarmSettings, at_most: str) -> AlarmRecipe:
    """Return when rows raise an alarm, with the limits that `history.detection` compares with."""
    model, own = saved.model, center.own
    kinds = WITH_FACTORS if model.factors else WITHOUT_FACTORS
    row_s = (0.0 if saved.learnt is None else saved.learnt.period_s) or 1.0
    detector = watching(saved.learnt or Learnt(model), alarms)
    settled = own is None or own.settled
    # Where the mean does not cover a day, the largest error of a channel raises no alarm.
    known = [kind for kind in _order(kinds) if kind != "channel" or (_typical(center) and settled)]
    limits = {kind: detector.limit(kind, settled=settled) for kind in known}
    limits = {kind: limit for kind, limit in limits.items() if limit < math.inf}
    return AlarmRecipe(
        alarms.after,
        alarms.of,
        LONGER * alarms.of,
        limits,
        {kind: limit * detector.limits.calm(kind) for kind, limit in limits.items()},
        detector.limits.provisional_s / row_s,
        at_most,
    )


def _order(kinds: tuple[By, ...]) -> list[By]:
    """Return kinds in the order in which alarms compare them: `smoothed` is the last."""
    return sorted((kind for kind in kinds if kind != "linear"), key=lambda kind: kind == "smoothed")

"""Recipe: everything that scoring a row needs, as plain arrays and numbers.

Of a row x (d,), in its units, a program outside Python computes

    s = (x - offset) / scale              refused if one is NaN, or not below `largest` in size
    c = s - mean
    y = inverse_roots * c                 in units of each channel's noise
    z = gains * (y @ loadings)            loadings (d, k), in units of the noise
    e = y - loadings @ z
    distance = (e.e + z.z) / excess       where `by_distance`
    v = c @ basis                         basis (d, r)
    spe = |c - basis @ v|^2 / excess      0 where `complete`
    t2 = (v^2 . t2_weights) / excess
    error_j = error_weights_j * e_j       of predicting channel j from all the others, scaled
    blame_j = blame_weights_j * e_j^2     divided by their sum: the share of channel j
    channel = max_j channel_weights_j * e_j^2

`interpreter.py` computes exactly that, row by row; the tests compare it with `judge.score`.

1. It is made of a model file alone, and has no reference to it. Nothing here reads a file.
2. Loadings are turned so that their columns are orthogonal: then z needs `gains` alone, and no
   matrix beside the loadings. Distances and errors do not change by that.
3. Models of a kernel or with lags are refused: a program for them needs more than one row's
   readings, or a map with thousands of numbers.

What a client does beside this is left out: it fills gaps, follows drift and a mean of its own,
learns typical errors, finds stuck channels, and ends an alarm at a new level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from submerge._linalg import EPS, Array
from submerge.client.detect import LONGER
from submerge.client.detector import AlarmDetector
from submerge.errors import UsageError
from submerge.history.settings import SOON
from submerge.judge.prepare import LARGEST_SCALED
from submerge.pca.precision import Precision
from submerge.pca.reconstruct import KNOWN, Reconstruction
from submerge.pca.subspace import Subspace
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Scaling
from submerge.stats.block_maxima import WITH_FACTORS, WITHOUT_FACTORS, By
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.score_limits import Limits, LimitSteps
from submerge.stats.smoothing import WEIGHT
from submerge_fleet.operate.model_file import SavedModel
from submerge_fleet.python.scoring import FrameScorer
from submerge_fleet.score.columns import lags_of
from submerge_fleet.score.mean import Center

SCORES: tuple[By, ...] = ("distance", "spe", "t2")
"""Scores of single rows that a person may choose one of."""

MOST_NUMBERS = 4_000_000
"""Most numbers in a recipe: each takes some 20 bytes of a program's text."""


@dataclass(frozen=True, slots=True, eq=False)
class AlarmRecipe:
    """When rows raise an alarm.

    The statistic of a row is the `after`-th largest of the last `of` scores of a kind, where scores
    before the first row are 0. `smoothed` is its own statistic: s = weight m + (1 - weight) s', m
    the median of the newest three distances and s' the value before; s = m where s' is 0 or not
    finite. At first s' is 0.

    A row is over where a statistic is above its limit. An alarm begins there, and ends at the last
    of `ends_after` rows in which no statistic was above its `calm` value. Rows that are refused
    change nothing.

    Attributes
    ----------
    after, of, ends_after : int
    limits, calm : mapping of kind to float
        Of the kinds that alarms are raised by, in their order; all finite.
    provisional_rows : float
        Rows in which such limits are exceeded about once, if they are provisional; else 0.
    at_most : str
        The rate of false alarms that was asked for.
    weight : float
        Of the newest median, in `smoothed`.
    """

    after: int = SOON.after
    of: int = SOON.of
    ends_after: int = LONGER * SOON.of
    limits: Mapping[By, float] = field(default_factory=dict)
    calm: Mapping[By, float] = field(default_factory=dict)
    provisional_rows: float = 0.0
    at_most: str = ""
    weight: float = WEIGHT

    @property
    def kinds(self) -> tuple[By, ...]:
        """What alarms are raised by, in order."""
        return tuple(self.limits)

    @property
    def windows(self) -> tuple[By, ...]:
        """Kinds whose last scores are remembered."""
        return tuple(kind for kind in self.limits if kind != "smoothed")


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Everything that scoring a row needs; the module says how it is used.

    Attributes
    ----------
    group, version, fingerprint : str, int, str
        Of the model.
    channels, units : tuple of str
    period_s : float
        Time that a row stands for, seconds; 0 without times.
    offset, scale, mean : (d,)
    inverse_roots : (d,)
    loadings, gains : (d, k), (k,)
    basis, t2_weights : (d, r), (r,)
    error_weights, blame_weights : (d,)
    channel_weights : (d,) or None
        None where typical errors of a day are not known; then there is no `channel`.
    scores : tuple of kind
        Scores of single rows that are computed: of `SCORES`.
    limits : mapping of kind to LimitSteps
        Shares of normal rows, and the scores that they are below, ascending; of each of `scores`.
    alarm : AlarmRecipe
    excess : float
    complete : bool
        Whether the basis spans all: SPE is 0.
    largest : float
        Scaled numbers have to be smaller in size.
    """

    group: str
    version: int
    fingerprint: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    period_s: float
    offset: Array
    scale: Array
    mean: Array
    inverse_roots: Array
    loadings: Array
    gains: Array
    basis: Array
    t2_weights: Array
    error_weights: Array
    blame_weights: Array
    channel_weights: Array | None
    scores: tuple[By, ...]
    limits: Mapping[By, LimitSteps]
    alarm: AlarmRecipe
    excess: float = 1.0
    complete: bool = False
    largest: float = LARGEST_SCALED

    @property
    def dim(self) -> int:
        """Number of channels."""
        return len(self.channels)

    @property
    def by_distance(self) -> bool:
        """Whether distances are computed."""
        return "distance" in self.scores

    def only(self, kind: By) -> Recipe:
        """Return the recipe of one score, and of the alarms that follow from it alone.

        Raises
        ------
        UsageError
            If the model does not have that score.
        """
        if kind not in self.scores:
            known = ", ".join(self.scores)
            raise UsageError(f"expected a statistic of the model ({known}), got {kind}")
        kinds = [each for each in self.alarm.kinds if each in _with_smoothed(kind)]
        alarm = replace(
            self.alarm,
            limits={each: self.alarm.limits[each] for each in kinds},
            calm={each: self.alarm.calm[each] for each in kinds},
        )
        limits = {kind: self.limits[kind]} if kind in self.limits else {}
        return replace(self, scores=(kind,), limits=limits, alarm=alarm, channel_weights=None)


def _with_smoothed(kind: By) -> tuple[By, ...]:
    return ("distance", "smoothed") if kind == "distance" else (kind,)


def recipe_of(
    saved: SavedModel,
    *,
    machine: str | None = None,
    alarms: AlarmSettings = SOON,
    at_most: str = "1 false per week",
) -> Recipe:
    """Return the recipe of a model.

    Parameters
    ----------
    machine : str, optional
        Whose mean and typical errors; needed where each machine has its own mean.
    alarms : AlarmSettings
        The rate of false alarms, and of how many rows they are raised.
    at_most : str
        The same rate, in words.

    Raises
    ------
    UsageError
        If the model has a kernel or lags, has learnt nothing, is too wide, or the machine is not
        known.
    """
    schema = saved.schema
    if not schema.linear or lags_of(schema.names) > 1:
        what = "lags" if schema.linear else "a kernel"
        raise UsageError(
            f"expected a model of single rows without a kernel, got one with {what} in"
            f" {saved.whence}: `submerge score` takes it"
        )
    scorer = FrameScorer.of(saved, machine)
    normal, center = scorer.normal, scorer.center
    shown = normal.shown.shown(normal.summary).parts[0].shown
    readings = normal.summary.parts[0] if normal.factors else shown
    if not readings.rank:
        raise UsageError(f"{saved.whence} has learnt no directions yet: export a later one")
    precision = Precision.of(readings, *normal.factors[:1])
    if precision.loadings.size + shown.basis.size > MOST_NUMBERS:
        raise UsageError(
            f"expected a model of at most {MOST_NUMBERS:,} numbers, got"
            f" {precision.loadings.size + shown.basis.size:,}: fit it with fewer channels"
        )
    width, basis = schema.width, np.asarray(shown.basis, dtype=np.float64)
    scaling = schema.scaling or Scaling((0.0,) * width, (1.0,) * width)
    columns, sizes, _ = np.linalg.svd(precision.loadings, full_matrices=False)
    scores: tuple[By, ...] = SCORES if normal.factors else SCORES[1:]
    expected = Reconstruction(readings, width, precision).expected
    errors, typical, own = expected / precision.roots, _typical(center), center.own
    channel_weights = None if typical is None else errors**2 * typical.weights(expected)
    return Recipe(
        group=saved.model.group,
        version=saved.model.version,
        fingerprint=saved.model.fingerprint,
        channels=schema.names,
        units=tuple(each.unit for each in schema.named),
        period_s=0.0 if saved.learnt is None else saved.learnt.period_s,
        offset=np.array(scaling.offset),
        scale=np.array(scaling.scale),
        mean=np.asarray(readings.mean if own is None else own.rows, dtype=np.float64),
        inverse_roots=1 / precision.roots,
        loadings=columns * sizes,
        gains=1 / (1 + sizes**2),
        basis=basis,
        t2_weights=_t2_weights(shown),
        error_weights=errors,
        blame_weights=errors**2 / _usual(expected, typical),
        channel_weights=channel_weights,
        scores=scores,
        limits={} if normal.limits is None else _steps(normal.limits, scores),
        alarm=_alarm(saved, machine, center, alarms, at_most),
        excess=1.0 if own is None else own.excess,
        complete=shown.rank == shown.dim,
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


def _alarm(
    saved: SavedModel, machine: str | None, center: Center, alarms: AlarmSettings, at_most: str
) -> AlarmRecipe:
    """Return when rows raise an alarm, with the limits that `history.detection` compares with."""
    model, own = saved.model, center.own
    kinds = WITH_FACTORS if model.factors else WITHOUT_FACTORS
    row_s = (0.0 if saved.learnt is None else saved.learnt.period_s) or 1.0
    detector = AlarmDetector.of(
        machine or "machine", replace(alarms, period_s=row_s), saved.schema.names
    ).with_maxima(model.maxima, kinds, model.widened, model.block_s, model.counts.learnt)
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

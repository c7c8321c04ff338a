"""Rows judged by a model: the way that a client's readings take, but nothing is learnt.

As in a client: readings are scaled, gaps are filled by what the row does show if that is half
of it or more, what is too large to be a reading is left out; then SPE and T2, and the channels
that SPE comes from, by whichever of a kernel group's two kinds is the more odd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from submerge import Array
from submerge.client.incarnation import LARGEST_SCALED
from submerge.client.monitor import LEAST_LEFT, PATTERNS
from submerge.condition import Condition
from submerge.stats.node_mean import OwnMean
from submerge_fleet.score.model import Normal

WHY = ("", "lead-in", "other state", "gaps", "too large")
"""Why a row has no score; the first has one. A lead-in has no past yet to be laid beside."""

LEAD_IN, OTHER, GAPS, LARGE = range(1, len(WHY))

TOP = 3
"""Channels that are named of each row."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Rows of which scores can be made, and why none can of the others.

    why : (n,), places in `WHY`
    scaled : (m, channels), of those that can; without gaps
    features : (m, dim)
    gaps : (m, channels), true where a number was filled in
    """

    why: npt.NDArray[np.int8]
    scaled: Array
    features: Array
    gaps: Mask


@dataclass(frozen=True, slots=True, eq=False)
class ScoredBlock:
    """Some rows of one file, one after another, and how odd they are.

    first : the number of the first in its file, from 1
    why : (n,), places in `WHY`
    spe, t2 : (m,), of the rows that have scores
    linear, odd : (m,), in a kernel group; `odd` with limits only; else None
    over, over_t2 : (m,), the highest share of the limits that SPE (of either kind) and T2 are
        above, 0 for none; what was filled in cannot be odd, and is allowed for
    rank : (m,), by what the oddest are told
    top : (m, up to TOP), channels that SPE comes from, the largest share first
    shares : as `top`, their shares
    gaps : (m, channels), true where a number was filled in
    readings : (m, channels), in the channels' units, without gaps
    """

    first: int
    why: npt.NDArray[np.int8]
    spe: Array
    t2: Array
    linear: Array | None
    anomaly_score: Array | None
    over: Array
    over_t2: Array
    rank: Array
    top: npt.NDArray[np.intp]
    shares: Array
    gaps: Mask
    readings: Array


class Judge:
    """Judges rows by one model.

    Parameters
    ----------
    normal : Normal
    when : Condition, optional
        Rows for which it does not hold have no scores.
    mean : OwnMean, optional
        What to measure from instead of the model's.
    """

    def __init__(
        self,
        normal: Normal,
        when: Condition | None = None,
        mean: OwnMean | None = None,
    ) -> None:
        self._normal, self._when = normal, when
        self._summary = normal.summary
        if mean is not None:
            self._summary = normal.shown.placed(normal.summary, mean)
        self._scoring = normal.shown.scorer(self._summary)
        self._shares: dict[bytes, tuple[float, float]] = {}

    def prepared(self, rows: Array) -> Prepared:
        """Scale and fill rows (n, channels) in their units, lags included."""
        schema = self._normal.schema
        scaled = schema.scaled(rows)
        gaps = np.isnan(scaled)
        why = np.zeros(len(rows), dtype=np.int8)
        why[2 * gaps.sum(axis=1) > gaps.shape[1]] = GAPS
        why[np.isinf(scaled).any(axis=1)] = LARGE
        if self._when is not None:
            why[~self._when.holds(rows)] = OTHER
        some = gaps.any(axis=1) & (why == 0)
        if some.any():
            scaled = scaled.copy()
            scaled[some] = self._normal.shown.filled(scaled[some], self._summary)
        why[(why == 0) & ~(np.abs(scaled) < LARGEST_SCALED).all(axis=1)] = LARGE
        features = scaled[why == 0]
        if not schema.linear:
            features = np.asarray(schema.features.lift(features), dtype=np.float64)
            # Products of readings may be too large where each of them is not.
            bearable = (np.abs(features) < LARGEST_SCALED).all(axis=1)
            why[np.flatnonzero(why == 0)[~bearable]] = LARGE
            features = features[bearable]
        fine = why == 0
        return Prepared(why, scaled[fine], features, gaps[fine])

    def judged(self, rows: Array, first: int, lead: int = 0) -> ScoredBlock:
        """Judge rows (n, channels) in their units, lags included.

        Parameters
        ----------
        rows : (n, channels)
        first : int
            The number of the first row in its file.
        lead : int
            Rows before these, the first among them, that have no past.
        """
        normal, schema, limits = self._normal, self._normal.schema, self._normal.limits
        ready = self.prepared(rows)
        spe, t2, linear = self._scoring.scores(ready.scaled, ready.features)
        # What nobody can tell, the readings do: features of what is far off are all alike.
        anomaly_score, by_linear = None, np.full(len(spe), linear is not None)
        if limits is not None and linear is not None:
            anomaly_score, by_linear = limits.anomaly_score(spe, linear)
        shares = normal.shown.contributions(
            ready.scaled, self._summary, schema, by_linear=by_linear
        )
        top = np.argsort(-shares, axis=1, kind="stable")[:, :TOP]
        over, over_t2 = np.zeros(len(spe)), np.zeros(len(spe))
        if limits is not None:
            left = self._left(ready.gaps)
            over = _over(spe / left[:, 0], limits.shares, limits.spe)
            over_t2 = _over(t2 / left[:, 1], limits.shares, limits.t2)
            if linear is not None:
                over = np.maximum(over, _over(linear, limits.shares, limits.linear))
        readings = ready.scaled
        if schema.scaling is not None:
            readings = readings * schema.scaling.scale + schema.scaling.offset
        readings_say = spe if linear is None else linear
        return ScoredBlock(
            first=first,
            why=np.concatenate([np.full(lead, LEAD_IN, dtype=np.int8), ready.why]),
            spe=spe,
            t2=t2,
            linear=linear,
            anomaly_score=anomaly_score,
            over=over,
            over_t2=over_t2,
            rank=readings_say if anomaly_score is None else anomaly_score,
            top=top,
            shares=np.take_along_axis(shares, top, axis=1),
            gaps=ready.gaps,
            readings=readings,
        )

    def _left(self, gaps: Mask) -> Array:
        """What is left of SPE and T2 where gaps (m, channels) were filled, (m, 2)."""
        left = np.ones((len(gaps), 2))
        for i in np.flatnonzero(gaps.any(axis=1)).tolist():
            pattern = gaps[i].tobytes()
            if pattern not in self._shares:
                if len(self._shares) >= PATTERNS:
                    self._shares.clear()
                self._shares[pattern] = self._normal.shown.shrunk(~gaps[i], self._summary)
            left[i] = self._shares[pattern]
        # Not beyond: of a row with few channels left a score says little.
        return np.maximum(left, LEAST_LEFT)


def _over(scores: Array, shares: tuple[float, ...], values: tuple[float, ...]) -> Array:
    """Return the highest share whose limit each score is above, 0 for none; (n,)."""
    highest = np.zeros(len(scores))
    for share, limit in zip(shares, values, strict=False):
        if share > 0.5:
            highest[scores > limit] = np.maximum(highest[scores > limit], share)
    return highest

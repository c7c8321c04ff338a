"""Intake: what becomes of a client's readings: scaled, filled, lifted, scored, and then learnt.

1. Rows are scored with the newest model before they are learnt.
2. Of the model nothing is learnt but what a gap was filled with.
3. Every row counts, as learnt or as withheld.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.life import LARGEST_SCALED, Life, Priorities
from submerge.limits import Tally
from submerge.messages import Model, Scores
from submerge.steps import Now, Scored
from submerge.summaries import Scoring, Summaries


class Intake:
    """The way of a client's readings into its life.

    Parameters
    ----------
    summaries : Summaries
    rng : numpy.random.Generator
        For what decides which rows a fleet settles gamma by.
    fills_gaps : bool
        As in `ClientSettings`.
    """

    def __init__(self, summaries: Summaries, rng: np.random.Generator, *, fills_gaps: bool) -> None:
        self._summaries, self._rng, self._fills_gaps = summaries, rng, fills_gaps
        self._spe, self._t2, self._linear = Tally(), Tally(), Tally()
        self._scoring: tuple[Model, Scoring] | None = None

    @property
    def scores(self) -> Scores | None:
        """How odd recent readings were; None before the first score."""
        spe, linear = self._spe.sketch, self._linear.sketch
        return Scores(spe, self._t2.sketch, linear if linear.n else None) if spe.n else None

    def read(self, rows: Array, life: Life, model: Model | None, now: Now) -> Scored | None:
        """Let a life learn rows (n, channels), in their units; return how odd the model finds them.

        Raises
        ------
        ShapeError
            If they have another number of channels than the schema; nothing changes.
        """
        schema = life.schema
        scaled, gaps = schema.scaled(rows), None
        # Of what is not settled nothing can be known: not whatever a parent says.
        knows = model is not None and model.summary is not None and life.learns
        if model is not None and not (knows and model.fingerprint == life.fingerprint):
            model = None
        if self._fills_gaps and not life.raw:
            gaps = np.isnan(scaled)
            scaled = self._filled(scaled, gaps, life, model, now)
        fine = life.usable(scaled)
        features = scaled = scaled[fine]
        if life.learns and not schema.linear:
            features = schema.features.lift(scaled)
            # Products of readings may be too large where each of them is not.
            bearable = (np.abs(features) < LARGEST_SCALED).all(axis=1)
            fine[fine] = bearable
            scaled, features = scaled[bearable], features[bearable]
        life.withhold(len(rows) - len(scaled))
        scored = None
        if model is not None and len(scaled):
            spe, t2, linear = self._scorer(model).scores(scaled, features)
            for tally, told in ((self._spe, spe), (self._t2, t2), (self._linear, linear)):
                if told is not None:
                    tally.add(told)
            which, filled = np.flatnonzero(fine), None if gaps is None else gaps[fine]
            expired = now.wall > model.expires
            scored = Scored(spe, t2, linear, scaled, which, filled, model.version, expired)
        life.learn(scaled, features, now, self._priorities(len(scaled), life))
        return scored

    def _scorer(self, model: Model) -> Scoring:
        """What scores with a model: made once, for the newest."""
        if self._scoring is None or self._scoring[0] is not model:
            self._scoring = model, self._summaries.scorer(model.summary)
        return self._scoring[1]

    def _priorities(self, n: int, life: Life) -> Priorities | None:
        """Draw what decides which rows a fleet settles gamma by.

        Where their scaling is not known either they have no common size: moments must do.
        """
        if life.learns or life.raw or life.schema.features.settled:
            return None
        return self._rng.integers(2**64, size=n, dtype=np.uint64)

    def _filled(
        self,
        scaled: Array,
        gaps: npt.NDArray[np.bool_],
        life: Life,
        model: Model | None,
        now: Now,
    ) -> Array:
        """Fill the gaps of rows that show enough: by the model, else by what was learnt here.

        Before either, by the scaling's own offset, which is zero here; without a scaling
        nothing is known yet, and the row is withheld.
        """
        some = gaps.any(axis=1) & ~np.isinf(scaled).any(axis=1)
        some &= 2 * gaps.sum(axis=1) <= gaps.shape[1]
        if not some.any():
            return scaled
        normal = life.summary(now) if model is None else model.summary
        if normal is None and life.schema.scaling is None:
            return scaled
        scaled = scaled.copy()
        if normal is None:
            scaled[some] = np.nan_to_num(scaled[some])
        else:
            scaled[some] = self._summaries.filled(scaled[some], normal)
        return scaled

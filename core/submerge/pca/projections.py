"""Projections: an engine's rows on the subspace that it shows, back, and their distance to it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import ShapeError
from submerge.pca.score import spe
from submerge.pca.subspace import Subspace


class Projections:
    """What an engine does with rows that it does not learn."""

    @property
    def shown(self) -> Subspace:
        """The subspace at the rank to show and to score with."""
        raise NotImplementedError

    def _checked(self, X: npt.ArrayLike) -> Array:
        """Return X as an (n, dim) array of usable numbers, or raise."""
        raise NotImplementedError

    def transform(self, X: npt.ArrayLike) -> Array:
        """Project rows X (n, dim) on the shown directions, (n, rank)."""
        shown = self.shown
        return np.asarray((self._checked(X) - shown.mean) @ shown.basis)

    def inverse_transform(self, Z: npt.ArrayLike) -> Array:
        """Return the points (n, dim) that projections Z (n, rank) stand for."""
        shown = self.shown
        Z = np.asarray(Z, dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != shown.rank:
            raise ShapeError("projections", expected=f"(n, {shown.rank})", got=Z.shape)
        return np.asarray(Z @ shown.basis.T + shown.mean)

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return each row's squared distance to the shown subspace, (n,): its SPE."""
        return spe(self._checked(X), self.shown)

"""Projections: rows as an engine takes them; on the subspace that it shows, back, and off it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, unmasked
from submerge.errors import ShapeError, UsageError
from submerge.features.sparse import is_sparse
from submerge.pca import sparse_rows
from submerge.pca.column_names import check_names, column_names
from submerge.pca.score import spe
from submerge.pca.subspace import Subspace, check_values
from submerge.schema import Schema


class Projections:
    """What an engine does with rows, beside learning them."""

    _schema: Schema
    _memory: object | None
    _largest: float

    @property
    def shown(self) -> Subspace:
        """The subspace at the rank to show and to score with."""
        raise NotImplementedError

    @property
    def _dim(self) -> int | None:
        """Columns of its rows, once they are known."""
        return self._schema.dim if self._memory else None

    def _checked(self, X: npt.ArrayLike) -> Array:
        """Return X as an (n, dim) array of usable numbers, or raise."""
        if is_sparse(X):
            # What is asked of rows is as long as they are: they may as well be dense.
            return np.asarray(sparse_rows.checked(X, self._dim, self._largest).toarray())
        rows, dim = np.asarray(unmasked(X)), self._dim
        if rows.ndim != 2 or dim not in (None, rows.shape[1]):
            raise ShapeError("rows", expected=f"(n, {dim or 'dim'})", got=rows.shape)
        if rows.dtype.kind not in "fiub":
            raise UsageError(f"rows must be real numbers, got dtype {rows.dtype}")
        if self._memory and rows is not X:
            check_names(column_names(X), self._schema)
        # Numbers stored as float32 must fit it, and so must their distance to the mean.
        check_values(rows, self._largest)
        return rows

    def transform(self, X: npt.ArrayLike) -> Array:
        """Project rows X (n, dim) on the shown directions, (n, rank)."""
        shown = self.shown
        return np.asarray((self._checked(X) - shown.mean) @ shown.basis)

    def inverse_transform(self, Z: npt.ArrayLike) -> Array:
        """Return the points (n, dim) that projections Z (n, rank) stand for."""
        shown = self.shown
        Z = np.asarray(unmasked(Z), dtype=np.float64)
        if Z.ndim != 2 or Z.shape[1] != shown.rank:
            raise ShapeError("projections", expected=f"(n, {shown.rank})", got=Z.shape)
        return np.asarray(Z @ shown.basis.T + shown.mean)

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return each row's squared distance to the shown subspace, (n,): its SPE."""
        return spe(self._checked(X), self.shown)

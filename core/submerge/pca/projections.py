"""Projections: rows as an engine takes them; on the subspace that it shows, back, and off it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, unmasked
from submerge.errors import ShapeError, UsageError
from submerge.features.sparse import is_sparse
from submerge.pca import sparse_rows
from submerge.pca.score import spe
from submerge.pca.subspace import Subspace, check_values
from submerge.schema import Channel, Schema

MOST_NAMED = 3
"""Most columns that a line names."""


def column_names(X: Any) -> tuple[str, ...]:
    """Return the names of a table's columns (pandas, polars, pyarrow); () without usable names."""
    if type(X) is np.ndarray:
        return ()  # at once: calls of one row are many
    found = getattr(X, "columns", None) if not hasattr(X, "column_names") else X.column_names
    names = tuple(found) if isinstance(found, Iterable) else ()
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return ()
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        return ()
    return names


def schema_of(names: tuple[str, ...], dim: int, *, center: bool) -> Schema:
    """Return the schema of rows with such columns; an anonymous one without names."""
    channels = tuple(map(Channel, names)) if len(names) == dim else dim
    return Schema(channels, center="fleet" if center else "none")


def check_names(names: tuple[str, ...], schema: Schema) -> None:
    """Refuse columns of other names, or in another order, than those that were learnt."""
    if not names or not schema.linear or isinstance(schema.channels, int):
        return
    known = schema.names
    if len(names) != len(known) or names == known:
        return
    pairs = [(ours, theirs) for ours, theirs in zip(known, names, strict=True) if ours != theirs]
    expected, got = (", ".join(side[:MOST_NAMED]) for side in zip(*pairs, strict=True))
    more = " ..." if len(pairs) > MOST_NAMED else ""
    cure = "give them in that order" if set(names) == set(known) else "select those"
    raise UsageError(f"expected columns {expected}{more}, got {got}{more}: {cure}")


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

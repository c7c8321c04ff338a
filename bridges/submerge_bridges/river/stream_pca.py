"""StreamPCA: principal components of a stream, with river's interface.

It learns rows in blocks (`named_rows`): two rows' components compare while the subspace stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from river import base

from submerge._linalg import Array
from submerge.errors import NothingLearnt, whole
from submerge.judge.prepare import LARGEST_SCALED, prepare
from submerge.pca.expectation import Guesses
from submerge.pca.missing import fill
from submerge.pca.sapca import SAPCA
from submerge.pca.subspace import Subspace
from submerge.schema import Channel, Schema
from submerge_bridges.river.named_rows import NamedRows, OfNamedRows

BLOCK = 32  # rows that are learnt at once


class StreamPCA(OfNamedRows, base.Transformer):
    """Principal components of a stream, in one pass.

    Parameters
    ----------
    n_components : int
        Components to show. They are the features "pca0", "pca1" and so on.
    forgetting_factor : float in (0, 1]
        Each row multiplies the weight of earlier rows by this; 1 forgets nothing.
    grace_period : int
        Rows before the first components; all are 0 until then. The features that occur in these
        rows are the channels from then on.

    Attributes
    ----------
    channels : tuple
        The features that are learnt, sorted by name; empty before the first components.
    unknown : int
        Values that were left out because their feature is not one of them.
    subspace : Subspace
        All that was learnt. Streams with the same channels merge: `submerge.merge`.

    Notes
    -----
    A feature that is missing, None or NaN is a gap, which is filled with its most likely value. A
    row is learnt if it has at least half of the channels, all below 1e12.

    Where there are fewer directions than components, the others are 0. A component has the sign
    that makes the largest entry of its direction positive.

    Examples
    --------
    >>> import numpy as np
    >>> from river import preprocessing
    >>> from submerge_bridges.river import StreamPCA
    >>> rng = np.random.default_rng(0)
    >>> model = preprocessing.StandardScaler() | StreamPCA(n_components=1)
    >>> for flow in rng.normal(30, 5, size=500):
    ...     model.learn_one({"flow": flow, "current": flow / 3 + rng.normal(0, 0.1)})
    >>> low, high = ({"flow": flow, "current": flow / 3} for flow in (20, 40))
    >>> model.transform_one(low)["pca0"] < 0 < model.transform_one(high)["pca0"]
    True
    """

    def __init__(
        self, n_components: int = 2, forgetting_factor: float = 1.0, grace_period: int = 64
    ) -> None:
        self.n_components = whole("n_components", n_components, least=1)
        self.forgetting_factor = forgetting_factor
        self.grace_period = whole("grace_period", grace_period, least=2)
        self._rows = NamedRows(first=self.grace_period, block=BLOCK)
        # Until channels are named; it checks the other parameters.
        self._engine = SAPCA(n_components, forgetting_factor=forgetting_factor)

    def learn_one(self, x: dict[base.typing.FeatureName, Any]) -> None:
        """Learn a row.

        Raises
        ------
        UsageError
            If a feature is not a number, or there are more than 512 of them.
        """
        rows = self._rows.add(x)
        if rows is None:
            return
        schema = self._engine.schema
        if schema is None:
            schema = _schema_of(self.channels)
            self._engine = SAPCA(
                min(self.n_components, schema.dim),
                forgetting_factor=self.forgetting_factor,
                schema=schema,
            )
        block = prepare(rows, schema, fill=self._filled)
        if len(block):
            gaps = None if block.gaps is None else Guesses(block.gaps)
            self._engine.partial_fit(block.features, gaps=gaps)

    def transform_one(
        self, x: dict[base.typing.FeatureName, Any]
    ) -> dict[base.typing.FeatureName, float]:
        """Return the components of a row; all 0 before the first are known."""
        shown = np.zeros(self.n_components)
        if self._engine.n_samples_seen:
            row = np.clip(self._rows.row(x), -LARGEST_SCALED, LARGEST_SCALED)
            found = self._engine.transform(self._filled(row))[0]
            shown[: len(found)] = found
        return {f"pca{i}": value for i, value in enumerate(shown.tolist())}

    @property
    def subspace(self) -> Subspace:
        """All that was learnt.

        Raises
        ------
        NothingLearnt
            Before the first components are known.
        """
        if not self._engine.n_samples_seen:
            raise NothingLearnt(
                f"expected a stream of at least grace_period={self.grace_period} rows, got fewer"
            )
        return self._engine.subspace

    def _filled(self, rows: Array) -> Array:
        """Return rows (n, channels) with the most likely values in their gaps."""
        if self._engine.n_samples_seen:
            return fill(rows, self._engine.subspace)[0]
        known = np.isfinite(rows)
        sums = np.where(known, rows, 0.0).sum(axis=0)
        return np.where(known, rows, sums / np.maximum(known.sum(axis=0), 1))


def _schema_of(channels: tuple[base.typing.FeatureName, ...]) -> Schema:
    """Return the schema of channels: with their names, if all are text."""
    names = [name for name in channels if isinstance(name, str)]
    return Schema(tuple(map(Channel, names)) if len(names) == len(channels) else len(channels))

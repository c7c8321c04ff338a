"""StreamDetector: anomalous rows of a stream, with river's interface (docs/decisions/0054)."""

from __future__ import annotations

from typing import Any

from river import base

from submerge.errors import whole
from submerge.history.layout import LEAST_ROWS
from submerge.incremental import CurrentModel, RowModel
from submerge_bridges.river.named_rows import NamedRows, OfNamedRows

try:
    from river.base import AnomalyDetector
except ImportError:  # before river 0.26
    from river.anomaly.base import AnomalyDetector  # type: ignore[no-redef]

BLOCK = LEAST_ROWS
"""Rows that are learnt at once, as in the shortest spans of time that a history is cut into."""


class StreamDetector(OfNamedRows, AnomalyDetector):
    """Anomaly detection by the correlations of the features.

    A row's score is its squared Mahalanobis distance, by a covariance of what features share and a
    noise of its own for each. Features are scaled inside: no scaler is needed before it.

    Parameters
    ----------
    grace_period : int
        Rows before the first model. Their score is 0. The features that occur in them are the
        channels from then on.
    window : int, optional
        The model is of the last `window` to twice as many rows. By default it is of all rows, and
        forgets nothing.

    Attributes
    ----------
    channels : tuple
        The features that are learnt, sorted by name; empty before the first model.
    unknown : int
        Values that were left out because their feature is not one of them.
    learnt : tuple of int
        The model is of the rows from the first of these numbers up to the second.

    Notes
    -----
    A feature that is missing, None or NaN is a gap. A row is scored by the features it has, and its
    score is corrected for the others; a row with none of them is normal. A row is learnt if it has
    at least half of them, and all are below 1e12. An infinite value has a very high score.

    Rows are learnt 64 at a time, and the model is made again when there are an eighth more of them.
    So the score of a row depends on the rows before it, and on no others.

    Examples
    --------
    >>> import numpy as np
    >>> from river import anomaly
    >>> from submerge_bridges.river import StreamDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = anomaly.QuantileFilter(StreamDetector(), q=0.99)
    >>> for flow in rng.normal(30, 5, size=1000):
    ...     row = {"flow": flow, "current": flow / 3 + rng.normal(0, 0.1), "rpm": 1480}
    ...     detector.learn_one(row)
    >>> odd = {"flow": 36.0, "current": 10.0, "rpm": 1480}
    >>> detector.classify(detector.score_one(odd))
    True
    >>> detector.anomaly_detector.expected_one(odd)["current"] < 12.5
    True
    """

    def __init__(self, grace_period: int = 64, window: int | None = None) -> None:
        self.grace_period = whole("grace_period", grace_period, least=2)
        self.window = None if window is None else whole("window", window, least=grace_period)
        self._rows = NamedRows(first=self.grace_period, block=BLOCK)
        self._current: CurrentModel | None = None

    def learn_one(self, x: dict[base.typing.FeatureName, Any]) -> None:
        """Learn a row.

        Raises
        ------
        UsageError
            If a feature is not a number, or there are more than 512 of them.
        """
        block = self._rows.add(x)
        if block is None:
            return
        if self._current is None:
            self._current = CurrentModel(
                block.shape[1], first=self.grace_period, window=self.window
            )
        self._current.add(block)

    def score_one(self, x: dict[base.typing.FeatureName, Any]) -> float:
        """Return the squared distance of a row: a high one is anomalous, 0 without a model."""
        model = self._model
        return 0.0 if model is None else float(model.distances(self._rows.row(x))[0])

    def contributions_one(
        self, x: dict[base.typing.FeatureName, Any]
    ) -> dict[base.typing.FeatureName, float]:
        """Return the share of each channel in what is anomalous about a row.

        Shares have the sum 1. All are 0 for a row that is as predicted, and there are none without
        a model.
        """
        model = self._model
        shares = () if model is None else model.shares(self._rows.row(x))[0].tolist()
        return dict(zip(self.channels, shares, strict=False))

    def expected_one(
        self, x: dict[base.typing.FeatureName, Any]
    ) -> dict[base.typing.FeatureName, float]:
        """Return each channel as the others predict it, in its unit; none without a model."""
        model = self._model
        expected = () if model is None else model.predicted(self._rows.row(x))[0].tolist()
        return dict(zip(self.channels, expected, strict=False))

    @property
    def learnt(self) -> tuple[int, int]:
        """From which row and up to which the model is."""
        current = self._current
        return (0, 0) if current is None else (current.start, current.stop)

    @property
    def _model(self) -> RowModel | None:
        return None if self._current is None else self._current.model

"""SubspaceOD: `submerge.sklearn.SubspaceDetector` with PyOD's signs, names and thresholds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pyod.models.base import BaseDetector
from sklearn.utils.validation import check_is_fitted

from submerge._linalg import Array
from submerge.sklearn.fit_parts import all_or_nothing
from submerge.sklearn.subspace_detector import SubspaceDetector


class SubspaceOD(BaseDetector):  # type: ignore[misc]
    """Outlier detection by the correlations of the columns.

    A row's score is its squared Mahalanobis distance, by a covariance of what columns share and a
    noise of its own for each. Columns are scaled inside.

    Parameters
    ----------
    contamination : float in (0, 0.5]
        Share of the rows of `fit` that are outliers. PyOD's default, a tenth, is far too many for
        machines: set what you expect.
    rank : "auto" or int
        Directions that columns share, which `detector_` shows. Scores do not depend on them.
    rank_max : int
        Most directions to choose from.

    Attributes
    ----------
    decision_scores_ : (n_samples,)
        Scores of the rows of `fit`: high is anomalous.
    threshold_ : float
        The score above which a row is an outlier.
    labels_ : (n_samples,)
        1 for the outliers among the rows of `fit`, 0 for the others.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where X had any that are strings.
    detector_ : SubspaceDetector
        What was learnt. Its `expected` says what each value should be.

    See Also
    --------
    submerge.sklearn.SubspaceDetector : Has a threshold by rows that were not learnt, and learns on.

    Notes
    -----
    Rows are learnt in order: spans of them that are unlike all others are left out, up to a tenth.
    A gap (NaN) is what the rest of the row says.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge_bridges.pyod import SubspaceOD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 2)) @ rng.standard_normal((2, 6))
    >>> X += 0.1 * rng.standard_normal(X.shape)
    >>> detector = SubspaceOD(contamination=0.01).fit(X)
    >>> int(detector.labels_.sum())
    20
    >>> row = X[[X[:, 3].argmax()]]
    >>> row[0, 3] = -row[0, 3]
    >>> detector.predict(row), int(detector.contributions(row).argmax())
    (array([1]), 3)
    """

    decision_scores_: Array
    threshold_: float
    labels_: npt.NDArray[np.int64]

    def __init__(
        self, contamination: float = 0.1, rank: str | int = "auto", rank_max: int = 16
    ) -> None:
        super().__init__(contamination=contamination)
        self.rank = rank
        self.rank_max = rank_max

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn rows X (n_samples, n_features), oldest first.

        Raises
        ------
        UsageError
            If there are fewer than two rows, nothing varies, or a parameter is not usable.
        """
        with all_or_nothing(self):
            self._set_n_classes(y)
            self.detector_ = SubspaceDetector(self.rank, rank_max=self.rank_max).fit(X)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.detector_, name):
                    setattr(self, name, getattr(self.detector_, name))
            self.decision_scores_ = self.decision_function(X)
            self._process_decision_scores()
        return self

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return the squared distances of rows (n_samples,): high is anomalous."""
        check_is_fitted(self, ["detector_"])
        return -self.detector_.score_samples(X)

    def contributions(self, X: npt.ArrayLike) -> Array:
        """Return the share of each column in what is anomalous about each row.

        Returns
        -------
        (n_samples, n_features), each row with the sum 1; all 0 for a row that is as predicted.
        """
        check_is_fitted(self, ["detector_"])
        return self.detector_.contributions(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

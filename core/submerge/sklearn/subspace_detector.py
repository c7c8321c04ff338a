"""SubspaceDetector: anomalous rows, found as a client finds them, with scikit-learn's interface.

In scikit-learn a high score is normal, elsewhere in submerge anomalous: what scikit-learn has a
name for follows it. Rows are scored one by one (`pca.factor`); `history.detection` joins them.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from submerge._linalg import Array
from submerge.errors import UsageError, whole
from submerge.history.settings import FitSettings
from submerge.incremental import RowHistory, RowModel
from submerge.sklearn.fit_parts import all_or_nothing, validated

MOST_CONTAMINATION = 0.5


class SubspaceDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Outlier detection by the correlations of the columns, learnt from rows in order of time.

    Parameters
    ----------
    rank : "auto" or int
        Directions that columns share. "auto" chooses by the likelihood of rows that were not
        learnt.
    rank_max : int
        Most directions to choose from.
    contamination : "auto" or float in (0, 0.5]
        "auto": the rows of `fit` are normal, and the threshold is the one that a share
        `false_share` of them exceed while they are not learnt. A number: as in scikit-learn's
        detectors, the share of the rows of `fit` that are outliers; exactly that share is beyond
        the threshold.
    false_share : float in (0, 0.5]
        With contamination="auto", the share of normal rows that are predicted to be outliers.

    Attributes
    ----------
    threshold_ : float
        The squared distance beyond which a row is an outlier.
    offset_ : float
        -threshold_: decision_function = score_samples - offset_.
    rank_ : int
        Directions shown.
    components_ : (rank_, n_features)
        Orthonormal directions of the columns over their `scale_`, most variance first.
    mean_, scale_ : (n_features,)
        Mean and standard deviation of the columns. A constant column has scale 1.
    covariance_ : (n_features, n_features)
        Of the columns in their units: what they share, and a noise of its own for each. Distances
        are measured by it.
    n_samples_seen_ : int
        Rows that came, those that could not be learnt among them.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where the first X had any that are strings: they must differ.

    See Also
    --------
    sklearn.covariance.EllipticEnvelope : Distances by a robust covariance of independent rows.

    Notes
    -----
    A gap (NaN) counts as what the rest of the row says, and scores are corrected for it. A row
    with few values is scored by those it has, and a row without any is normal. Rows with less than
    half of their values are not learnt, nor are rows with a reading of 1e12 or more.

    `fit` leaves out up to a tenth of the spans of time if they are unlike all others: a fault in
    the history must not become normal.

    `partial_fit` learns the same summaries as `fit`, in memory that does not grow with the number
    of rows. Its threshold is measured on rows as they come, each scored before it is learnt, after
    the first 512. It is that of the last 8192 to 16384 such rows: a fault among them raises it for
    so long. With a number for `contamination`, so many of these rows are beyond it.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge.sklearn import SubspaceDetector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 2)) @ rng.standard_normal((2, 6))
    >>> X += 0.1 * rng.standard_normal(X.shape)
    >>> detector = SubspaceDetector().fit(X)
    >>> row = X[[X[:, 3].argmax()]]
    >>> row[0, 3] = -row[0, 3]
    >>> detector.predict(row), int(detector.contributions(row).argmax())
    (array([-1]), 3)
    """

    _history: RowHistory
    _share: float
    _limit: float | None

    def __init__(
        self,
        rank: str | int = "auto",
        *,
        rank_max: int = 16,
        contamination: str | float = "auto",
        false_share: float = 0.01,
    ) -> None:
        self.rank = rank
        self.rank_max = rank_max
        self.contamination = contamination
        self.false_share = false_share

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn rows X (n_samples, n_features), oldest first, and forget everything before.

        Raises
        ------
        UsageError
            If there are fewer than two rows, nothing varies, or a parameter is not usable.
        """
        with all_or_nothing(self):
            rows = self._begin(X)
            if len(rows) < 2:
                raise UsageError("fit expects at least 2 rows, got n_samples=1")
            self._history.add(rows)
            # Made now, so that a fit that cannot have a model fails.
            model = self._model
            if self.contamination != "auto":
                self._limit = float(-np.percentile(-model.distances(rows), 100 * self._share))
        return self

    def partial_fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn more rows X (n_samples, n_features), one or many, oldest first."""
        with all_or_nothing(self):
            rows = self._checked(X) if self.__sklearn_is_fitted__() else self._begin(X)
            self._history.add(rows)
            self._limit = None
        return self

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return the negative squared distances of rows (n_samples,): high is normal."""
        check_is_fitted(self)
        return -self._model.distances(self._checked(X))

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return `score_samples` less `offset_`, (n_samples,): negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return 1 for normal rows and -1 for outliers, (n_samples,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def contributions(self, X: npt.ArrayLike) -> Array:
        """Return the share of each column in what is anomalous about each row.

        The share is that of the squared error of predicting the column from all the others, over
        its expected one (reconstruction-based; Alcala and Qin, Automatica 45, 2009).

        Returns
        -------
        (n_samples, n_features), each row with the sum 1; all 0 for a row that is as predicted.
        """
        check_is_fitted(self)
        return self._model.shares(self._checked(X))

    def expected(self, X: npt.ArrayLike) -> Array:
        """Return each value as the other columns predict it, in its unit.

        Returns
        -------
        (n_samples, n_features). For a gap, the most likely value.
        """
        check_is_fitted(self)
        return self._model.predicted(self._checked(X))

    @property
    def threshold_(self) -> float:
        """The squared distance beyond which a row is an outlier."""
        check_is_fitted(self)
        return self._history.limit(self._share) if self._limit is None else self._limit

    @property
    def offset_(self) -> float:
        """The score below which a row is an outlier."""
        return -self.threshold_

    @property
    def rank_(self) -> int:
        """Number of directions shown."""
        return self._model.shown.rank

    @property
    def components_(self) -> Array:
        """(rank_, n_features), of scaled columns."""
        return np.array(self._model.shown.basis.T, dtype=np.float64)

    @property
    def mean_(self) -> Array:
        """(n_features,)."""
        return np.array(self._model.scaling.offset)

    @property
    def scale_(self) -> Array:
        """(n_features,)."""
        return np.array(self._model.scaling.scale)

    @property
    def covariance_(self) -> Array:
        """(n_features, n_features)."""
        scale = self.scale_
        return self._model.covariance * scale * scale[:, None]

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows that came."""
        check_is_fitted(self)
        return self._history.seen

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_history")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _model(self) -> RowModel:
        check_is_fitted(self)
        return self._history.model

    def _begin(self, X: npt.ArrayLike) -> Array:
        """Return the first rows, with parameters checked and nothing learnt."""
        settings, share = self._settings(), self._settled_share()
        rows = self._checked(X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{i}" for i in range(self.n_features_in_)]
        self._history = RowHistory(tuple(names), settings)
        self._share, self._limit = share, None
        return rows

    def _settings(self) -> FitSettings:
        most = whole("rank_max", self.rank_max, least=1)
        if self.rank == "auto":
            return FitSettings(rank_max=most)
        if isinstance(self.rank, str):
            raise UsageError(f'rank must be "auto" or a whole number, got {self.rank!r}')
        rank = whole("rank", self.rank, least=1)
        return FitSettings(rank=rank, rank_max=max(rank, most))

    def _settled_share(self) -> float:
        """Return the share of rows beyond the threshold."""
        for name in ("contamination", "false_share"):
            value = getattr(self, name)
            if name == "contamination" and isinstance(value, str) and value == "auto":
                continue
            if not isinstance(value, Real) or not 0 < float(value) <= MOST_CONTAMINATION:
                form = '"auto" or ' if name == "contamination" else ""
                raise UsageError(
                    f"{name} must be {form}a number above 0 and at most"
                    f" {MOST_CONTAMINATION}, got {value!r}"
                )
        share = self.false_share if self.contamination == "auto" else self.contamination
        return float(share)

    def _checked(self, X: npt.ArrayLike, *, reset: bool = False) -> Array:
        """Return X with the columns that were learnt, or raise; gaps may be in it."""
        found = validated(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        return cast(Array, found)

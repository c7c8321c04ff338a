"""StreamingPCA: the engine with scikit-learn's face.

It promises what scikit-learn's `PCA` means by its methods and attributes, learnt in
blocks and in O(n_features k) memory, and one thing that `PCA` has not: `merge`.
It does not take sparse matrices, whiten, or choose a solver.

Rules of this file:

1. It is the one module of the core that imports scikit-learn; `submerge` itself does not.
2. Learning decomposes nothing for show: attributes are read from the engine when asked.
3. Parameters are kept as given and judged in `fit`, by `SAPCA` where it judges them.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, Array, Storage
from submerge.errors import UsageError
from submerge.merging import merge
from submerge.rank import RankRule
from submerge.sapca import SAPCA, Exact
from submerge.schema import Channel, Schema
from submerge.subspace import Subspace

try:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
        clone,
    )
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "submerge.sklearn needs scikit-learn 1.6 or later: pip install 'submerge[sklearn]'"
    ) from error

FLOATS = (np.float64, np.float32)

MOST_COMPONENTS = 10
"""What `n_components=None` shows of wider data, as `SAPCA` does."""


class StreamingPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components of a stream, in one pass, that merge.

    Parameters
    ----------
    n_components : int or RankRule, optional
        Components to show: a number, or a rule that moves it with the data
        (`SapcaRank`, `EnergyRank`). By default the smaller of n_features and 10.
    oversample : int
        Spare directions learnt beside those shown; more are more accurate and slower.
    forgetting_factor : float in (0, 1]
        What each row leaves of the weight of those before it; 1 forgets nothing.
    center : bool
        Subtract the running mean, exactly. False measures about zero.
    block_size : int, optional
        Rows learnt at once; by default n_components + oversample + 30.
    exact : {"auto", "never"}
        "auto" keeps the whole covariance where that is small,
        n_features <= n_components + oversample + block_size: results are then those of
        `PCA`, to rounding.
    dtype : float64 or float32
        Of what is stored; sums are float64 in either case.

    Attributes
    ----------
    components_ : (n_components_, n_features)
        Orthonormal rows, most variance first; the largest entry of each is positive.
    explained_variance_ : (n_components_,)
        Variance along each, with one degree of freedom taken off for the mean (none if
        `center` is False).
    explained_variance_ratio_ : (n_components_,)
        Share of the total variance. The total is exact even where components are not.
    singular_values_ : (n_components_,)
        Of the centered data, each row scaled by the root of its weight.
    mean_ : (n_features,)
    noise_variance_ : float
        Average variance of the directions that are not shown, as in probabilistic PCA.
    n_components_ : int
        Components shown: never more than the data have, so fewer than asked for while
        rows are few or alike.
    n_samples_seen_ : int
        Rows ever learnt, none faded.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where the first X had any that are strings: they must differ.
    engine_ : SAPCA
        What does the work. `engine_.subspace` is what to ship, `engine_.shown` what to
        score with, `engine_.algorithm` what really ran.

    See Also
    --------
    submerge.SAPCA : The same without scikit-learn.

    Notes
    -----
    Parameters count from the next `fit`, or the first `partial_fit`.

    An estimator that forgets has effectively seen 1 / (1 - forgetting_factor) rows, and
    variances are taken over so many. Attributes cost one decomposition after each change,
    whichever of them is read, and nothing if none is.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge.sklearn import StreamingPCA
    >>> X = np.random.default_rng(0).standard_normal((500, 30)) @ np.diag(0.8 ** np.arange(30))
    >>> north = StreamingPCA(n_components=3).partial_fit(X[:100]).partial_fit(X[100:300])
    >>> south = StreamingPCA(n_components=3).fit(X[300:])
    >>> both = north.merge(south)
    >>> both.n_samples_seen_
    500
    >>> bool(np.allclose(both.mean_, X.mean(axis=0)))
    True
    """

    def __init__(
        self,
        n_components: int | RankRule | None = None,
        *,
        oversample: int = 5,
        forgetting_factor: float = 1.0,
        center: bool = True,
        block_size: int | None = None,
        exact: Exact = "auto",
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self.n_components = n_components
        self.oversample = oversample
        self.forgetting_factor = forgetting_factor
        self.center = center
        self.block_size = block_size
        self.exact = exact
        self.dtype = dtype

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn rows X (n_samples, n_features), and nothing that came before."""
        rows = validate_data(self, X, dtype=FLOATS)
        self.engine_ = self._new_engine().partial_fit(_wide(rows))
        return self

    def partial_fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn more rows X (n_samples, n_features), one or many, oldest first."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        self.engine_.partial_fit(_wide(self._checked(X)))
        return self

    def merge(self, other: StreamingPCA) -> StreamingPCA:
        """Return an estimator that has learnt both data sets (MergeSubspaces).

        Weight, mean and total variance come out exact. So do the components, where both
        run the exact algorithm. The result has the parameters of `self`, shares nothing
        with either, and goes on: `partial_fit` adds to what both have seen.

        Parameters
        ----------
        other : StreamingPCA
            Fitted to the same columns. Where one forgets, its rows count as they have
            faded there.

        Raises
        ------
        SchemaMismatch
            If the columns differ in number, name or order, if only one of the two knows
            their names, or if only one centers.
        """
        if not isinstance(other, StreamingPCA):
            raise UsageError(f"merge expects another StreamingPCA, got {type(other).__name__}")
        check_is_fitted(self)
        check_is_fitted(other)
        mine, theirs = self.engine_, other.engine_
        merged: StreamingPCA = clone(self)
        merged.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            merged.feature_names_in_ = self.feature_names_in_.copy()
        # All directions of both: how many to keep is the new engine's to say.
        past = merge(mine.whole, theirs.whole, rank=self.n_features_in_)
        merged.engine_ = merged._new_engine().resume(
            past,
            rank=max(mine._target, theirs._target),
            n_samples_seen=mine.n_samples_seen + theirs.n_samples_seen,
        )
        return merged

    def transform(self, X: npt.ArrayLike) -> Storage:
        """Project rows X (n_samples, n_features) on the components.

        Returns
        -------
        (n_samples, n_components_), of the dtype of X if that is a float's.
        """
        check_is_fitted(self)
        rows = self._checked(X)
        return self.engine_.transform(_wide(rows)).astype(rows.dtype, copy=False)

    def inverse_transform(self, X: npt.ArrayLike) -> Storage:
        """Return the points (n_samples, n_features) that projections X stand for.

        Parameters
        ----------
        X : (n_samples, n_components_)
        """
        check_is_fitted(self)
        Z: Storage = check_array(X, dtype=FLOATS, input_name="X", ensure_min_features=0)
        return self.engine_.inverse_transform(Z).astype(Z.dtype, copy=False)

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return each row's log-likelihood: higher is more normal.

        That of `PCA.score_samples`, the probabilistic PCA model: a Gaussian with
        `explained_variance_` along the components and `noise_variance_` off them.
        `SAPCA.score_samples` is another thing, the squared distance off the subspace (SPE),
        where lower is more normal; `submerge.spe(X, self.engine_.shown)` returns that.

        Parameters
        ----------
        X : (n_samples, n_features)

        Returns
        -------
        (n_samples,), in nats.

        Raises
        ------
        UsageError
            If all rows that were learnt are equal: any other is then infinitely unlikely.

        Notes
        -----
        Variances below n_features eps times the largest are raised to that: rounding cannot
        tell them from nothing, and rows off noiseless data still compare.

        O(n_samples n_features n_components_): the covariance is diagonal in the components,
        so nothing of n_features^2 is formed.

        References
        ----------
        Tipping & Bishop, Probabilistic principal component analysis, JRSS B 61 (1999);
        Bishop, Pattern Recognition and Machine Learning, Section 12.2.1.
        """
        check_is_fitted(self)
        rows = _wide(self._checked(X))
        variance, dim = self.explained_variance_, self.n_features_in_
        if not variance.any():
            raise UsageError(
                "a log-likelihood expects data that vary,"
                f" got {self.n_samples_seen_} equal rows: learn more"
            )
        noise = max(self.noise_variance_, dim * EPS * float(variance[0]))
        # What truncation lost is counted as noise, which may so exceed the last component.
        variance = np.maximum(variance, noise)
        hidden = dim - len(variance)
        log_det = np.log(variance).sum() + hidden * np.log(noise)
        distance = self.engine_.transform(rows) ** 2 @ (1 / variance)
        if hidden:
            distance += self.engine_.score_samples(rows) / noise
        return np.asarray(-0.5 * (dim * np.log(2 * np.pi) + log_det + distance))

    def score(self, X: npt.ArrayLike, y: object = None) -> float:
        """Return the rows' average log-likelihood, see `score_samples`."""
        return float(self.score_samples(X).mean())

    @property
    def components_(self) -> Storage:
        """(n_components_, n_features)."""
        return self._shown.basis.T.copy()

    @property
    def explained_variance_(self) -> Array:
        """(n_components_,)."""
        return np.asarray(self._shown.sigma**2 * self._per_sample)

    @property
    def explained_variance_ratio_(self) -> Array:
        """(n_components_,)."""
        shown = self._shown
        return np.asarray(shown.sigma**2 / shown.energy)

    @property
    def singular_values_(self) -> Array:
        """(n_components_,)."""
        return self._shown.sigma.copy()

    @property
    def mean_(self) -> Array:
        """(n_features,)."""
        return self._shown.mean.copy()

    @property
    def noise_variance_(self) -> float:
        """Zero where every direction is shown."""
        shown = self._shown
        # n rows have at most n directions: the average is over those, as in `PCA`.
        hidden = min(shown.dim, self.n_samples_seen_) - shown.rank
        return shown.frobenius_bound * self._per_sample / hidden if hidden > 0 else 0.0

    @property
    def n_components_(self) -> int:
        """Components shown."""
        return self._shown.rank

    @property
    def n_samples_seen_(self) -> int:
        """Rows ever learnt."""
        check_is_fitted(self)
        return self.engine_.n_samples_seen

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "engine_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # -- inside ----------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        """What `get_feature_names_out` counts."""
        return self.n_components_

    @property
    def _shown(self) -> Subspace:
        check_is_fitted(self)
        return self.engine_.shown

    @property
    def _per_sample(self) -> float:
        """From a sum of squares to a variance; a single sample has none."""
        freedom = self._shown.weight - (1.0 if self.engine_.center else 0.0)
        return 1 / freedom if freedom > 0 else 0.0

    def _checked(self, X: npt.ArrayLike) -> Storage:
        """X as an array with the columns that were learnt, or an error."""
        return np.asarray(validate_data(self, X, dtype=FLOATS, reset=False))

    def _new_engine(self) -> SAPCA:
        """An engine for the columns just seen, with the parameters as they are."""
        columns = getattr(self, "feature_names_in_", None)
        return SAPCA(
            self._rank(),
            oversample=self.oversample,
            forgetting_factor=self.forgetting_factor,
            block_size=self.block_size,
            exact=self.exact,
            dtype=self.dtype,
            schema=Schema(
                self.n_features_in_ if columns is None else tuple(map(Channel, columns)),
                center="fleet" if self.center else "none",
            ),
        )

    def _rank(self) -> int | RankRule:
        rank: Any = self.n_components
        if rank is None:
            return min(MOST_COMPONENTS, int(self.n_features_in_))
        if isinstance(rank, Integral):
            return int(rank)
        if callable(getattr(rank, "next", None)):
            return cast(RankRule, rank)
        raise UsageError(
            "n_components must be an int, None, or a rule such as EnergyRank(low, high),"
            f" got {rank!r}"
        )


def _wide(rows: Storage) -> Array:
    """Rows in float64: the engine computes in no other, and checks no other as fast."""
    return rows.astype(np.float64, copy=False)

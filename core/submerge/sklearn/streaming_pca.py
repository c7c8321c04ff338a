"""StreamingPCA: the engine with scikit-learn's interface.

1. scikit-learn is imported in this package only; `submerge` itself does not need it.
2. Learning does no decomposition for attributes: they are computed when read.
3. Parameters are kept as given and checked in `fit`, by `SAPCA` where it checks them.
4. Methods read fitted attributes only: parameters take effect at the next `fit`.
5. A refused call changes nothing.
"""

from __future__ import annotations

from copy import deepcopy
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from submerge._linalg import Array, Storage, unmasked
from submerge.errors import UsageError
from submerge.features import FeatureMap, Identity, Kernel
from submerge.kernel.auto_gamma import settled_for
from submerge.pca.budget import DEFAULT_MEMORY, Exact
from submerge.pca.merging import merge
from submerge.pca.rank import RankRule
from submerge.pca.sapca import SAPCA
from submerge.pca.score import log_likelihood
from submerge.pca.subspace import Subspace, check_values
from submerge.schema import Schema
from submerge.sklearn import fit_parts
from submerge.sklearn.kernel_names import AT_ONCE, lifted, named_kernel, random_features

KERNEL_BLOCK = 64  # rows of features learnt at once
MOST_COMPONENTS = 10  # components for `n_components=None` of wider data, as in `SAPCA`


def rank_of(n_components: Any, dim: int) -> int | RankRule:
    """Return the rank to show of `dim` features; the engine checks it."""
    if n_components is None:
        return min(MOST_COMPONENTS, dim)
    if isinstance(n_components, Integral):
        return int(n_components)
    if callable(getattr(n_components, "next", None)):
        return cast(RankRule, n_components)
    raise UsageError(
        "n_components must be an int, None, or a rule such as EnergyRank(low, high),"
        f" got {n_components!r}"
    )


GIVEN = ("oversample", "forgetting_factor", "exact", "memory")
"""Parameters that an estimator has as its engine has them."""


def empty_like(engine: SAPCA, schema: Schema) -> SAPCA:
    """Return an empty engine with the same settings."""
    return SAPCA(
        engine.rule,
        block_size=engine.block_size if engine._sized else None,
        dtype=engine.dtype,
        schema=schema,
        **{name: getattr(engine, name) for name in GIVEN},
    )


def new_engine(estimator: Any, schema: Schema) -> SAPCA:
    """Return an engine with an estimator's current parameters."""
    dtype, block = (np.float64, None) if schema.linear else (np.float32, KERNEL_BLOCK)
    return SAPCA(
        rank_of(estimator.n_components, schema.dim),
        block_size=block if estimator.block_size is None else estimator.block_size,
        dtype=dtype if estimator.dtype is None else estimator.dtype,
        schema=schema,
        **{name: getattr(estimator, name) for name in GIVEN},
    )


FLOATS = (np.float64, np.float32)


def _has_pre_images(estimator: StreamingPCA) -> bool:
    """Return whether `inverse_transform` is available, for scikit-learn."""
    if estimator._curved:
        raise UsageError(
            "inverse_transform expects an estimator without a kernel, got one with a kernel:"
            " projections of features have no pre-image among rows"
        )
    return True


class StreamingPCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Principal components of a stream, in one pass, that merge.

    Parameters
    ----------
    n_components : int or RankRule, optional
        Components to show: a number, or a rule that changes it with the data
        (`SapcaRank`, `EnergyRank`). By default 10, or n_features (D) if that is smaller.
    oversample : int
        Spare directions learnt beside those shown; more are more accurate and slower.
    forgetting_factor : float in (0, 1]
        Each row multiplies the weight of earlier rows by this; 1 forgets nothing.
    center : bool
        Subtract the running mean, exactly. False measures about zero.
    block_size : int, optional
        Rows learnt at once, see `SAPCA`; with a kernel 64.
    exact : {"auto", "never"}
        "auto" keeps the whole covariance where `memory` has room for it, to some 400
        features: results are then those of `PCA`, to rounding.
    memory : int
        Budget for that in bytes, see `SAPCA`. Where it is too small, or with "never", components
        are learnt in O(n_features k) memory, whatever the budget is.
    dtype : float64 or float32, optional
        Type of what is stored; sums are float64 in either case. By default float64, and
        float32 with a kernel: random features are no more exact than that.
    kernel : {"gaussian", "laplace", "matern", "polynomial"} or Kernel, optional
        Kernel for kernel PCA by random features; by default it is PCA. "rbf" and "poly" are
        other names of two. A `submerge.features` kernel brings its own parameters.
    gamma : "auto" or float
        The kernel's scale. "auto" follows from the rows of `fit`, or of the first
        `partial_fit`, which should then be many: 1 / (2 tr C) for the Gaussian, with C their
        covariance. Rows that are all equal are refused. Estimators that are to merge need
        the same number.
    degree, coef0 : int, float
        Parameters of "polynomial": (gamma <x, y> + coef0)^degree.
    nu : {1.5, 2.5}
        Smoothness of "matern".
    n_random_features : int
        Their number, D, which replaces n_features in shapes of the components. More are more
        accurate and slower: see benchmarks/kernel_pca.md.
    feature_map : {"orthogonal", "fourier-pair", "fourier-cos", "quasi"}
        Their kind, see `submerge.features.RandomFourier`; polynomial kernels have their own.
    random_state : int
        Seed of the random features, which are the same on every machine. Without a kernel
        nothing is random.

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
        Singular values of the centered data, each row scaled by the root of its weight.
    mean_ : (n_features,)
    noise_variance_ : float
        Average variance of the directions that are not shown, as in probabilistic PCA.
    n_components_ : int
        Number of components shown: never more than the data have, so fewer than requested
        while rows are few or alike.
    n_samples_seen_ : int
        Number of rows ever learnt, not faded.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where the first X had any that are strings: they must differ.
    engine_ : SAPCA
        The engine. Send and merge `engine_.subspace`, score with `engine_.shown`;
        `engine_.algorithm` names the algorithm that runs.
    schema_ : Schema
        The meaning of the engine's vectors, which must be equal to merge.
    feature_map_ : FeatureMap
        The map from rows to features, with its gamma settled.
    kernel_ : Kernel or None
        With the settled gamma; None without a kernel.

    See Also
    --------
    submerge.SAPCA : The same without scikit-learn.

    Notes
    -----
    Parameters take effect at the next `fit`, or the first `partial_fit`.

    An estimator that forgets has effectively seen 1 / (1 - forgetting_factor) rows, and
    variances are taken over so many. Reading attributes costs one decomposition after each
    change.

    With a kernel, "row" in what follows means its D features: distances, variances and
    likelihoods are those of feature space. Features cannot be mapped back to rows.

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
    >>> curved = StreamingPCA(n_components=3, kernel="gaussian", gamma=0.1).fit(X)
    >>> curved.components_.shape, curved.transform(X).shape
    ((3, 512), (500, 3))
    """

    engine_: SAPCA
    schema_: Schema

    def __init__(
        self,
        n_components: int | RankRule | None = None,
        *,
        oversample: int = 5,
        forgetting_factor: float = 1.0,
        center: bool = True,
        block_size: int | None = None,
        exact: Exact = "auto",
        memory: int = DEFAULT_MEMORY,
        dtype: npt.DTypeLike | None = None,
        kernel: str | Kernel | None = None,
        gamma: str | float = "auto",
        degree: int = 2,
        coef0: float = 0.0,
        nu: float = 1.5,
        n_random_features: int = 512,
        feature_map: str = "orthogonal",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.oversample = oversample
        self.forgetting_factor = forgetting_factor
        self.center = center
        self.block_size = block_size
        self.exact = exact
        self.memory = memory
        self.dtype = dtype
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.n_random_features = n_random_features
        self.feature_map = feature_map
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn rows X (n_samples, n_features), and forget everything before."""
        with fit_parts.all_or_nothing(self):
            curved = self.kernel is not None
            rows = self._checked(X, sparse=curved, reset=True)
            features = self._new_map(rows) if curved else Identity()
            schema = fit_parts.schema_of(self, features, center=bool(self.center))
            engine = new_engine(self, schema)
            for part in lifted(rows, features):
                engine.partial_fit(part)
            self.engine_, self.schema_ = engine, schema
        return self

    def partial_fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn more rows X (n_samples, n_features), one or many, oldest first."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        rows = self._checked(X, sparse=self._curved)
        # The engine itself learns a single part completely or not at all.
        several = self._curved and rows.shape[0] > AT_ONCE
        engine = deepcopy(self.engine_) if several else self.engine_
        for part in lifted(rows, self.feature_map_):
            engine.partial_fit(part)
        self.engine_ = engine
        return self

    def merge(self, other: StreamingPCA) -> StreamingPCA:
        """Return an estimator that has learnt both data sets (MergeSubspaces).

        Weight, mean and total variance are exact. So are the components, where both run the
        exact algorithm. The result has the parameters of `self` and shares no state with
        either; `partial_fit` adds to the data of both.

        Parameters
        ----------
        other : StreamingPCA
            Fitted to the same columns. Its rows count as they have faded there.

        Raises
        ------
        SchemaMismatch
            If the columns differ in number, name or order, if only one has column names, if
            only one centers, or if kernel, gamma or features differ. The message names the
            differences.
        """
        if not isinstance(other, StreamingPCA):
            raise UsageError(f"merge expects another StreamingPCA, got {type(other).__name__}")
        check_is_fitted(self)
        check_is_fitted(other)
        fit_parts.check_alike(self.schema_, other.schema_)
        mine, theirs = self.engine_, other.engine_
        merged: StreamingPCA = fit_parts.of_same_columns(self)
        merged.schema_ = self.schema_
        first, second = mine.whole, theirs.whole
        # All directions of both are merged; the new engine chooses how many to keep.
        past = merge(first, second, rank=first.dim)
        merged.engine_ = empty_like(mine, self.schema_).resume(
            past,
            rank=max(mine.target, theirs.target),
            n_samples_seen=mine.n_samples_seen + theirs.n_samples_seen,
        )
        return merged

    def transform(self, X: npt.ArrayLike) -> Storage:
        """Project rows X (n_samples, n_features) on the components.

        Returns
        -------
        (n_samples, n_components_), of the dtype of X if that is a float type.
        """
        check_is_fitted(self)
        rows = self._checked(X, sparse=self._curved)
        found = [self.engine_.transform(part) for part in lifted(rows, self.feature_map_)]
        return np.concatenate(found).astype(rows.dtype, copy=False)

    @available_if(_has_pre_images)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: npt.ArrayLike) -> Storage:
        """Return the points (n_samples, n_features) that projections X stand for.

        Parameters
        ----------
        X : (n_samples, n_components_)

        Raises
        ------
        AttributeError
            With a kernel: points of feature space have no rows.
        """
        check_is_fitted(self)
        Z: Storage = check_array(unmasked(X), dtype=FLOATS, input_name="X", ensure_min_features=0)
        return self.engine_.inverse_transform(Z).astype(Z.dtype, copy=False)

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return each row's log-likelihood: higher is more normal.

        It is that of `PCA.score_samples`, the probabilistic PCA model: a Gaussian with
        `explained_variance_` along the components and `noise_variance_` off them.
        `SAPCA.score_samples` differs: it is the squared prediction error (SPE), where lower is
        more normal; `submerge.spe(X, self.engine_.shown)` returns that.

        Parameters
        ----------
        X : (n_samples, n_features)

        Returns
        -------
        (n_samples,), in nats.

        Raises
        ------
        UsageError
            If all learnt rows are equal: any other row is then infinitely unlikely.

        Notes
        -----
        Variances below n_features eps times the largest are raised to that: they are rounding,
        and rows off noiseless data then still compare.

        O(n_samples n_features n_components_): the covariance is diagonal in the components,
        so nothing of n_features^2 is formed.

        References
        ----------
        Tipping & Bishop, Probabilistic principal component analysis, JRSS B 61 (1999);
        Bishop, Pattern Recognition and Machine Learning, Section 12.2.1.
        """
        check_is_fitted(self)
        rows = self._checked(X, sparse=self._curved)
        variance, noise = self.explained_variance_, self.noise_variance_
        if not variance.any():
            raise UsageError(
                "a log-likelihood expects data that vary,"
                f" got {self.n_samples_seen_} equal rows: learn more"
            )
        found = []
        for part in lifted(rows, self.feature_map_):
            check_values(part)
            found.append(log_likelihood(part, self._shown, variance, noise))
        return np.concatenate(found)

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
        """Average variance of the directions not shown; 0 if all are shown."""
        shown = self._shown
        # n rows have at most n directions, and the average is over those, as in `PCA`.
        hidden = min(shown.dim, self.n_samples_seen_) - shown.rank
        return shown.frobenius_bound * self._per_sample / hidden if hidden > 0 else 0.0

    @property
    def n_components_(self) -> int:
        """Number of components shown."""
        return self._shown.rank

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows ever learnt."""
        check_is_fitted(self)
        return self.engine_.n_samples_seen

    @property
    def feature_map_(self) -> FeatureMap:
        """The map from rows to features."""
        check_is_fitted(self)
        return self.schema_.features

    @property
    def kernel_(self) -> Kernel | None:
        """The kernel, with its gamma settled, or None."""
        return getattr(self.feature_map_, "kernel", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "engine_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self._curved
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _shown(self) -> Subspace:
        check_is_fitted(self)
        return self.engine_.shown

    @property
    def _per_sample(self) -> float:
        """Factor from a sum of squares to a variance; 0 for a single sample."""
        freedom = self._shown.weight - (1.0 if self.engine_.center else 0.0)
        return 1 / freedom if freedom > 0 else 0.0

    @property
    def _curved(self) -> bool:
        """Whether rows are mapped to features, by the fitted model or by the next `fit`."""
        if self.__sklearn_is_fitted__():
            return not self.schema_.linear
        return self.kernel is not None

    def _checked(self, X: npt.ArrayLike, *, sparse: bool, reset: bool = False) -> Storage:
        """Return X, dense or sparse, with the columns that were learnt, or raise."""
        accepted = "csr" if sparse else False
        return cast(
            Storage, fit_parts.validated(self, X, dtype=FLOATS, accept_sparse=accepted, reset=reset)
        )

    def _new_map(self, rows: Storage) -> FeatureMap:
        """Return the feature map for the first rows, by the current parameters."""
        kernel = named_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, nu=self.nu
        )
        return random_features(
            settled_for(kernel, rows),
            features=self.n_random_features,
            kind=self.feature_map,
            seed=fit_parts.seed_of(self.random_state),
        )

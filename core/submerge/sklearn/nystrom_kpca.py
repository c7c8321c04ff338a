"""NystromKPCA: kernel PCA from a few landmarks (NY-KPCA), in one pass, that merges."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from submerge._linalg import Array, Storage, unmasked
from submerge.errors import ShapeError, UsageError, whole
from submerge.features import Kernel, Landmarks
from submerge.features.landmarks import MOST
from submerge.kernel.auto_gamma import settled_for
from submerge.kernel.nystrom import Covariance, NystromPCA, choose
from submerge.schema import Schema
from submerge.sklearn import fit_parts
from submerge.sklearn.kernel_names import named_kernel, wide

FLOATS = (np.float64, np.float32)

MOST_COMPONENTS = 10  # components for `n_components=None`


class NystromKPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel PCA in the span of landmarks.

    Parameters
    ----------
    n_components : int, optional
        Components to show; by default 10, or as many as there are landmarks.
    kernel : {"gaussian", "laplace", "matern", "polynomial"} or Kernel
        "rbf" and "poly" are other names of two. A `submerge.features` kernel brings its own
        parameters.
    gamma : "auto" or float
        The kernel's scale. "auto" follows from the landmarks, so that estimators with the same
        landmarks share it: the Gaussian's is 1 / (2 tr C), C their covariance. Landmarks that
        are all equal are refused. With many landmarks of rare kinds it is smaller.
    degree, coef0 : int, float
        Parameters of "polynomial": (gamma <x, y> + coef0)^degree.
    nu : {1.5, 2.5}
        Smoothness of "matern".
    n_landmarks : int
        Number of rows to take as landmarks, at least n_components and at most 4096; fewer if
        there are fewer rows. With more, the error falls and time grows with their square: see
        benchmarks/kernel_pca.md.
    landmarks : {"uniform", "leverage", "residual"} or (m, n_features) array
        How they are chosen from the rows of `fit` or of the first `partial_fit`. "leverage"
        and "residual" (half uniform, half by their residual) find rare kinds of rows. An
        array is taken as it is: estimators that are to merge need the same one.
    center : bool
        Subtract the features' mean. False measures about zero.
    random_state : int
        Seed of the choice of landmarks.

    Attributes
    ----------
    eigenvalues_ : (n_components_,)
        Eigenvalues of the features' scatter, largest first. With all rows as landmarks they are
        those of the centered Gram matrix, as in `KernelPCA`; they are never larger.
    explained_variance_ratio_ : (n_components_,)
        At least this share of the features' total variance is along each: see Notes.
    outside_ratio_ : float
        At most this share of the total is outside the landmarks' span, and so not learnt.
    components_ : (n_components_, m)
        Orthonormal directions in feature space, by their coefficients: the sum of
        `components_[j, i]` times the feature of landmark i.
    landmarks_ : (m, n_features)
    kernel_ : Kernel
        With the settled gamma.
    n_components_ : int
        Number of components shown: never more than the rows have.
    n_samples_seen_ : int
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where the first X had any that are strings.
    model_ : NystromPCA
        The fitted model. `model_.residual` is each row's squared distance off the components.

    See Also
    --------
    StreamingPCA : With `kernel` set, it uses random features and needs no common landmarks.

    Notes
    -----
    O(m^2) for each row learnt, O(m^3) once after each change, O(m) numbers for each row of
    a chunk of 1024, and O(m^2) in all.

    Finding the part of the features' mean outside the landmarks' span would take all pairs of
    rows. With `center`, the total is counted as if there were none, which is n times its square
    too much: true shares lie between `explained_variance_ratio_` and that over
    `1 - outside_ratio_`. The two are close where landmarks are enough, and equal where they span
    all rows. Without `center`, shares are exact.

    References
    ----------
    Sterge, Sriperumbudur, Rosasco & Rudi, Gain with no Pain: Efficiency of Kernel-PCA by
    Nystrom Sampling, AISTATS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge.sklearn import NystromKPCA
    >>> X = np.random.default_rng(0).standard_normal((500, 4))
    >>> north = NystromKPCA(3, n_landmarks=50).fit(X[:300])
    >>> south = NystromKPCA(3, landmarks=north.landmarks_).fit(X[300:])
    >>> both = north.merge(south)
    >>> both.n_samples_seen_
    500
    >>> both.transform(X[:2]).shape
    (2, 3)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: str | Kernel = "gaussian",
        gamma: str | float = "auto",
        degree: int = 2,
        coef0: float = 0.0,
        nu: float = 1.5,
        n_landmarks: int = 100,
        landmarks: str | npt.ArrayLike = "uniform",
        center: bool = True,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.center = center
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Choose landmarks among rows X (n_samples, n_features), and learn these rows alone."""
        with fit_parts.all_or_nothing(self):
            rows = wide(self._checked(X, reset=True))
            landmarks, rank = self._new_landmarks(rows)
            self.model_ = NystromPCA.of(rows, landmarks, rank=rank, center=bool(self.center))
        return self

    def partial_fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Learn more rows X (n_samples, n_features); landmarks are chosen among the first ones."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        rows = wide(self._checked(X))
        self.model_ = self.model_.joined(Covariance.of(rows, self.model_.landmarks))
        return self

    def merge(self, other: NystromKPCA) -> NystromKPCA:
        """Return an estimator that has learnt both data sets, as if pooled, to rounding.

        It has the parameters of `self`, shares no state with either, and can learn more.

        Parameters
        ----------
        other : NystromKPCA
            Fitted with the same landmarks and kernel.

        Raises
        ------
        SchemaMismatch
            If columns, landmarks, kernel, gamma or centering differ; the message names them.
        """
        if not isinstance(other, NystromKPCA):
            raise UsageError(f"merge expects another NystromKPCA, got {type(other).__name__}")
        check_is_fitted(self)
        check_is_fitted(other)
        fit_parts.check_alike(self._schema, other._schema)
        merged: NystromKPCA = fit_parts.of_same_columns(self)
        merged.model_ = self.model_.joined(other.model_.covariance)
        return merged

    def transform(self, X: npt.ArrayLike) -> Storage:
        """Return the scores of rows X (n_samples, n_features) on the components.

        Returns
        -------
        (n_samples, n_components_), of the dtype of X if that is a float type.
        """
        check_is_fitted(self)
        rows = self._checked(X)
        return self.model_.scores(wide(rows)).astype(rows.dtype, copy=False)

    def score_samples(self, X: npt.ArrayLike) -> Array:
        """Return minus each row's squared distance off the components: higher is more normal.

        The distance (SPE, squared prediction error) is taken in feature space, from the mean and
        the directions shown: no pre-image is needed.

        Parameters
        ----------
        X : (n_samples, n_features)

        Returns
        -------
        (n_samples,), never positive.
        """
        check_is_fitted(self)
        return -self.model_.residual(wide(self._checked(X)))

    def score(self, X: npt.ArrayLike, y: object = None) -> float:
        """Return the average of `score_samples`."""
        return float(self.score_samples(X).mean())

    @property
    def eigenvalues_(self) -> Array:
        """(n_components_,)."""
        return self._model.directions.eigenvalues.copy()

    @property
    def explained_variance_ratio_(self) -> Array:
        """(n_components_,)."""
        return np.asarray(self.eigenvalues_ / self._model.energy)

    @property
    def outside_ratio_(self) -> float:
        """Bound on the share of the total outside the landmarks' span."""
        energy = self._model.energy
        return self._model.covariance.outside / energy if energy > 0 else 0.0

    @property
    def components_(self) -> Array:
        """(n_components_, m)."""
        return self._model.coefficients

    @property
    def landmarks_(self) -> Array:
        """(m, n_features)."""
        return self._model.landmarks.points.copy()

    @property
    def kernel_(self) -> Kernel:
        """The kernel, its gamma settled."""
        return self._model.landmarks.kernel

    @property
    def n_components_(self) -> int:
        """Number of components shown."""
        return len(self._model.directions.eigenvalues)

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows ever learnt."""
        return self._model.covariance.count

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _model(self) -> NystromPCA:
        check_is_fitted(self)
        return self.model_

    @property
    def _schema(self) -> Schema:
        """Schema that must be equal to merge."""
        return fit_parts.schema_of(self, self.model_.landmarks, center=self.model_.center)

    def _checked(self, X: npt.ArrayLike, *, reset: bool = False) -> Any:
        """Return X, dense or sparse, with the columns that were learnt, or raise."""
        return fit_parts.validated(self, X, dtype=FLOATS, accept_sparse="csr", reset=reset)

    def _new_landmarks(self, rows: Any) -> tuple[Landmarks, int]:
        """Return landmarks for the first rows, their kernel settled, and the rank to show."""
        kernel = named_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, nu=self.nu
        )
        if isinstance(self.landmarks, str):
            m = whole("n_landmarks", self.n_landmarks, least=1, most=MOST)
            rank = self._rank(m)
            points = self._choose(rows, min(m, rows.shape[0]), kernel, rank)
        else:
            given, options = unmasked(self.landmarks), {"input_name": "landmarks"}
            points = check_array(given, dtype=np.float64, accept_sparse="csr", **options)
            if points.shape[1] != self.n_features_in_:
                expected = f"(m, {self.n_features_in_})"
                raise ShapeError("landmarks", expected=expected, got=points.shape)
            rank = self._rank(points.shape[0])
        open_ = Landmarks(kernel, points)
        # gamma is taken from the points as kept: estimators given these points get the same one.
        return open_.settled_at(settled_for(kernel, open_.points, what="landmarks").gamma), rank

    def _choose(self, rows: Any, m: int, kernel: Kernel, rank: int) -> Any:
        rng = np.random.default_rng(fit_parts.seed_of(self.random_state))
        if self.landmarks != "uniform":
            # Leverage and residual need a scale, and there are no landmarks yet to set it.
            kernel = settled_for(kernel, rows)
        return rows[choose(str(self.landmarks), rows, m, kernel, rank=rank, rng=rng)]

    def _rank(self, m: int) -> int:
        if self.n_components is None:
            return min(MOST_COMPONENTS, m)
        rank = whole("n_components", self.n_components, least=1)
        if rank > m:
            raise UsageError(f"landmarks must be at least the {rank} components, got {m}")
        return rank

"""OnePassKernelKMeans: kernel k-means by `one_pass` and scikit-learn's `KMeans`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from submerge._linalg import Array
from submerge.errors import UsageError, whole
from submerge.features import sparse
from submerge.features.kernels import Kernel
from submerge.kernel.auto_gamma import settled_for
from submerge.kernel.one_pass import columns_of, one_pass, sketch_matrix
from submerge.sklearn.fit_parts import all_or_nothing, check_clusters, k_means, seed_of, validated
from submerge.sklearn.kernel_names import named_kernel


class OnePassKernelKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel k-means on a one-pass randomized approximation of the kernel matrix.

    Parameters
    ----------
    n_clusters : int
    kernel : {"gaussian", "laplace", "matern", "polynomial"} or Kernel
        "rbf" and "poly" are other names of two. A `submerge.features` kernel brings its own
        parameters.
    gamma : "auto" or float
        Scale of the kernel. "auto" is 1/(2 tr C) for "gaussian" and "matern", its root for
        "laplace", 1/(tr C) for "polynomial", with C the covariance of X. Rows that are all
        equal are refused.
    degree, coef0 : int, float
        Parameters of "polynomial": (gamma <x, y> + coef0)^degree.
    nu : {1.5, 2.5}
        Smoothness of "matern".
    n_components : int, optional
        Rank r of the approximation; by default n_clusters.
    oversample : int
        Spare columns l of the sketch, all kept until the rank is cut at the end. More are more
        accurate and cost time and memory in proportion.
    n_init : int
        Runs of k-means, of which the best is taken.
    random_state : int
        Seed of the sketch and of k-means.
    block_size : int
        Columns of the kernel matrix held at once.

    Attributes
    ----------
    labels_ : (n_samples,)
    embedding_ : (n_samples, n_components)
        Scores that k-means saw: K is about `embedding_ @ embedding_.T`.
    eigenvalues_ : (n_components,)
        Eigenvalues of the approximation, descending; zeros where K has fewer directions.
    error_bound_ : float
        Upper bound on the relative error |K - K_hat| / |K| (Frobenius), to rounding. Equal to it
        where the r + l columns span K; elsewhere it is often some times as large.
    kernel_ : Kernel
        With the gamma that was used.
    kmeans_ : KMeans
        With centers in the scores' space, and `inertia_`.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where X had any that are strings.

    See Also
    --------
    submerge.kernel.one_pass.one_pass : The approximation alone.

    Notes
    -----
    Time is O(n_samples^2 (n_features + r + l)). `predict` needs all training rows, which are
    kept: n_samples kernel values for a row. For training rows it returns `labels_`.

    References
    ----------
    Pourkamali-Anaraki & Becker, A Randomized Approach to Efficient Kernel Clustering,
    arXiv:1608.07597.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge.sklearn import OnePassKernelKMeans
    >>> angle = np.linspace(0, 40, 200)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.repeat([[0.2], [1.0]], 100, axis=0)
    >>> rings = OnePassKernelKMeans(n_clusters=2, kernel="polynomial", n_init=50).fit(X)
    >>> [len(set(rings.labels_[half])) for half in (slice(100), slice(100, 200))]
    [1, 1]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Kernel = "gaussian",
        gamma: str | float = "auto",
        degree: int = 2,
        coef0: float = 0.0,
        nu: float = 1.5,
        n_components: int | None = None,
        oversample: int = 10,
        n_init: int = 10,
        random_state: int = 0,
        block_size: int = 256,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.n_components = n_components
        self.oversample = oversample
        self.n_init = n_init
        self.random_state = random_state
        self.block_size = block_size

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Cluster rows X (n_samples, n_features), dense or sparse."""
        with all_or_nothing(self):
            # The rows are copied, because they are kept for `predict`.
            rows = validated(self, X, dtype=np.float64, accept_sparse="csr", order="C", copy=True)
            n = rows.shape[0]
            k, rank = check_clusters(self.n_clusters, n), self._rank(n)
            spare = whole("oversample", self.oversample, least=0)
            step = whole("block_size", self.block_size, least=1)
            n_init, seed = whole("n_init", self.n_init, least=1), seed_of(self.random_state)
            kernel = named_kernel(
                self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, nu=self.nu
            )
            kernel = settled_for(kernel, rows)
            found = one_pass(
                columns_of(kernel, rows, block_size=step),
                sketch_matrix(n, min(n, rank + spare), seed=seed),
                rank=rank,
            )
            kmeans = k_means(found.scores, k, n_init=n_init, seed=seed)
        self.kernel_, self.kmeans_, self.labels_ = kernel, kmeans, kmeans.labels_
        self.embedding_, self.eigenvalues_ = found.scores, found.eigenvalues
        self.error_bound_ = found.error_bound
        self._extension = _Extension(kernel, rows, found.coefficients, step)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.integer[Any]]:
        """Return the cluster of each row of X (n, n_features), new ones included.

        A row's scores are its kernel values against the training rows, combined as those
        rows' own were (the Nystrom extension of the approximation).
        """
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, accept_sparse="csr", order="C", reset=False)
        return np.asarray(self.kmeans_.predict(self._extension.scores(rows)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "kmeans_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _rank(self, n: int) -> int:
        if self.n_components is None:
            return int(self.n_clusters)
        rank = whole("n_components", self.n_components, least=1)
        if rank > n:
            raise UsageError(f"n_components must be at most n_samples={n}, got {rank}")
        return rank


@dataclass(frozen=True, slots=True, eq=False)
class _Extension:
    """Scores new rows by their kernel values with the training rows (n, n_features)."""

    kernel: Kernel
    rows: Any
    coefficients: Array
    block_size: int

    def scores(self, X: Any) -> Array:
        """Return the scores (m, r) of rows X (m, n_features), dense or CSR."""
        X = sparse.checked(X)
        parts = (X[i : i + self.block_size] for i in range(0, X.shape[0], self.block_size))
        return np.vstack([self.kernel(part, self.rows) @ self.coefficients for part in parts])

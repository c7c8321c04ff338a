"""KernelSpectralClustering: random features, their leading scores (`kernel.spectral`), k-means."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from submerge.errors import whole
from submerge.features import Kernel
from submerge.kernel.auto_gamma import checked_spread
from submerge.kernel.spectral import eigengap, maps_around, scores, summary_of
from submerge.schema import Schema
from submerge.sklearn.fit_parts import all_or_nothing, check_clusters, k_means, seed_of, validated
from submerge.sklearn.kernel_names import fourier_features, named_kernel


class KernelSpectralClustering(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Spectral clustering on kernel scores, in time linear in the rows, without affinity matrix.

    Parameters
    ----------
    n_clusters : int
    kernel : {"gaussian", "laplace", "matern"} or Kernel
        Only radial kernels have Fourier features. "rbf" is another name of "gaussian". A
        `submerge.features` kernel brings its own parameters.
    gamma : "auto" or float
        Scale of the kernel. "auto" tries 1/4, 1 and 4 times the kernel's own for the covariance
        of X, and takes the one with the widest eigengap. Rows that are all equal are refused.
    nu : {1.5, 2.5}
        Smoothness of "matern".
    n_random_features : int
        Their number, D. The error of the kernel falls with its square root.
    feature_map : {"orthogonal", "fourier-pair", "fourier-cos", "quasi"}
        Their kind, see `submerge.features.RandomFourier`.
    n_init : int
        Runs of k-means, of which the best is taken.
    random_state : int
        Seed of the features and of k-means.

    Attributes
    ----------
    labels_ : (n_samples,)
    embedding_ : (n_samples, n_clusters - 1)
        Scores that k-means saw (one column for a single cluster).
    kernel_ : Kernel
        With the gamma that was chosen.
    gammas_, eigengaps_ : (m,)
        The gammas tried, and the gap between the n_clusters - 1 leading directions and the rest.
    subspace_ : Subspace
        Summary of the features, which merges with that of any estimator with the same `schema_`.
    schema_ : Schema
        The meaning of its vectors.
    feature_map_ : FeatureMap
        The map from rows to features.
    kmeans_ : KMeans
        With centers in the scores' space, and `inertia_`.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where X had any that are strings.

    See Also
    --------
    submerge.kernel.spectral : The same over nodes that keep their rows.
    sklearn.cluster.SpectralClustering : Normal cuts of an (n, n) affinity matrix.

    Notes
    -----
    Beside X, whose rows may be sparse, `fit` holds their scores, n_samples (n_clusters - 1)
    numbers, the arrays of k-means, and about D (n_clusters + 500) numbers: rows are lifted
    256 at a time.

    The kernel must separate the clusters: it separates rings, but not touching moons. Scores are
    those of kernel PCA, not a normal cut, since random features may give a row a negative degree.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge.sklearn import KernelSpectralClustering
    >>> angle = np.linspace(0, 40, 200)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.repeat([[0.2], [1.0]], 100, axis=0)
    >>> rings = KernelSpectralClustering(n_clusters=2).fit(X)
    >>> [len(set(rings.labels_[half])) for half in (slice(100), slice(100, 200))]
    [1, 1]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Kernel = "gaussian",
        gamma: str | float = "auto",
        nu: float = 1.5,
        n_random_features: int = 512,
        feature_map: str = "orthogonal",
        n_init: int = 10,
        random_state: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.nu = nu
        self.n_random_features = n_random_features
        self.feature_map = feature_map
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Cluster rows X (n_samples, n_features)."""
        with all_or_nothing(self):
            rows = validated(self, X, dtype=np.float64, accept_sparse="csr")
            k = check_clusters(self.n_clusters, rows.shape[0])
            n_init, seed = whole("n_init", self.n_init, least=1), seed_of(self.random_state)
            features = fourier_features(
                named_kernel(self.kernel, gamma=self.gamma, nu=self.nu),
                features=self.n_random_features,
                kind=self.feature_map,
                seed=seed,
            )
            tried = (features,) if features.settled else maps_around(features, checked_spread(rows))
            schemas = [Schema(self.n_features_in_, features=each) for each in tried]
            summaries = [summary_of(rows, schema, n_clusters=k) for schema in schemas]
            eigengaps = np.array([eigengap(each, n_clusters=k) for each in summaries])
            best = int(eigengaps.argmax())
            embedding = scores(rows, schemas[best], summaries[best], n_clusters=k)
            kmeans = k_means(embedding, k, n_init=n_init, seed=seed)
        self.gammas_ = np.array([each.kernel.gamma for each in tried])
        self.eigengaps_ = eigengaps
        self.schema_, self.subspace_ = schemas[best], summaries[best]
        self.feature_map_, self.kernel_ = tried[best], tried[best].kernel
        self.embedding_ = embedding
        self.kmeans_, self.labels_ = kmeans, kmeans.labels_
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.integer[Any]]:
        """Return the cluster of each row of X (n, n_features), new ones included."""
        check_is_fitted(self)
        rows = validated(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        k = self.kmeans_.n_clusters
        return np.asarray(
            self.kmeans_.predict(scores(rows, self.schema_, self.subspace_, n_clusters=k))
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "kmeans_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

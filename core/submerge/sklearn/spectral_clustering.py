"""KernelSpectralClustering: random features, their leading scores, k-means.

The pieces are `submerge.kernel.spectral`'s, which a fleet can use without moving a row; here all
rows are in one place, and k-means is scikit-learn's.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from submerge.errors import whole
from submerge.features import Kernel
from submerge.kernel.auto_gamma import sized
from submerge.kernel.spectral import eigengap, learnt, maps_around, scores
from submerge.schema import Schema
from submerge.sklearn.fitting import all_or_nothing, check_clusters, clustered, seed_of
from submerge.sklearn.kernel_names import named_kernel
from submerge.sklearn.lifting import fourier_features


class KernelSpectralClustering(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Spectral clustering on kernel scores, in time linear in the rows: no affinity matrix.

    Parameters
    ----------
    n_clusters : int
    kernel : {"gaussian", "laplace", "matern"} or Kernel
        Radial ones only: they have Fourier features. "rbf" is another name of "gaussian". A
        `submerge.features` kernel brings its own parameters.
    gamma : "auto" or float
        Scale of the kernel. "auto" tries 1/4, 1 and 4 times the kernel's own for the
        covariance of X, and takes the one with the widest eigengap; rows that are all equal
        are refused.
    nu : {1.5, 2.5}
        Smoothness of "matern".
    n_random_features : int
        D, their number. The error of the kernel falls with its root.
    feature_map : {"orthogonal", "fourier-pair", "fourier-cos", "quasi"}
        Their kind, see `submerge.features.RandomFourier`.
    n_init : int
        Runs of k-means; the best counts.
    random_state : int
        Of the features and of k-means.

    Attributes
    ----------
    labels_ : (n_samples,)
    embedding_ : (n_samples, n_clusters - 1)
        Scores that k-means saw (one column for a single cluster).
    kernel_ : Kernel
        With the gamma that was taken.
    gammas_, eigengaps_ : (m,)
        Those tried, and how far each keeps n_clusters - 1 directions above the rest.
    subspace_ : Subspace
        Of the features, mergeable with that of any estimator with the same `schema_`.
    schema_ : Schema
        What its vectors mean.
    feature_map_ : FeatureMap
        What rows become before they are learnt.
    kmeans_ : KMeans
        With centers in the scores' space, and `inertia_`.
    n_features_in_ : int
    feature_names_in_ : (n_features_in_,)
        Column names, where X had any that are strings.

    See Also
    --------
    submerge.kernel.spectral : The same over nodes that keep their rows.
    sklearn.cluster.SpectralClustering : Normal cuts of an (n, n) affinity.

    Notes
    -----
    Beside X, whose rows may be sparse, `fit` holds their scores, n_samples (n_clusters - 1)
    numbers, what k-means makes of those, and D (n_clusters + 500) numbers or so: rows are
    lifted 256 at a time.

    Clusters must differ in where they are to the kernel: rings do, touching moons do not.
    Scores are those of kernel PCA, not a normal cut, since random features may give a row a
    negative degree.

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
            rows = validate_data(self, X, dtype=np.float64, accept_sparse="csr")
            k = check_clusters(self.n_clusters, rows.shape[0])
            n_init, seed = whole("n_init", self.n_init, least=1), seed_of(self.random_state)
            features = fourier_features(
                named_kernel(self.kernel, gamma=self.gamma, nu=self.nu),
                features=self.n_random_features,
                kind=self.feature_map,
                seed=seed,
            )
            tried = (features,) if features.settled else maps_around(features, sized(rows))
            schemas = [Schema(self.n_features_in_, features=each) for each in tried]
            summaries = [learnt(rows, schema, n_clusters=k) for schema in schemas]
            eigengaps = np.array([eigengap(each, n_clusters=k) for each in summaries])
            best = int(eigengaps.argmax())
            embedding = scores(rows, schemas[best], summaries[best], n_clusters=k)
            kmeans = clustered(embedding, k, n_init=n_init, seed=seed)
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
        rows = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
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

"""Detectors, behind one face: `fit(parts)`, then `score(rows)`. `detection.py` compares them.

To compare another method, write a class with these two and add it to `DETECTORS`. Packages that
are not installed are named and passed over.

Rows are scaled, about the mean of their node, and without gaps (a lost reading is the node's last
one), so no method has to care for these; ours gets the gaps too.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from plants.plant import Plant

Array = npt.NDArray[np.float64]

WEIGHT = 0.3
"""Of the newest score in an exponentially weighted moving average (EWMA)."""


class Detector(Protocol):
    """Anything that learns from normal rows, and says how odd others are.

    lead : how many rows before each row of the history it wants to see
    """

    lead: int

    def fit(self, parts: Sequence[Array]) -> object:
        """Learn normal rows: each part is one, (lead + 1, channels), the rows before it first."""

    def score(self, rows: Array) -> Array:
        """Return a score for each of a node's rows in their order, (n,): high is odd."""


class ZScore:
    """The largest deviation of a channel, over its spread: what a limit per channel amounts to."""

    lead = 0

    def fit(self, parts: Sequence[Array]) -> None:
        """Take each channel's spread."""
        self._spread = np.concatenate(parts).std(axis=0)

    def score(self, rows: Array) -> Array:
        """Return the largest of all channels."""
        return np.asarray((np.abs(rows) / self._spread).max(axis=1))


class LedoitWolf:
    """Mahalanobis distance with the covariance shrunk as Ledoit and Wolf (2004) do."""

    lead = 0

    def fit(self, parts: Sequence[Array]) -> None:
        """Estimate the covariance."""
        shrunk = importlib.import_module("sklearn.covariance").LedoitWolf()
        self._distance: Callable[[Array], Array] = shrunk.fit(np.concatenate(parts)).mahalanobis

    def score(self, rows: Array) -> Array:
        """Return squared distances."""
        return self._distance(rows)


class IsolationForest:
    """scikit-learn's, 100 trees (Liu et al. 2008)."""

    lead = 0

    def fit(self, parts: Sequence[Array]) -> None:
        """Grow the trees."""
        self._forest = importlib.import_module("sklearn.ensemble").IsolationForest(random_state=0)
        self._forest.fit(np.concatenate(parts))

    def score(self, rows: Array) -> Array:
        """Return how early rows are isolated."""
        return -np.asarray(self._forest.score_samples(rows))


class PyodPca:
    """PyOD's PCA as it comes: distances along all standardized components, by their variance."""

    lead = 0

    def fit(self, parts: Sequence[Array]) -> None:
        """Decompose."""
        self._pca = importlib.import_module("pyod.models.pca").PCA().fit(np.concatenate(parts))

    def score(self, rows: Array) -> Array:
        """Return its decision function."""
        return np.asarray(self._pca.decision_function(rows))


class KMeansConsensus:
    """A 2-means per channel, many models, and consensus: the idea of Netdata's anomaly detection.

    A channel's features are six successive smoothed differences (differences of successive values,
    means of three). A model's score is the mean distance to both centers, over the range of the
    model's own rows; a channel is anomalous if it is above .99 by all models; a row's score is the
    share of such channels. Many rows have none, so the consensus' mean score decides among equals.

    The history is dealt to the models, as hours are with Netdata.
    """

    SMOOTH, LAGS, LIMIT, MODELS = 3, 6, 0.99, 18
    lead = SMOOTH + LAGS - 1

    def fit(self, parts: Sequence[Array]) -> None:
        """Find two centers per channel and model."""
        cluster = importlib.import_module("sklearn.cluster")
        dealt = [parts[i :: self.MODELS] for i in range(min(self.MODELS, len(parts)))]
        self._models = []
        for some in dealt:
            features = np.concatenate([self._features(part) for part in some], axis=1)
            centers = np.stack(
                [
                    cluster.KMeans(2, n_init=1, random_state=0).fit(channel).cluster_centers_
                    for channel in features
                ]
            )
            reach = self._reach(features, centers)
            self._models.append((centers, reach.min(axis=1), reach.max(axis=1)))

    def score(self, rows: Array) -> Array:
        """Return the share of channels that all models call anomalous."""
        features = self._features(rows)
        least = np.full(features.shape[:2], np.inf)
        for centers, low, high in self._models:
            far = (self._reach(features, centers) - low[:, None]) / (high - low)[:, None]
            np.minimum(least, far, out=least)
        first = np.zeros(len(rows) - least.shape[1])
        share = (least > self.LIMIT).mean(axis=0)
        return np.concatenate([first, share + 1e-3 * np.minimum(least, 1.0).mean(axis=0)])

    def _features(self, rows: Array) -> Array:
        """Return (channels, n - 8, 6)."""
        steps = np.diff(rows, axis=0)
        window = np.lib.stride_tricks.sliding_window_view
        smooth = window(steps, self.SMOOTH, axis=0).mean(axis=2)
        return np.moveaxis(window(smooth, self.LAGS, axis=0), 1, 0)

    @staticmethod
    def _reach(features: Array, centers: Array) -> Array:
        """Return mean distances to both centers, (channels, n)."""
        away = [np.linalg.norm(features - centers[:, None, i], axis=2) for i in (0, 1)]
        return np.asarray((away[0] + away[1]) / 2)


class Smoothed:
    """Another detector, its scores averaged over rows.

    The median of three rows goes into the average, so that one wild row is no fault.
    """

    def __init__(self, inner: Detector) -> None:
        self.inner, self.lead = inner, inner.lead

    def fit(self, parts: Sequence[Array]) -> None:
        """Learn."""
        self.inner.fit(parts)

    def score(self, rows: Array) -> Array:
        """Return the average."""
        scores = self.inner.score(rows)
        early = np.concatenate([scores[:1], scores[:1], scores])
        three = np.median(np.stack([early[2:], early[1:-1], early[:-2]]), axis=0)
        now, smooth = float(three[0]), np.empty_like(three)
        for i, score in enumerate(three.tolist()):
            now += WEIGHT * (score - now)
            smooth[i] = now
        return smooth


Make = Callable[[Plant], Detector]

DETECTORS: dict[str, tuple[str, Make]] = {
    "z-score per channel": ("", lambda _: ZScore()),
    "Mahalanobis (Ledoit-Wolf)": ("sklearn", lambda _: LedoitWolf()),
    "the same, smoothed": ("sklearn", lambda _: Smoothed(LedoitWolf())),
    "IsolationForest": ("sklearn", lambda _: IsolationForest()),
    "PyOD's PCA": ("pyod", lambda _: PyodPca()),
    "k-means consensus": ("sklearn", lambda _: KMeansConsensus()),
}
"""By name: the package that it needs, and how it is made for a plant."""


def installed(package: str) -> bool:
    """Return whether a package can be imported."""
    try:
        found: Any = importlib.import_module(package) if package else True
    except ImportError:
        return False
    return bool(found)

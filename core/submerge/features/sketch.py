"""Sketched: the features of another map, sketched to few.

disKPCA takes leverage scores from t = O(k / eps) numbers a row where a kernel needs thousands of
features (Balcan et al., arXiv:1503.06858). T (t, D) is random, and <T phi, T psi> = <phi, psi> on
average; T is the same to the bit on every machine (`draws`):

- `countsketch`: each feature goes to one number, with a random sign (Clarkson, Woodruff 2013)
- `srht`: signs, a Hadamard transform, and t of its numbers (Ailon, Chazelle 2009)
- `gaussian`: independent normals; the least error, and D t products a row
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.features import draws, hadamard
from submerge.features.checks import MOST_FEATURES, check_seed, count
from submerge.features.count_sketch import Buckets
from submerge.features.feature_map import FeatureMap, kept
from submerge.features.forms import MOST_BYTES

Sketch = Literal["countsketch", "srht", "gaussian"]

BUCKETS, SIGNS, ROWS, NORMALS = range(96, 100)
"""Streams of a seed that are drawn from: no other map has these, so seeds may be equal."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Sketched:
    """The features of a map, sketched to fewer.

    Parameters
    ----------
    of : FeatureMap
        Any but another `Sketched`.
    features : int
        t, 1 to 65536, and at most the features of the map.
    sketch : {"srht", "countsketch", "gaussian"}
    seed : int
        0 to 2^63 - 1.

    Raises
    ------
    UsageError
        If a parameter is out of range; `dim` and `lift` do if t is more than the map's features.

    Examples
    --------
    >>> import numpy as np
    >>> from submerge.features import Gaussian, RandomFourier
    >>> map_ = Sketched(RandomFourier(Gaussian(0.5), 2000), features=50)
    >>> map_.lift(np.zeros((3, 9))).shape
    (3, 50)
    """

    of: FeatureMap
    features: int = 50
    sketch: Sketch = "srht"
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.of, Sketched) or not hasattr(self.of, "lift"):
            raise UsageError(f"a sketch is of a feature map, got {type(self.of).__name__}")
        count(self, "features", 1, MOST_FEATURES)
        if self.sketch not in get_args(Sketch):
            raise UsageError(
                f"sketch must be one of {', '.join(get_args(Sketch))}, got {self.sketch!r}"
            )
        check_seed(self)

    @property
    def settled(self) -> bool:
        return self.of.settled

    def settled_at(self, gamma: float | None) -> Self:
        return replace(self, of=self.of.settled_at(gamma))

    def auto(self, spread: float) -> float:
        return self.of.auto(spread)

    def dim(self, channels: int) -> int:
        self._inner(channels)
        return self.features

    def lift(self, X: Array) -> Array:
        features = self.of.lift(X)  # which checks the rows
        form = _form(self, self._inner(X.shape[1]))
        with np.errstate(invalid="ignore", over="ignore"):  # NaN passes through
            return form.times(features)

    def pullback(self, X: Array, V: Array) -> Array:
        form = _form(self, self._inner(X.shape[1]))
        with np.errstate(invalid="ignore", over="ignore"):
            return self.of.pullback(X, form.back(V))

    def spec(self) -> dict[str, object]:
        return {
            "kind": "sketched",
            "sketch": self.sketch,
            "features": self.features,
            "seed": self.seed,
            "of": self.of.spec(),
        }

    def weights(self, channels: int) -> Array:
        """Return T, (features, features of the map)."""
        inner = self._inner(channels)
        return np.ascontiguousarray(_form(self, inner).times(np.eye(inner)).T)

    def _inner(self, channels: int) -> int:
        """Return how many features the map has, at least as many as the sketch."""
        inner = self.of.dim(channels)
        if self.features > inner:
            raise UsageError(
                f"a sketch has at most the {inner} features of its map, got {self.features}"
            )
        if self.sketch == "gaussian" and 8 * inner * self.features > MOST_BYTES:
            raise UsageError(
                f"a gaussian sketch would hold {8 * inner * self.features >> 20} MiB of weights,"
                f" at most {MOST_BYTES >> 20} allowed: use 'srht'"
            )
        return inner


@dataclass(frozen=True, slots=True)
class _Summed:
    """A matrix T (t, D) of buckets; this and the two below are its forms."""

    buckets: Buckets

    def times(self, F: Any) -> Array:
        """Return F T', (n, t) from (n, D)."""
        return self.buckets.sums(F)

    def back(self, V: Array) -> Array:
        """Return V T, (n, D) from (n, t)."""
        return self.buckets.back(V)


@dataclass(frozen=True, slots=True)
class _Mixed:
    """Rows of a Hadamard matrix, after signs (D,)."""

    signs: Array
    rows: npt.NDArray[np.intp]

    def times(self, F: Any) -> Array:
        p = hadamard.padded_size(len(self.signs))
        padded = np.zeros((len(F), p))
        np.multiply(F, self.signs, out=padded[:, : len(self.signs)])
        return np.asarray(hadamard.transform(padded)[:, self.rows] / math.sqrt(len(self.rows)))

    def back(self, V: Array) -> Array:
        padded = np.zeros((len(V), hadamard.padded_size(len(self.signs))))
        padded[:, self.rows] = V / math.sqrt(len(self.rows))
        return np.asarray(hadamard.transform(padded)[:, : len(self.signs)] * self.signs)


@dataclass(frozen=True, slots=True)
class _Multiplied:
    """A matrix, transposed: (D, t)."""

    T: Array

    def times(self, F: Any) -> Array:
        return np.asarray(F @ self.T, dtype=np.float64)

    def back(self, V: Array) -> Array:
        return np.asarray(V @ self.T.T)


@kept
def _form(map_: Sketched, inner: int) -> _Summed | _Mixed | _Multiplied:
    """Draw T: D signs and t rows, D buckets, or D t normals."""
    seed, t = map_.seed, map_.features
    if map_.sketch == "countsketch":
        return _Summed(Buckets.draw(t, seed=seed, stream=BUCKETS, channels=inner))
    if map_.sketch == "srht":
        # The order of raw numbers is a random order; no two of 2^64 are equal.
        order = np.argsort(draws.words(seed, ROWS, hadamard.padded_size(inner)), kind="stable")
        return _Mixed(draws.signs(seed, SIGNS, inner), np.sort(order[:t]))
    normals = draws.normals(seed, NORMALS, inner * t).reshape(inner, t)
    return _Multiplied(normals / math.sqrt(t))

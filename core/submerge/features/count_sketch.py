"""CountSketch: many channels summed into few buckets, each with a random sign.

Inner products are kept on average, and exactly for rows whose channels share no bucket (Charikar,
Chen, Farach-Colton, 2002). `TensorSketch` combines several for a polynomial kernel. Fourier
features of one are the fast product of Musco & Woodruff, arXiv:1711.01596, 3.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.features import draws, sparse
from submerge.features.checks import MOST_FEATURES, check_even, check_kernel, check_seed, count
from submerge.features.feature_map import OfKernel, kept
from submerge.features.fourier import RandomFourier
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern

FIRST_STREAM = 16
"""First stream of a seed that assigns channels to buckets; `weights` has those below."""


class Buckets(NamedTuple):
    """The bucket of each channel (channels,), below `n`, and its sign, +-1."""

    bucket: npt.NDArray[np.int64]
    sign: Array
    n: int

    @classmethod
    def draw(cls, n: int, *, seed: int, stream: int, channels: int) -> Buckets:
        """Draw buckets: a raw number's upper half gives the bucket, its last bit the sign."""
        words = draws.words(seed, stream, channels)
        sign = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)
        return cls(draws.below(words, n), sign, n)

    def sums(self, X: Any) -> Array:
        """Return the sketches (rows, n) of rows, dense or CSR, of all channels or fewer."""
        if sparse.is_sparse(X):
            row, channel, entries = sparse.rows_of(X), X.indices, X.data
        else:
            row, channel = np.arange(X.shape[0])[:, None], np.arange(X.shape[1])
            entries = X
        cell = row * self.n + self.bucket[channel]
        signed = entries * self.sign[channel]
        sums = np.bincount(cell.ravel(), signed.ravel(), X.shape[0] * self.n)
        # Without any entries NumPy returns whole numbers.
        return sums.astype(np.float64, copy=False).reshape(-1, self.n)

    def moved(self, X: Any) -> Any:
        """Return CSR rows over the buckets; entries of one bucket stand for their sum."""
        parts = (X.data * self.sign[X.indices], self.bucket[X.indices], X.indptr)
        return type(X)(parts, shape=(X.shape[0], self.n))

    def back(self, V: Array) -> Array:
        """Return the gradient (rows, channels) by channels from one by buckets (rows, n)."""
        return np.asarray(V[:, self.bucket] * self.sign)

    @property
    def signed(self) -> Array:
        """Bucket and sign of each channel as one number: +-(1 + bucket)."""
        return self.sign * (1.0 + self.bucket)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CountSketch(OfKernel):
    """Orthogonal Fourier features of a CountSketch: for very many channels, most of them zero.

    Parameters
    ----------
    kernel : Gaussian, Laplace or Matern
    features : int
        As in `RandomFourier`: even, 2 to 65536.
    buckets : int
        1 to 65536. With the square of a row's entries, features are as good as without the sketch.
        With fewer than eight an entry their sums are taken first, and an entry costs least.
    seed : int
    """

    kernel: Kernel = field(default_factory=Gaussian)
    features: int = 512
    buckets: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        check_kernel(self.kernel, Gaussian, Laplace, Matern, of="Fourier features")
        count(self, "features", 2, MOST_FEATURES)
        check_even(self.features, "countsketch")
        count(self, "buckets", 1, MOST_FEATURES)
        check_seed(self)

    def dim(self, channels: int) -> int:
        return self.features

    def lift(self, X: Array) -> Storage:
        rows, (buckets, inner) = sparse.checked(X), _parts_of(self, X.shape[1])
        summed = rows is X or 8 * rows.nnz > rows.shape[0] * buckets.n
        return inner.lift(buckets.sums(rows) if summed else buckets.moved(rows))

    def pullback(self, X: Array, V: Array) -> Array:
        buckets, inner = _parts_of(self, X.shape[1])
        return buckets.back(inner.pullback(buckets.sums(X), V))

    def spec(self) -> dict[str, object]:
        return {
            "kind": "countsketch",
            "features": self.features,
            "buckets": self.buckets,
            "seed": self.seed,
            **self.kernel.spec(),
        }

    def weights(self, channels: int) -> Array:
        """Return bucket and sign of each channel as one number, (1, channels)."""
        return _parts_of(self, channels)[0].signed[None, :]


@kept
def _parts_of(map_: CountSketch, channels: int) -> tuple[Buckets, RandomFourier]:
    """Return the channels' buckets and the map of buckets, which caches its weights."""
    buckets = Buckets.draw(map_.buckets, seed=map_.seed, stream=FIRST_STREAM, channels=channels)
    return buckets, RandomFourier(map_.kernel, map_.features, "orthogonal", map_.seed)

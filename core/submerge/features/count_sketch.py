"""CountSketch: many channels folded into few buckets, each with a random sign.

Inner products survive on average, and exactly for rows whose channels share no bucket; a row
costs as much as it has entries. Alone it stands for the linear kernel; `TensorSketch` combines
several for a polynomial one, and `CountSketch` feeds one to Fourier features, whose weights then
no longer grow with the channels.

References
----------
Charikar, Chen, Farach-Colton, Finding Frequent Items in Data Streams (2002).
Musco, Woodruff, Is Input Sparsity Time Possible for Kernel Low-Rank Approximation?,
arXiv:1711.01596.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.features import draws, sparse
from submerge.features.checks import MOST_FEATURES, check_even, check_kernel, check_seed, count
from submerge.features.feature_map import OfKernel
from submerge.features.fourier import RandomFourier
from submerge.features.kept import kept
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern

FIRST_STREAM = 16
"""Of a seed's streams, the first that deals channels to buckets; `weights` has those below."""


class Buckets(NamedTuple):
    """Where each channel goes.

    bucket : (channels,), whole numbers below `n`
    sign : (channels,), +-1
    n : how many buckets there are
    """

    bucket: npt.NDArray[np.int64]
    sign: Array
    n: int

    @classmethod
    def dealt(cls, n: int, *, seed: int, stream: int, channels: int) -> Buckets:
        """Deal channels out: of a raw number the upper half says where, the last bit the sign."""
        words = draws.words(seed, stream, channels)
        sign = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)
        return cls(draws.below(words, n), sign, n)

    def sums(self, X: Any) -> Array:
        """Return the sketches (rows, n) of rows (rows, channels), dense or CSR.

        There may be fewer channels than were dealt.
        """
        if sparse.is_sparse(X):
            row, channel, entries = sparse.rows_of(X), X.indices, X.data
        else:
            row, channel = np.arange(X.shape[0])[:, None], np.arange(X.shape[1])
            entries = X
        cell = row * self.n + self.bucket[channel]
        signed = entries * self.sign[channel]
        sums = np.bincount(cell.ravel(), signed.ravel(), X.shape[0] * self.n)
        # No entries at all: NumPy then counts them in whole numbers.
        return sums.astype(np.float64, copy=False).reshape(-1, self.n)

    def moved(self, X: Any) -> Any:
        """Return CSR rows over the buckets; entries that share one add up in use."""
        parts = (X.data * self.sign[X.indices], self.bucket[X.indices], X.indptr)
        return type(X)(parts, shape=(X.shape[0], self.n))

    def back(self, V: Array) -> Array:
        """Return what the channels (rows, channels) make of a gradient (rows, n)."""
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
        As of `RandomFourier`: even, 2 to 65536.
    buckets : int
        1 to 65536. More keep apart more channels: with the square of a row's entries, hardly
        two of them meet, and the features are as good as without the sketch.
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
        rows, (dealt, inner) = sparse.checked(X), _made(self, X.shape[1])
        return inner.lift(dealt.sums(X) if rows is X else dealt.moved(rows))

    def pullback(self, X: Array, V: Array) -> Array:
        dealt, inner = _made(self, X.shape[1])
        return dealt.back(inner.pullback(dealt.sums(X), V))

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
        return _made(self, channels)[0].signed[None, :]


@kept
def _made(map_: CountSketch, channels: int) -> tuple[Buckets, RandomFourier]:
    """Return where channels go, and the map of buckets: held, for it holds its weights."""
    dealt = Buckets.dealt(map_.buckets, seed=map_.seed, stream=FIRST_STREAM, channels=channels)
    return dealt, RandomFourier(map_.kernel, map_.features, "orthogonal", map_.seed)

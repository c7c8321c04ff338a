"""TensorSketch: a polynomial kernel without its channels^degree products.

(gamma <x, y> + coef0)^q is the inner product of q-fold tensor products of scaled x with a
constant appended. If the hash of a CountSketch of such a product is the sum of q hashes, the
sketch is the circular convolution of q CountSketches of x (Pham, Pagh 2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.features import sparse
from submerge.features.checks import MOST_FEATURES, check_kernel, check_seed, count
from submerge.features.count_sketch import FIRST_STREAM, Buckets
from submerge.features.feature_map import OfKernel, kept
from submerge.features.kernels import Kernel, Polynomial, gamma_of

Waves = npt.NDArray[np.complex128]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class TensorSketch(OfKernel):
    """Random features of a polynomial kernel: on average K(x, y) = <lift(x), lift(y)>.

    Parameters
    ----------
    kernel : Polynomial
        The error grows with its degree: benchmarks/features.md.
    features : int
        D, 2 to 65536; powers of two transform fastest.
    seed : int
        0 to 2^63 - 1.
    """

    kernel: Kernel = field(default_factory=Polynomial)
    features: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        check_kernel(self.kernel, Polynomial, of="tensor sketches")
        count(self, "features", 2, MOST_FEATURES)
        check_seed(self)

    def dim(self, channels: int) -> int:
        return self.features

    def lift(self, X: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):  # NaN passes through
            return np.fft.irfft(math.prod(self._waves(X)), self.features)

    def pullback(self, X: Array, V: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            waves, wanted = self._waves(X), np.fft.rfft(V)
            gradient = np.zeros(X.shape)
            for i, buckets in enumerate(_buckets_of(self, X.shape[1])):
                # A convolution is linear in each factor; its adjoint correlates with the others.
                others = math.prod(waves[:i] + waves[i + 1 :])
                found = np.fft.irfft(wanted * np.conj(others), self.features)
                gradient += buckets.back(found)[:, :-1]
            return gradient * math.sqrt(gamma_of(self.kernel))

    def spec(self) -> dict[str, object]:
        return {
            "kind": "tensorsketch",
            "features": self.features,
            "seed": self.seed,
            **self.kernel.spec(),
        }

    def weights(self, channels: int) -> Array:
        """Return bucket and sign of each channel and of the constant, (degree, channels + 1)."""
        return np.array([buckets.signed for buckets in _buckets_of(self, channels)])

    def _waves(self, X: Any) -> list[Waves]:
        """Return the transform of each sketch, one for each degree, (n, D // 2 + 1)."""
        kernel: Any = self.kernel
        rows, root = sparse.checked(X), math.sqrt(gamma_of(kernel))
        waves = []
        for buckets in _buckets_of(self, X.shape[1]):
            sketch = buckets.sums(rows) * root
            sketch[:, buckets.bucket[-1]] += buckets.sign[-1] * math.sqrt(kernel.coef0)
            waves.append(np.fft.rfft(sketch))
        return waves


@kept
def _buckets_of(map_: TensorSketch, channels: int) -> tuple[Buckets, ...]:
    """Return buckets for the channels and one more, the constant's, for each degree."""
    kernel: Any = map_.kernel
    return tuple(
        Buckets.draw(map_.features, seed=map_.seed, stream=FIRST_STREAM + i, channels=channels + 1)
        for i in range(kernel.degree)
    )

"""Random Fourier features: a radial kernel as an inner product of cosines, good to 1e-6."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from submerge._linalg import Array, Storage
from submerge.errors import UsageError
from submerge.features import checks, forms, sparse, weights
from submerge.features.feature_map import OfKernel, kept
from submerge.features.forms import MOST_BYTES
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern
from submerge.features.weights import Kind


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RandomFourier(OfKernel):
    """Random Fourier features of a radial kernel: K(x, y) is close to <lift(x), lift(y)>.

    Parameters
    ----------
    kernel : Gaussian, Laplace or Matern
        A gamma of None is settled later.
    features : int
        Number of features, 2 to 65536 and even for the paired kinds. The error falls with
        its square root; memory and time grow with it.
    kind : {"orthogonal", "fourier-pair", "fourier-cos", "quasi"}
        Cosines and sines of orthogonal frequencies; of independent ones; cosines alone, with
        random phases (lengths are 1 on average only); cosines and sines of Sobol points, for
        at most 8 channels.
    seed : int
        0 to 2^63 - 1. The same seed gives the same weights on every machine.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> map_ = RandomFourier(Gaussian(0.5), features=512)
    >>> phi = map_.lift(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.5]]))
    >>> bool(abs(phi[0] @ phi[1] - np.exp(-0.5 * 0.5**2)) < 0.05)
    True
    """

    kernel: Kernel = field(default_factory=Gaussian)
    features: int = 512
    kind: Kind = "orthogonal"
    seed: int = 0

    def __post_init__(self) -> None:
        checks.check_kernel(self.kernel, Gaussian, Laplace, Matern, of="Fourier features")
        checks.count(self, "features", 2, checks.MOST_FEATURES)
        if self.kind not in get_args(Kind):
            raise UsageError(f"kind must be one of {', '.join(get_args(Kind))}, got {self.kind!r}")
        if self._paired:
            checks.check_even(self.features, self.kind)
        checks.check_seed(self)

    def dim(self, channels: int) -> int:
        self._check_channels(channels)
        return self.features

    def lift(self, X: Array) -> Storage:
        rows = sparse.checked(X)
        self._check_channels(X.shape[1])
        form = _form(self, X.shape[1], rows is not X)
        phi = np.empty((X.shape[0], self.features), dtype=np.float32)
        with np.errstate(invalid="ignore", over="ignore"):  # NaN passes through
            for part, angles in form.angles(rows):
                np.cos(angles, out=phi[part, : self._waves])
                if self._paired:
                    np.sin(angles, out=phi[part, self._waves :])
                phi[part] *= self._scale
        return phi

    def pullback(self, X: Array, V: Array) -> Array:
        self._check_channels(X.shape[1])
        form = _form(self, X.shape[1], False)
        gradient = np.empty(X.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            for part, angles in form.angles(X):
                C = V[part, : self._waves] * -np.sin(angles)
                if self._paired:
                    C += V[part, self._waves :] * np.cos(angles)
                gradient[part] = form.back(C * self._scale)
        return gradient

    def spec(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "features": self.features,
            "seed": self.seed,
            **self.kernel.spec(),
        }

    def weights(self, channels: int) -> Array:
        """Return the frequencies, one for each cosine, (waves, channels)."""
        self._check_channels(channels)
        kernel: Any = self.kernel  # radial, checked in __post_init__
        return weights.matrix(kernel, self._waves, self.kind, self.seed, channels)

    @property
    def _paired(self) -> bool:
        return self.kind != "fourier-cos"

    @property
    def _waves(self) -> int:
        return self.features // 2 if self._paired else self.features

    @property
    def _scale(self) -> np.float32:
        return np.float32(math.sqrt(2 / self.features))

    def _check_channels(self, channels: int) -> None:
        if self.kind == "quasi" and channels > weights.MOST_QUASI:
            raise UsageError(
                f"kind 'quasi' is for at most {weights.MOST_QUASI} dimensions, got {channels}:"
                " use 'orthogonal'"
            )
        if self.kind != "orthogonal" and 8 * self._waves * channels > MOST_BYTES:
            raise UsageError(
                f"kind {self.kind!r} would hold {8 * self._waves * channels >> 20} MiB of weights"
                f" for {channels} channels, at most {MOST_BYTES >> 20} allowed: use 'orthogonal'"
            )


@kept
def _form(map_: RandomFourier, channels: int, sparse_rows: bool) -> forms.Dense | forms.Fast:
    kernel: Any = map_.kernel  # radial, checked in __post_init__
    size = 8 * map_._waves * channels
    if map_.kind == "orthogonal" and forms.is_fast(size, channels, sparse_rows=sparse_rows):
        rows = weights.structured(kernel, map_._waves, map_.seed, channels)
        return forms.Fast(rows, channels)
    phases = None if map_._paired else weights.phases(map_.features, map_.seed)
    return forms.Dense.of(map_.weights(channels), phases, sparse_rows=sparse_rows)


def features_for(share: float, eps: float, *, failure: float = 0.1) -> int:
    """Return an even number of features for which the bound holds.

    Parameters
    ----------
    share : float
        lambda / n, above 0 and below 1: eigenvalues of K below this share of its trace may be lost.
    eps : float
        Relative error, above 0 and below 1.
    failure : float
        Probability that the bound does not hold, above 0 and below 1.

    Raises
    ------
    UsageError
        If one is out of range.

    Examples
    --------
    >>> from submerge.features import features_for
    >>> features_for(0.1, 0.5)
    788
    """
    for name, value in (("share", share), ("eps", eps), ("failure", failure)):
        if not checks.is_number(value) or not 0 < value < 1:
            raise UsageError(f"{name} must be above 0 and below 1, got {value!r}")
    enough = 8 / 3 / share * math.log(16 / share / failure) / eps**2
    return 2 * math.ceil(enough / 2)

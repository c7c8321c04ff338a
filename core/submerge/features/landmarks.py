"""Nystrom features: a row's kernel with a few landmarks, whitened.

phi(x) = K(x, L) K(L, L)^(-1/2) is the projection of x's feature on the landmarks' span, so
<phi(x), phi(y)> is the kernel itself where either is a landmark. Landmarks are readings of some
node: they travel in the spec, to the bit, and can be read by all who have the schema.

References
----------
Williams, Seeger, Using the Nystrom Method to Speed Up Kernel Machines (2001).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from submerge._linalg import Array, unmasked
from submerge.errors import ShapeError, UsageError
from submerge.features import sparse
from submerge.features.checks import check_kernel
from submerge.features.eigen import Solid
from submerge.features.feature_map import OfKernel
from submerge.features.kept import kept
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern, Polynomial

MOST = 4096
"""Most landmarks: memory grows with their square, and the root of their kernel with their cube."""

FARTHEST = 1e150
"""Largest number in a landmark: beyond it, squared distances overflow."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Landmarks(OfKernel):
    """The Nystrom map of some landmarks: as many features as there are landmarks.

    Parameters
    ----------
    kernel : Gaussian, Laplace, Matern or Polynomial
    points : (m, channels)
        The landmarks, m from 1 to 4096, in scaled readings; kept as read-only float64 and
        compared by value.

    Raises
    ------
    UsageError
        If there are none or too many, or one is not finite or is larger than 1e150.

    Notes
    -----
    Directions of the landmarks' kernel below 1e-10 of its largest eigenvalue are left out, because
    they may be rounding. Radial kernels do not depend on the origin. Polynomial ones do: for rows
    farther from zero than 1e5 times their spread, the largest eigenvalue is that of the offset,
    and hardly anything else is above the cut. Center such rows first, or let the schema's scaling
    do it.
    """

    kernel: Kernel
    points: Array = field(compare=False)
    channels: int = field(init=False)
    packed: bytes = field(init=False)

    def __post_init__(self) -> None:
        check_kernel(self.kernel, Gaussian, Laplace, Matern, Polynomial, of="landmarks")
        points = _points(self.points)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "channels", points.shape[1])
        # Bytes hash once, and equal themselves at once.
        object.__setattr__(self, "packed", points.astype("<f8", copy=False).tobytes())

    def __reduce__(self) -> tuple[type[Landmarks], tuple[Kernel, Array]]:
        # The copy is constructed again, so that its points are read-only too.
        return Landmarks, (self.kernel, self.points)

    def __repr__(self) -> str:
        m, channels = self.points.shape
        return f"Landmarks(kernel={self.kernel}, points={m} of {channels} channels)"

    def dim(self, channels: int) -> int:
        if channels != self.channels:
            raise UsageError(f"landmarks are rows of {self.channels} channels, got {channels}")
        return len(self.points)

    def lift(self, X: Array) -> Array:
        rows = sparse.checked(X)
        self.dim(X.shape[1])
        root = self.whitening
        with np.errstate(invalid="ignore", over="ignore"):  # NaN passes through
            return np.asarray(self.kernel(rows, self.points) @ root)

    def pullback(self, X: Array, V: Array) -> Array:
        self.dim(X.shape[1])
        root = self.whitening
        with np.errstate(invalid="ignore", over="ignore"):
            return self.kernel.pull(X, self.points, V @ root)

    def spec(self) -> dict[str, object]:
        return {
            "kind": "nystrom",
            "channels": self.channels,
            "points": base64.b64encode(self.packed).decode(),
            **self.kernel.spec(),
        }

    @property
    def whitening(self) -> Array:
        """K(L, L)^(-1/2) on the directions above the cut, (m, m) and read-only. O(m^3), once.

        The symmetric root depends on the kernel alone, not on the choice of eigenvectors.

        Raises
        ------
        UsageError
            If the landmarks' kernel overflows, or its gamma is not settled.
        """
        return _whitening(self)


def unpacked(text: str, channels: int) -> Array:
    """Return the landmarks (m, channels) of a spec's text, or raise `ValueError`."""
    packed = base64.b64decode(text, validate=True)
    return np.frombuffer(packed, dtype="<f8").reshape(-1, channels)


def _points(given: Any) -> Array:
    given = unmasked(given)
    points = sparse.as_csr(given).toarray() if sparse.is_sparse(given) else np.asarray(given)
    if points.ndim != 2 or not 1 <= len(points) <= MOST or points.shape[1] < 1:
        raise ShapeError("landmarks", expected=f"(1 to {MOST}, channels)", got=points.shape)
    with np.errstate(over="ignore"):
        # + 0.0: a negative zero is the same reading.
        points = points.astype(np.float64, order="C") + 0.0
    usable = np.abs(points) <= FARTHEST  # False for NaN
    if not usable.all():
        row = int(np.flatnonzero(~usable.all(axis=1))[0])
        raise UsageError(
            f"landmarks must be finite and at most {FARTHEST:g} in size, got others in row {row}"
        )
    points.flags.writeable = False
    return points


@kept
def _whitening(map_: Landmarks) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        K = map_.kernel(map_.points, map_.points)
    if not np.isfinite(K).all():
        raise UsageError(f"the kernel of landmarks must be finite: {map_.kernel} is too steep")
    values, V = Solid.of(K)
    root = np.asarray((V / np.sqrt(values)) @ V.T)
    root.flags.writeable = False
    return root

"""Nystrom features: a row's kernel with a few landmarks, whitened (Williams and Seeger 2001).

phi(x) = K(x, L) K(L, L)^(-1/2) is the projection of x's feature on the landmarks' span, so
<phi(x), phi(y)> is the kernel itself where either is a landmark. Landmarks travel in the spec.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from submerge._linalg import Array, Storage, unmasked
from submerge.errors import ShapeError, UsageError
from submerge.features import sparse
from submerge.features.checks import check_kernel, count
from submerge.features.feature_map import FeatureMap, OfKernel, kept
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern, Polynomial

CUT = 1e-10
"""Smallest eigenvalue, over the largest, that is divided by.

A kernel matrix carries rounding of 1e-16 of its size, and results are divided by the eigenvalue's
root: 1e-11 of the size is left."""


class Solid(NamedTuple):
    """Eigenvalues (r,) above the cut, ascending, and their eigenvectors (m, r)."""

    values: Array
    vectors: Array

    @classmethod
    def of(cls, K: Array) -> Solid:
        """Decompose a positive semi-definite matrix (m, m); one of zeros has none. O(m^3)."""
        values, vectors = np.linalg.eigh(K)
        solid = values > CUT * max(values[-1], 0.0)
        return cls(values[solid], vectors[:, solid])

    @property
    def roots(self) -> Array:
        """Return B (m, r) with B B' the pseudo-inverse."""
        return np.asarray(self.vectors / np.sqrt(self.values))


MOST = 4096
"""Most landmarks: memory grows with their square, and the root of their kernel with their cube."""

FARTHEST = 1e150  # largest number in a landmark: beyond it, squared distances overflow


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


# It has the number of landmarks, so that sizes are known, and it lifts nothing.

OPEN_KIND = "nystrom-open"


@dataclass(frozen=True, slots=True)
class OpenLandmarks(OfKernel):
    """A Nystrom map without its landmarks.

    Parameters
    ----------
    kernel : Gaussian, Laplace, Matern or Polynomial
    landmarks : int
        How many the fleet chooses, 1 to 4096. Where there are fewer rows it may be fewer.
    """

    kernel: Kernel
    landmarks: int

    def __post_init__(self) -> None:
        check_kernel(self.kernel, Gaussian, Laplace, Matern, Polynomial, of="landmarks")
        count(self, "landmarks", 1, MOST)

    @property
    def settled(self) -> bool:
        return False

    def dim(self, channels: int) -> int:
        return self.landmarks

    def lift(self, X: Array) -> Storage:
        raise UsageError("the fleet has not chosen its landmarks yet: wait until it has")

    def pullback(self, X: Array, V: Array) -> Array:
        raise UsageError("the fleet has not chosen its landmarks yet: wait until it has")

    def spec(self) -> dict[str, object]:
        return {"kind": OPEN_KIND, "landmarks": self.landmarks, **self.kernel.spec()}

    def chosen(self, points: Array) -> Landmarks:
        """Return the map of chosen landmarks (m, channels); UsageError if they are unusable."""
        if len(points) > self.landmarks:
            raise UsageError(f"at most {self.landmarks} landmarks, got {len(points)}")
        map_ = Landmarks(self.kernel, points)
        _ = map_.whitening  # whether there is one
        return map_


def as_left_open(found: FeatureMap, asked: FeatureMap) -> FeatureMap:
    """Return `found` without what `asked` leaves open: `asked` itself, if it settles that."""
    if asked.settled:
        return found
    if not isinstance(asked, OpenLandmarks):
        return found.settled_at(None)
    if isinstance(found, Landmarks) and len(found.points) <= asked.landmarks:
        found = OpenLandmarks(found.kernel, asked.landmarks)
    return found if asked.kernel.gamma is not None else found.settled_at(None)

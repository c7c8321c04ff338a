"""OpenLandmarks: the Nystrom map of landmarks that the fleet has still to choose.

It stands in a schema as an open gamma does: nodes measure until the root settles it. It has the
number of landmarks, so that sizes are known, and it lifts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from submerge._linalg import Array, Storage
from submerge.errors import UsageError
from submerge.features.checks import check_kernel, count
from submerge.features.feature_map import FeatureMap, OfKernel
from submerge.features.kernels import Gaussian, Kernel, Laplace, Matern, Polynomial
from submerge.features.landmarks import MOST, Landmarks

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
        """Return the map of chosen landmarks (m, channels).

        Raises
        ------
        UsageError
            If they are too many, gamma is open, or their kernel overflows.
        """
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

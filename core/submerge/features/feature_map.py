"""FeatureMap: what a reading becomes before it is learnt.

A map is frozen and says all that it is in `spec()`, which enters the schema's
fingerprint: nodes whose maps differ never merge. Linear fleets use `Identity`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from submerge._linalg import Array, Storage
from submerge.features.sparse import checked


class FeatureMap(Protocol):
    """From scaled readings (n, channels) to features (n, dim)."""

    @property
    def settled(self) -> bool:
        """False while its kernel's gamma is still the fleet's to say: it cannot lift yet."""

    def settled_at(self, gamma: float | None) -> Self:
        """Return this map with the gamma that the fleet has settled on; None leaves it open."""

    def auto(self, spread: float) -> float:
        """Return gamma for rows whose mean squared distance to one another is 2 `spread`."""

    def dim(self, channels: int) -> int:
        """Return the number of features for that many channels."""

    def lift(self, X: Array) -> Storage:
        """Map rows (n, channels), dense or sparse, to (n, dim).

        They are float32 from maps of waves, `RandomFourier` and `CountSketch`, and float64
        otherwise. Dense rows may hold NaN, and their features then do too; sparse ones must be
        finite.
        """

    def pullback(self, X: Array, V: Array) -> Array:
        """Return J(x)'v for each row x of X (n, channels) and v of V (n, dim).

        J is the map's derivative at x, so this is the gradient of <v, lift(x)> with respect
        to the scaled readings: (n, channels).
        """

    def spec(self) -> dict[str, object]:
        """Return the map's whole description: equal specs are equal maps."""


class OfKernel:
    """What maps have in common that stand in for a kernel: its gamma, settled or not."""

    __slots__ = ()
    kernel: Any

    @property
    def settled(self) -> bool:
        return bool(self.kernel.gamma is not None)

    def settled_at(self, gamma: float | None) -> Self:
        # Every map is a dataclass; this is none, or its field would come before theirs.
        return replace(self, kernel=self.kernel.settled_at(gamma))  # type: ignore[type-var]

    def auto(self, spread: float) -> float:
        return float(self.kernel.auto(spread))


@dataclass(frozen=True, slots=True)
class Identity:
    """The linear map: features are the scaled readings themselves."""

    @property
    def settled(self) -> bool:
        return True

    def settled_at(self, gamma: float | None) -> Self:
        return self

    def auto(self, spread: float) -> float:
        return 1.0

    def dim(self, channels: int) -> int:
        return channels

    def lift(self, X: Array) -> Array:
        rows = checked(X)
        return X if rows is X else np.asarray(rows.toarray())

    def pullback(self, X: Array, V: Array) -> Array:
        return V

    def spec(self) -> dict[str, object]:
        return {"kind": "identity"}

"""Feature maps: what a reading becomes before it is learnt.

A map is frozen and says all that it is in `spec()`, which enters the schema's
fingerprint: nodes whose maps differ never merge. Linear fleets use `Identity`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from submerge._linalg import Array


class FeatureMap(Protocol):
    """From scaled readings (n, channels) to features (n, dim)."""

    def dim(self, channels: int) -> int:
        """Return the number of features for that many channels."""

    def lift(self, X: Array) -> Array:
        """Map rows (n, channels) to (n, dim)."""

    def spec(self) -> dict[str, object]:
        """Return the map's whole description: equal specs are equal maps."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The linear map: features are the scaled readings themselves."""

    def dim(self, channels: int) -> int:
        return channels

    def lift(self, X: Array) -> Array:
        return X

    def spec(self) -> dict[str, object]:
        return {"kind": "identity"}

"""FeatureMap: maps a reading to the features that are learnt, and says all of it in `spec()`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from submerge._linalg import Array, Storage
from submerge.features.sparse import checked

M = TypeVar("M")
P = ParamSpec("P")
T = TypeVar("T")

SHAPES = 4
"""Values cached for one map: they differ by the rows' channels and by whether rows are sparse."""

RECENT = 4  # maps whose values are held even if no other reference to the map exists


def kept(build: Callable[Concatenate[M, P], T]) -> Callable[Concatenate[M, P], T]:
    """Return `build(map, ...)` with its results cached; the map is hashable, and in no result."""
    built: WeakKeyDictionary[Any, dict[Hashable, Any]] = WeakKeyDictionary()
    recent: deque[Any] = deque(maxlen=RECENT)

    @wraps(build)
    def cached(map_: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        of_map = built.get(map_)
        if of_map is None:
            of_map = built.setdefault(map_, {})
        key = (*args, *kwargs.items())
        try:
            found: T = of_map[key]
        except KeyError:
            found = build(map_, *args, **kwargs)
            # Two threads may both come here; they build the same.
            while len(of_map) >= SHAPES:
                of_map.pop(next(iter(of_map)), None)
            of_map[key] = found
            recent.append(map_)
        return found

    return cached


class FeatureMap(Protocol):
    """From scaled readings (n, channels) to features (n, dim)."""

    @property
    def settled(self) -> bool:
        """False until the fleet settles its kernel's gamma: it cannot lift before."""

    def settled_at(self, gamma: float | None) -> Self:
        """Return this map with the gamma that the fleet has settled on; None leaves it open."""

    def auto(self, spread: float) -> float:
        """Return gamma for rows whose mean squared distance to one another is 2 `spread`."""

    def dim(self, channels: int) -> int:
        """Return the number of features for that many channels."""

    def lift(self, X: Array) -> Storage:
        """Map rows (n, channels), dense or sparse, to (n, dim).

        Features of `RandomFourier` and `CountSketch` are float32, those of other maps float64.
        Dense rows may hold NaN, and their features then do too; sparse ones must be finite.
        """

    def pullback(self, X: Array, V: Array) -> Array:
        """Return J(x)'v for each row x of X (n, channels) and v of V (n, dim).

        J is the map's derivative at x, so this is the gradient of <v, lift(x)> with respect
        to the scaled readings: (n, channels).
        """

    def spec(self) -> dict[str, object]:
        """Return the map's complete description: equal specs mean equal maps."""


class OfKernel:
    """Base of maps that approximate a kernel: handles the kernel's gamma."""

    __slots__ = ()
    kernel: Any

    @property
    def settled(self) -> bool:
        return bool(self.kernel.gamma is not None)

    def settled_at(self, gamma: float | None) -> Self:
        # Every map is a dataclass. This base is not, or its field would come before theirs.
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

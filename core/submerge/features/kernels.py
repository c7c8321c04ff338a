"""Kernels as values: a feature map approximates one; `gamma` is None until the fleet settles it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from submerge._linalg import Array, unmasked
from submerge.errors import UsageError
from submerge.features.checks import count, is_number
from submerge.features.sparse import is_sparse, square_lengths

MOST_DEGREE = 64
"""Highest degree: there, inner products that differ by 1 % give kernels that differ twofold."""

SAMPLED = 31  # rows whose median is taken: the median of all would cost as much as the distances

GOLDEN = (math.sqrt(5) - 1) / 2


class Kernel(Protocol):
    """A positive definite function of two rows."""

    @property
    def gamma(self) -> float | None:
        """Its scale; None until it is settled."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix (n, m) of rows X (n, d) and Y (m, d), each perhaps sparse."""

    def pull(self, X: Array, Y: Array, C: Array) -> Array:
        """Return the gradients of sum_j C_ij K(x_i, y_j) with respect to x_i: (n, d)."""

    def diagonal(self, X: Array) -> Array:
        """Return K(x, x) for each row x of X (n, d), perhaps sparse, all finite: (n,)."""

    def settled_at(self, gamma: float | None) -> Self:
        """Return the kernel with this gamma; None leaves it open."""

    def auto(self, spread: float) -> float:
        """Return gamma for rows whose mean squared distance to one another is 2 `spread`."""

    def spec(self) -> dict[str, object]:
        """Return its complete description."""


class _WithGamma:
    """Base of kernels, which checks and sets their gamma."""

    __slots__ = ()

    def __post_init__(self) -> None:
        _as_floats(self)

    def settled_at(self, gamma: float | None) -> Self:
        return replace(self, gamma=gamma)  # type: ignore[type-var]


class _Radial(_WithGamma):
    """Base of kernels that are 1 at distance 0."""

    __slots__ = ()

    def diagonal(self, X: Array) -> Array:
        return np.ones(X.shape[0])


@dataclass(frozen=True, slots=True)
class Gaussian(_Radial):
    """exp(-gamma |x - y|^2)."""

    gamma: float | None = None

    def __call__(self, X: Array, Y: Array) -> Array:
        return np.exp(-gamma_of(self) * squared_distances(X, Y))

    def pull(self, X: Array, Y: Array, C: Array) -> Array:
        return radial_pull(X, Y, -gamma_of(self) * self(X, Y) * C)

    def auto(self, spread: float) -> float:
        return 1 / (2 * spread)

    def spec(self) -> dict[str, object]:
        return {"kernel": "gaussian", "gamma": _hex(self.gamma)}


@dataclass(frozen=True, slots=True)
class Laplace(_Radial):
    """exp(-gamma |x - y|), the distance Euclidean (scikit-learn's `laplacian` sums by channel)."""

    gamma: float | None = None

    def __call__(self, X: Array, Y: Array) -> Array:
        return np.exp(-gamma_of(self) * np.sqrt(squared_distances(X, Y)))

    def pull(self, X: Array, Y: Array, C: Array) -> Array:
        gamma, r = gamma_of(self), np.sqrt(squared_distances(X, Y))
        # At r = 0 there is no gradient, and 0 is used.
        slope = -gamma * np.exp(-gamma * r) / np.where(r == 0, np.inf, 2 * r)
        return radial_pull(X, Y, slope * C)

    def auto(self, spread: float) -> float:
        return float((2 * spread) ** -0.5)

    def spec(self) -> dict[str, object]:
        return {"kernel": "laplace", "gamma": _hex(self.gamma)}


@dataclass(frozen=True, slots=True)
class Matern(_Radial):
    """Matern of smoothness nu = 1.5 or 2.5 and length 1 / sqrt(2 gamma).

    As nu grows it becomes `Gaussian(gamma)`: the same gamma means the same scale in both.
    """

    gamma: float | None = None
    nu: float = 1.5

    def __post_init__(self) -> None:
        if self.nu not in (1.5, 2.5):
            raise UsageError(f"nu must be 1.5 or 2.5, got {self.nu!r}")
        _as_floats(self, "nu")

    def __call__(self, X: Array, Y: Array) -> Array:
        r = self._stretched(X, Y)
        return (1 + r + (r**2 / 3 if self.nu == 2.5 else 0)) * np.exp(-r)

    def pull(self, X: Array, Y: Array, C: Array) -> Array:
        r = self._stretched(X, Y)
        slope = -2 * self.nu * gamma_of(self) * np.exp(-r)
        return radial_pull(X, Y, (slope * (1 + r) / 3 if self.nu == 2.5 else slope) * C)

    def auto(self, spread: float) -> float:
        return 1 / (2 * spread)

    def spec(self) -> dict[str, object]:
        return {"kernel": "matern", "gamma": _hex(self.gamma), "nu": self.nu.hex()}

    def _stretched(self, X: Array, Y: Array) -> Array:
        """Return sqrt(2 nu) |x - y| / length."""
        return np.asarray(np.sqrt(4 * self.nu * gamma_of(self) * squared_distances(X, Y)))


@dataclass(frozen=True, slots=True)
class Polynomial(_WithGamma):
    """(gamma <x, y> + coef0)^degree."""

    degree: int = 2
    gamma: float | None = None
    coef0: float = 0.0

    def __post_init__(self) -> None:
        count(self, "degree", 1, MOST_DEGREE)
        if not is_number(self.coef0) or self.coef0 < 0:
            raise UsageError(f"coef0 must be a finite number of at least 0, got {self.coef0!r}")
        _as_floats(self, "coef0")

    def __call__(self, X: Array, Y: Array) -> Array:
        return np.asarray((gamma_of(self) * products(X, Y) + self.coef0) ** self.degree)

    def pull(self, X: Array, Y: Array, C: Array) -> Array:
        gamma, q = gamma_of(self), self.degree
        slope = gamma * q * (gamma * (X @ Y.T) + self.coef0) ** (q - 1)
        return np.asarray((slope * C) @ Y)

    def diagonal(self, X: Array) -> Array:
        return np.asarray((gamma_of(self) * square_lengths(X) + self.coef0) ** self.degree)

    def auto(self, spread: float) -> float:
        return 1 / spread

    def spec(self) -> dict[str, object]:
        spec: dict[str, Any] = {"kernel": "polynomial", "gamma": _hex(self.gamma)}
        # + 0.0: a negative zero is the same number.
        return spec | {"degree": self.degree, "coef0": (self.coef0 + 0.0).hex()}


NAMES = ("gaussian", "laplace", "matern", "polynomial")
"""What kernels are called, in specs, settings and answers."""


def kernel_called(
    name: str, gamma: float | None = None, *, nu: float = 1.5, degree: int = 2, coef0: float = 0.0
) -> Kernel:
    """Return the kernel of a name, with those of the parameters that it has; or ValueError."""
    match name:
        case "gaussian":
            return Gaussian(gamma)
        case "laplace":
            return Laplace(gamma)
        case "matern":
            return Matern(gamma, nu)
        case "polynomial":
            return Polynomial(degree, gamma, coef0)
    raise ValueError(f"no kernel is called {name!r}")


def squared_distances(X: Array, Y: Array) -> Array:
    """Return |x - y|^2 for rows X (n, d) and Y (m, d), each perhaps sparse, never negative."""
    X, Y = unmasked(X), unmasked(Y)
    if not (is_sparse(X) or is_sparse(Y)):
        # About a median row, an offset common to most rows costs no digits, whatever the others
        # hold. Sparse rows are taken about zero, where most of their entries are.
        origin = _middle(Y)
        X, Y = X - origin, Y - origin
    square = square_lengths(X)[:, None] + square_lengths(Y) - 2 * products(X, Y)
    return np.asarray(np.maximum(square, 0.0))


def products(X: Any, Y: Any) -> Array:
    """Return <x, y> for rows X (n, d) and Y (m, d), each perhaps sparse: dense (n, m)."""
    X, Y = unmasked(X), unmasked(Y)
    found = X @ Y.T if is_sparse(X) or not is_sparse(Y) else (Y @ X.T).T
    return np.asarray(found.toarray() if is_sparse(found) else found)


def radial_pull(X: Array, Y: Array, slopes: Array) -> Array:
    """Return the gradients of sum_j f_ij(|x_i - y_j|^2) in x_i, for slopes f' (n, m)."""
    origin = _middle(Y)
    X, Y = X - origin, Y - origin
    return np.asarray(2 * (slopes.sum(axis=1)[:, None] * X - slopes @ Y))


def _middle(Y: Array) -> Array:
    """Return the median (d,) of rows Y (m, d) or of a sample: fill values do not move it."""
    m = len(Y)
    if m > SAMPLED:
        # Steps of the golden section match no period in the rows, such as every tenth.
        Y = Y[(np.arange(SAMPLED) * GOLDEN % 1 * m).astype(np.intp)]
    half = (len(Y) - 1) // 2
    return np.asarray(np.partition(Y, half, axis=0)[half])


def gamma_of(kernel: Kernel) -> float:
    """Return its gamma, or raise if it is not settled yet."""
    if kernel.gamma is None:
        raise UsageError("gamma is not settled yet: give one, or let the fleet settle it")
    return kernel.gamma


def _as_floats(kernel: Any, *names: str) -> None:
    """Check a kernel's gamma, and make it and others floats: NumPy cannot use fractions."""
    gamma = kernel.gamma
    # A positive fraction may be 0 as a float.
    if gamma is not None and not (is_number(gamma) and float(gamma) > 0):
        raise UsageError(f"gamma must be a positive number, or None to be settled, got {gamma!r}")
    for name in ("gamma", *names):
        value = getattr(kernel, name)
        object.__setattr__(kernel, name, value if value is None else float(value))


def _hex(number: float | None) -> str | None:
    return None if number is None else number.hex()

"""Random numbers that are the same to the bit on every machine and with every NumPy.

NumPy promises that for its bit generators alone, so this module derives the rest from raw bits
(normals: Wichura, Algorithm AS 241, Applied Statistics 37, 1988). Rules of this file:

1. It uses only what IEEE 754 rounds in one way: + - * / and sqrt, one ufunc at a time, so that
   nothing is fused; `frexp`, whole numbers. The last bit of log, cos, power depends on platforms.
2. Sums have a fixed order, column after column: the order of `np.sum` depends on SIMD.
3. A stream is named by (seed, stream): drawing more numbers does not change the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array

Words = npt.NDArray[np.uint64]

SLICE = 1 << 18  # numbers computed at once: each of several intermediate arrays takes 2 MiB
BLOCK = 4  # numbers that Philox makes at once
SUMMED = 1024  # degrees of freedom up to which a chi is summed from its normals


def words(seed: int, stream: int, n: int) -> Words:
    """Return the first `n` raw 64-bit numbers of a stream."""
    return np.asarray(_source(seed, stream).random_raw(n), dtype=np.uint64)


def words_at(seed: int, stream: int, places: npt.NDArray[np.uint64]) -> Words:
    """Return the numbers of a stream at some places, without those before them."""
    found = np.empty(len(places), dtype=np.uint64)
    for i, place in enumerate(places.tolist()):
        # Philox makes four numbers of each value of its counter.
        source = np.random.Philox(
            key=np.array([seed, stream], dtype=np.uint64), counter=place // BLOCK
        )
        found[i] = source.random_raw(BLOCK)[place % BLOCK]
    return found


def uniforms(words: Words) -> Array:
    """Return (k + 1/2) / 2^52 for the upper 52 bits k of each: never 0, never 1, exact."""
    return np.asarray(((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def signs(seed: int, stream: int, n: int) -> Array:
    """Return `n` times +-1, 64 to a raw number, lowest bit first."""
    bits = words(seed, stream, -(-n // 64))[:, None] >> np.arange(64, dtype=np.uint64)
    return 1.0 - 2.0 * (bits & np.uint64(1)).astype(np.float64).ravel()[:n]


def below(words: Words, bound: int) -> npt.NDArray[np.int64]:
    """Return whole numbers in 0..bound-1, `bound` at most 2^31, from the upper 32 bits of each."""
    return np.asarray(((words >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32), np.int64)


def normals(seed: int, stream: int, n: int) -> Array:
    """Return `n` standard normal numbers."""
    source, drawn = _source(seed, stream), np.empty(n)
    for start in range(0, n, SLICE):
        part = drawn[start : start + SLICE]
        part[:] = normal_quantiles(uniforms(source.random_raw(len(part))))
    return drawn


def chis(dof: int, seed: int, stream: int, n: int) -> Array:
    """Return `n` lengths of standard normal vectors with `dof` entries."""
    if dof > SUMMED:
        # A single normal gives each (Wilson and Hilferty's cube); the mean square is off by a few
        # 1e-6 here, and a million channels do not need 10^9 numbers.
        spread = 2.0 / (9.0 * dof)
        root = (1.0 - spread) + np.sqrt(spread) * normals(seed, stream, n)
        return np.asarray(np.sqrt(dof * (root * root * root)))
    source, drawn = _source(seed, stream), np.empty(n)
    for start in range(0, n, SLICE // SUMMED):
        part = drawn[start : start + SLICE // SUMMED]
        rows = normal_quantiles(uniforms(source.random_raw(len(part) * dof)))
        part[:] = lengths(rows.reshape(len(part), dof))
    return drawn


def lengths(rows: Array) -> Array:
    """Return the Euclidean length of each row, squares added from left to right."""
    squares = np.zeros(len(rows))
    for column in rows.T:
        squares += column * column
    return np.sqrt(squares)


def normal_quantiles(p: Array) -> Array:
    """Return standard normal quantiles of `p` in (0, 1): Wichura's PPND16, 1e-15 relative error."""
    q = p - 0.5
    r = 0.180625 - q * q
    center = q * _ratio(r, _A, _B)
    # Tails are computed from the nearer end, where p is most precise.
    far = np.abs(q) > 0.425
    r = np.sqrt(-logarithm(np.minimum(p[far], 1.0 - p[far])))
    tail = np.where(r <= 5.0, _ratio(r - 1.6, _C, _D), _ratio(r - 5.0, _E, _F))
    center[far] = np.where(q[far] < 0.0, -tail, tail)
    return np.asarray(center)


def logarithm(x: Array) -> Array:
    """Return the natural logarithm of positive, normal numbers, to an ulp or two."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < _SQRT_HALF
    mantissa = np.where(small, mantissa + mantissa, mantissa)
    exponent = exponent - small.astype(np.float64)
    # log m = 2 artanh s, with |s| below 0.172: eleven terms reach the last bit.
    s = (mantissa - 1.0) / (mantissa + 1.0)
    series = _horner(s * s, [2.0 / (2 * k + 1) for k in range(1, 12)])
    return np.asarray(
        exponent * _LN2_HIGH + (2.0 * s + (s * (s * s * series) + exponent * _LN2_LOW))
    )


def _source(seed: int, stream: int) -> Any:
    return np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))


def _ratio(x: Array, above: Sequence[float], under: Sequence[float]) -> Array:
    return _horner(x, above) / _horner(x, under)


def _horner(x: Array, coefficients: Sequence[float]) -> Array:
    """Return sum_k coefficients[k] x^k, one product and one sum at a time."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= x
        total += coefficient
    return total


_SQRT_HALF = 0.7071067811865476
# The upper 32 bits of ln 2, so that whole multiples are exact, and the rest.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")

_A = (
    *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3),
    *(1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4),
    *(3.3430575583588128105e4, 2.5090809287301226727e3),
)
_B = (
    *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
    *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4),
    5.2264952788528545610e3,
)
_C = (
    *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0),
    *(3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1),
    *(2.27238449892691845833e-2, 7.74545014278341407640e-4),
)
_D = (
    *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
    *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4),
    1.05075007164441684324e-9,
)
_E = (
    *(6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0),
    *(2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3),
    *(2.71155556874348757815e-5, 2.01033439929228813265e-7),
)
_F = (
    *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
    *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7),
    2.04426310338993978564e-15,
)

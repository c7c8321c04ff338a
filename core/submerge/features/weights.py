"""Frequencies of a radial kernel: what random Fourier features multiply readings with.

A radial kernel is the mean of cos <w, x - y> over a distribution of w (Bochner; Rahimi, Recht
2007). For the Gaussian it is normal, w = sqrt(2 gamma) g; for the Matern kernels it is a t
distribution, which is the same times sqrt(2 nu / chi^2_{2 nu}). The kinds differ in how rows g are
drawn: `orthogonal` within blocks of p, each as long as a Gaussian row would be; `fourier-pair`,
`fourier-cos` independent; `quasi` Sobol points, for few channels (arXiv:1412.8293).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.features import draws, hadamard
from submerge.features.draws import Words
from submerge.features.kernels import Gaussian, Laplace, Matern, gamma_of

BITS = 52  # bits of a point's coordinate; `draws.uniforms` keeps as many

MOST_POINTS = 1 << 16

# One row for each dimension after the first: degree, coefficients and first numbers m of a
# primitive polynomial.
_JOE_KUO: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
    (5, 14, (1, 3, 5, 5, 31)),
)


def points(n: int, dimensions: int) -> Words:
    """Return the first `n` points, (n, dimensions), as whole numbers below 2^52."""
    directions = np.array([_directions(i) for i in range(dimensions)], dtype=np.uint64)
    index = np.arange(n)
    gray = index ^ (index >> 1)
    found = np.zeros((n, dimensions), dtype=np.uint64)
    for bit in range(directions.shape[1]):
        found[(gray >> bit) & 1 == 1] ^= directions[:, bit]
    return found


def shifted(n: int, dimensions: int, *, seed: int, stream: int) -> Words:
    """Return the points as raw numbers, each dimension's bits flipped alike: uniform, as even."""
    flip = draws.words(seed, stream, dimensions)
    return np.asarray((points(n, dimensions) << np.uint64(64 - BITS)) ^ flip)


def _directions(dimension: int) -> list[int]:
    """Return direction numbers v_1, v_2, ... of a dimension, enough for `MOST_POINTS`."""
    count = MOST_POINTS.bit_length() - 1
    if dimension == 0:
        return [1 << (BITS - k) for k in range(1, count + 1)]
    degree, inner, first = _JOE_KUO[dimension - 1]
    v = [m << (BITS - k) for k, m in enumerate(first, start=1)]
    for k in range(degree, count):
        new = v[k - degree] ^ (v[k - degree] >> degree)
        for i in range(1, degree):
            if inner >> (degree - 1 - i) & 1:
                new ^= v[k - i]
        v.append(new)
    return v[:count]


Kind = Literal["orthogonal", "fourier-pair", "fourier-cos", "quasi"]
Radial = Gaussian | Laplace | Matern

NORMALS, SIGNS, LENGTHS, TAILS, PHASES, SHIFT = range(1, 7)  # streams of a seed that are drawn from
MOST_QUASI = 8  # channels up to which Sobol points beat orthogonal rows


class Structured(NamedTuple):
    """Row i of block b, not formed: scale_i times row i of H D H D H D, by signs (blocks, 3, p)."""

    signs: Array
    scale: Array

    def matrix(self, channels: int) -> Array:
        """Return the rows (n, channels)."""
        n, p = len(self.scale), self.signs.shape[2]
        rows = np.empty((n, channels))
        # A few rows at a time: their padded intermediates are several times as large.
        step = min(p, max(draws.SLICE // p, 1))
        for start in range(0, n, step):
            inside = range(start % p, min(start % p + step, start % p + n - start))
            part = hadamard.rows_of(self.signs[start // p], inside)[:, :channels]
            rows[start : start + step] = part * self.scale[start : start + step, None]
        return rows


def matrix(kernel: Radial, n: int, kind: Kind, seed: int, channels: int) -> Array:
    """Return `n` frequencies (n, channels), in radians per unit of the readings."""
    if kind == "orthogonal":
        return structured(kernel, n, seed, channels).matrix(channels)
    scale, dof = _law(kernel)
    if kind == "quasi":
        # Tails use dimensions of the same net, so that they are evenly spread too.
        drawn = shifted(n, channels + dof, seed=seed, stream=SHIFT)
        even = draws.normal_quantiles(draws.uniforms(drawn))
        rows = even[:, :channels]
        tails = draws.lengths(even[:, channels:])
    else:
        rows = draws.normals(seed, NORMALS, n * channels).reshape(n, channels)
        tails = draws.chis(dof, seed, TAILS, n)
    return np.asarray(rows * _stretched(scale, dof, tails)[:, None])


def structured(kernel: Radial, n: int, seed: int, channels: int) -> Structured:
    """Return `n` orthogonal frequencies as signs and scales."""
    scale, dof = _law(kernel)
    p = hadamard.padded_size(channels)
    blocks = -(-n // p)
    signs = draws.signs(seed, SIGNS, blocks * 3 * p).reshape(blocks, 3, p)
    stretched = _stretched(scale, dof, draws.chis(dof, seed, TAILS, n))
    # Rows of M have length p^(3/2), those of a Gaussian matrix a chi with p degrees of freedom.
    return Structured(signs, stretched * draws.chis(p, seed, LENGTHS, n) / (p * math.sqrt(p)))


def phases(n: int, seed: int) -> Array:
    """Return `n` phases in turns, for single cosines."""
    return draws.uniforms(draws.words(seed, PHASES, n))


def _law(kernel: Radial) -> tuple[float, int]:
    """Return the scale of the kernel's frequencies and their degrees of freedom; 0 is normal."""
    gamma = gamma_of(kernel)
    if isinstance(kernel, Laplace):
        return gamma, 1  # Matern of smoothness 1/2 and length 1 / gamma
    scale = math.sqrt(2.0) * math.sqrt(gamma)
    return scale, round(2 * kernel.nu) if isinstance(kernel, Matern) else 0


def _stretched(scale: float, dof: int, tails: Array) -> Array:
    """Return each row's factor: scale sqrt(dof / chi^2_dof)."""
    if dof == 0:
        return np.full(len(tails), scale)
    return np.asarray(scale * (math.sqrt(dof) / tails))

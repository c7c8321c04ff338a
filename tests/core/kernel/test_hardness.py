"""Low-rank approximation of a kernel matrix is as hard as multiplying matrices.

Musco & Woodruff, Is Input Sparsity Time Possible for Kernel Low-Rank Approximation?,
Theorem 1: for whole numbers A (n, d) and C (d, k), a gadget of n + k rows has a kernel
matrix whose every good low-rank approximation holds the product AC, read off by rounding.
So no method approximates all kernel matrices faster than known products with k columns.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.features import Gaussian, Polynomial

LARGEST = 3
"""Size of the largest entry."""


def gadget(A: np.ndarray, C: np.ndarray, w: float) -> np.ndarray:
    """Return rows [A; w C'], (n + k, d): their kernel has a block for each product."""
    return np.vstack([A, w * C.T])


def approximation(K: np.ndarray, rank: int, factor: float, rng: np.random.Generator) -> np.ndarray:
    """Return N (n, rank) with ||K - NN'||^2 up to `factor` times the least: as bad as allowed."""
    eigenvalues, V = np.linalg.eigh(K)
    eigenvalues, V = np.maximum(eigenvalues[::-1], 0), V[:, ::-1]
    N = V[:, :rank] * np.sqrt(eigenvalues[:rank])
    allowed = factor * float((eigenvalues[rank:] ** 2).sum())
    # Away from the best, by as much as the factor leaves room for.
    step, wrong = 1.0, rng.standard_normal(N.shape) * np.abs(N).mean()
    while np.sum((K - (N + step * wrong) @ (N + step * wrong).T) ** 2) > allowed and step > 1e-12:
        step /= 2
    return N + step * wrong if step > 1e-12 else N


integers = st.tuples(st.integers(3, 12), st.integers(1, 6), st.integers(1, 3), st.integers(0, 999))


def drawn(n: int, d: int, k: int, seed: int, *, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices of whole numbers."""
    rng = np.random.default_rng(seed)
    return rng.integers(least, LARGEST + 1, (n, d)), rng.integers(least, LARGEST + 1, (d, k))


@settings(max_examples=25)
@given(integers, st.sampled_from([1.0, 2.0, 10.0]))
def test_the_linear_kernel_gives_the_product_away(sizes, factor):
    """With w = 3 sqrt(factor) LARGEST^2 n d, no entry of N1 N2' / w is 1/2 off that of AC."""
    n, d, k, seed = sizes
    A, C = drawn(n, d, k, seed, least=-LARGEST)
    w = 3 * factor**0.5 * LARGEST**2 * n * d
    B = gadget(A, C, w)

    N = approximation(Polynomial(1, 1.0)(B, B), 2 * k, factor, np.random.default_rng(seed))

    np.testing.assert_array_equal(A @ C, np.rint(N[:n] @ N[n:].T / w))


@settings(max_examples=25)
@given(integers, st.sampled_from([1.0, 4.0]))
def test_the_polynomial_kernel_gives_its_powers_away(sizes, factor):
    """Of degree q it holds (AC)^q, entry by entry; with nothing negative, so AC."""
    n, d, k, seed = sizes
    A, C = drawn(n, d, k, seed, least=0)
    # w^2 by the entries' squares: the linear case's w, of (LARGEST^2 d)^2.
    w = (3 * factor**0.5 * n) ** 0.5 * LARGEST**2 * d
    B = gadget(A, C, w)

    N = approximation(Polynomial(2, 1.0)(B, B), 2 * k, factor, np.random.default_rng(seed))

    squares = np.rint(N[:n] @ N[n:].T / w**2)
    np.testing.assert_array_equal((A @ C) ** 2, squares)


@settings(max_examples=25)
@given(integers, st.sampled_from([1.0, 4.0]))
def test_the_gaussian_kernel_gives_the_product_away(sizes, factor):
    """At a small gamma it is nearly linear: two directions more hold the rows' lengths.

    Lengths cost no multiplication of matrices, so each entry of the kernel shows its product.
    """
    n, d, k, seed = sizes
    A, C = drawn(n, d, k, seed, least=-LARGEST)
    w = 5 * factor**0.5 * LARGEST**2 * n * d
    B, gamma = gadget(A, C, w), 0.1 / (w**2 * LARGEST**2 * d)

    N = approximation(Gaussian(gamma)(B, B), 2 * k + 2, factor, np.random.default_rng(seed))

    lengths = np.sum(A**2, axis=1)[:, None] + w**2 * np.sum(C**2, axis=0)
    products = (np.log(N[:n] @ N[n:].T) + gamma * lengths) / (2 * gamma * w)
    np.testing.assert_array_equal(A @ C, np.rint(products))

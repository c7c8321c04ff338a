"""Streams that are hard to summarise: what sensors do at their worst, and what aims at a method.

Each is a function of rows, columns and a generator, and returns (n, dim) rows. None is centered.
"""

from collections.abc import Callable

import numpy as np

from submerge import SAPCA
from submerge_lab.plants.ordered import product

Array = np.ndarray
Stream = Callable[[int, int, np.random.Generator], Array]


def flat(n: int, dim: int, rng: np.random.Generator) -> Array:
    """All directions alike: every eigenvalue that is dropped is as large as those kept."""
    return rng.standard_normal((n, dim))


def equal(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Eigenvalues that are equal to the last digit: signed unit rows, each as often."""
    rows = np.eye(dim)[np.arange(n) % dim]
    rows[(np.arange(n) // dim) % 2 == 1] *= -1
    return rows[:, rng.permutation(dim)]


def decaying(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Directions whose sizes fall by 0.7, down to nothing beside the first."""
    return product(rng.standard_normal((n, dim)) * 0.7 ** np.arange(dim), _turned(dim, rng))


def low_rank(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Eight directions, and nothing beside them."""
    return product(rng.standard_normal((n, 8)), rng.standard_normal((8, dim)))


def constant(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Every second channel stands still."""
    X = rng.standard_normal((n, dim))
    X[:, ::2] = 5.0
    return X


def late(n: int, dim: int, rng: np.random.Generator) -> Array:
    """A third of the sensors start in the middle, and are a hundred times larger."""
    X = rng.standard_normal((n, dim))
    X[: n // 2, : dim // 3] = 0.0
    X[n // 2 :, : dim // 3] *= 100
    return X


def one_late(n: int, dim: int, rng: np.random.Generator) -> Array:
    """One sensor starts with the last ten rows."""
    X = decaying(n, dim, rng)
    X[:-10, 0] = 0.0
    X[-10:, 0] = 50 + rng.standard_normal(10)
    return X


def scaled(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Channels in units that differ by ten orders of magnitude."""
    return rng.standard_normal((n, dim)) * 10.0 ** np.linspace(4, -6, dim)


def far(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Means of a million."""
    return 1e6 + rng.standard_normal((n, dim))


def jumps(n: int, dim: int, rng: np.random.Generator) -> Array:
    """The mean jumps by a million, ten times, in one direction or another."""
    X = rng.standard_normal((n, dim))
    steps = rng.standard_normal((10, dim)) * 1e6
    return X + np.repeat(steps, -(-n // 10), axis=0)[:n]


def jump_and_back(n: int, dim: int, rng: np.random.Generator) -> Array:
    """A jump that lasts for one block, and leaves one direction far above the others."""
    X = decaying(n, dim, rng)
    X[n // 2 : n // 2 + 45] += 1e4
    return X


def repeated(n: int, dim: int, rng: np.random.Generator) -> Array:
    """One row, over and over."""
    return np.repeat(rng.standard_normal((1, dim)), n, axis=0)


def runs(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Sensors that hang: each row comes two hundred times."""
    return np.repeat(rng.standard_normal((-(-n // 200), dim)), 200, axis=0)[:n]


def zeros(n: int, dim: int, _: np.random.Generator) -> Array:
    """Nothing at all."""
    return np.zeros((n, dim))


def zeros_first(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Nothing for a third of the time, then readings."""
    X = rng.standard_normal((n, dim)) * np.arange(1, dim + 1) ** -0.5
    X[: n // 3] = 0.0
    return X


def copies(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Near-copies of channels: the second half repeats the first, to 1e-7."""
    X = rng.standard_normal((n, dim))
    half = dim // 2
    X[:, half : 2 * half] = X[:, :half] + 1e-7 * rng.standard_normal((n, half))
    return X


def tails(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Ten directions over a floor of 1e-4, which a float32 scatter does not hold."""
    X = 1e-4 * rng.standard_normal((n, dim))
    X[:, :10] += rng.standard_normal((n, 10))
    return product(X, _turned(dim, rng))


def turning(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Each run of 90 rows has ten directions of its own: the old ones say nothing of the new."""
    return np.concatenate(
        [product(rng.standard_normal((90, 10)), _turned(dim, rng)[:10]) for _ in range(-(-n // 90))]
    )[:n]


def hidden(n: int, dim: int, rng: np.random.Generator) -> Array:
    """One direction that is always just below those kept, and sums to the largest of all."""
    X = np.zeros((n, dim))
    wide = min(dim - 1, 30)
    X[:, :wide] = rng.standard_normal((n, wide))
    # The strong directions change places, so that none of them is strong for long.
    for start in range(0, n, 45):
        strong = rng.permutation(wide)[:16]
        X[start : start + 45, strong] *= 3
    X[:, -1] = 1.5 * rng.choice([-1.0, 1.0], n)
    return product(X, _turned(dim, rng))


def rotated_ties(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Twenty equal directions over a floor: those kept are an arbitrary part of them."""
    X = 0.01 * rng.standard_normal((n, dim))
    X[:, : min(20, dim)] += equal(n, min(20, dim), rng)
    return product(X, _turned(dim, rng))


def heavy(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Single rows a million times larger than the rest (Cauchy)."""
    return np.clip(rng.standard_cauchy((n, dim)), -1e8, 1e8)


def blind(n: int, dim: int, rng: np.random.Generator) -> Array:
    """A direction in each block that fixed vectors cos(sqrt(p) i^2) do not see (pca/ritz.py)."""
    block = SAPCA(10).block_size
    squares = np.arange(1.0, block + 1)[:, None] ** 2
    fixed = np.cos(np.sqrt([2.0, 3, 5, 7, 11, 13, 17, 19, 23]) * squares)
    unseen = _orthogonal(np.hstack([fixed, np.ones((block, 1))]))[:, -1]
    X = decaying(n, dim, rng)
    for start in range(0, n - block + 1, block):
        X[start : start + block] += 20 * np.outer(unseen, _turned(dim, rng)[0])
    return X


def tiny(n: int, dim: int, rng: np.random.Generator) -> Array:
    """Readings of 1e-30."""
    return 1e-30 * rng.standard_normal((n, dim))


STREAMS: dict[str, Stream] = {
    stream.__name__.replace("_", " "): stream
    for stream in (
        flat,
        equal,
        decaying,
        low_rank,
        constant,
        late,
        one_late,
        scaled,
        far,
        jumps,
        jump_and_back,
        repeated,
        runs,
        zeros,
        zeros_first,
        copies,
        tails,
        turning,
        hidden,
        rotated_ties,
        heavy,
        blind,
        tiny,
    )
}


def _turned(dim: int, rng: np.random.Generator) -> Array:
    return _orthogonal(rng.standard_normal((dim, dim)))


def _orthogonal(columns: Array) -> Array:
    """Return all of Q (n, n) of the QR of columns (n, m), by Householder's reflections.

    LAPACK's, to rounding; its own last bits depend on the processor (`plants.ordered`).
    """
    R, vectors = columns.copy(), []
    for j in range(min(len(R) - 1, R.shape[1])):
        v = R[j:, j].copy()
        v[0] += np.copysign(np.sqrt((v * v).sum()), v[0])
        v /= np.sqrt((v * v).sum())
        vectors.append(v)
        R[j:, j:] -= 2 * v[:, None] * (v[:, None] * R[j:, j:]).sum(axis=0)
    Q = np.eye(len(R))
    for j, v in reversed(list(enumerate(vectors))):
        Q[j:] -= 2 * v[:, None] * (v[:, None] * Q[j:]).sum(axis=0)
    return Q

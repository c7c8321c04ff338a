"""The contenders, behind one face: `partial_fit(block)`, then `basis()`.

Fair means: each gets dense float64 rows in the blocks it likes best, may overwrite
them, and runs without checks that its own authors let a caller skip.
"""

from collections.abc import Callable

import faiss
import fbpca
import numpy as np
from gensim.models.lsimodel import Projection
from sklearn.decomposition import PCA, IncrementalPCA

import measure
from as_printed import Algorithm3 as Algorithm3
from contest.contender import Contender as Rival
from contest.contender import Submerge as Submerge

Array = measure.Array


LIFTED = {"memory": 2**40}
"""With this budget SAPCA keeps the whole scatter, whatever its size."""


class ScikitLearn:
    """IncrementalPCA (Ross et al. 2008): centers, thin SVD of past, block and mean."""

    def __init__(self, rank: int) -> None:
        self._engine = IncrementalPCA(n_components=rank)

    def partial_fit(self, block: Array) -> None:
        """Learn a block; without the check it is centered where it lies."""
        self._engine.partial_fit(block, check_input=False)

    def basis(self) -> Array:
        """Return the components as columns."""
        return self._engine.components_.T


class Gensim:
    """LsiModel's `Projection.merge` (Rehurek 2011); nothing is centered.

    A careful user brings the block's own decomposition along: `Projection(docs=...)`
    forces a sparse stochastic SVD (2 power iterations, 100 extra dimensions), which on
    dense blocks was slower at every size that we tried, and no more accurate.
    `by_gram` lends gensim our own kernel's trick, the Gram matrix of the block, which
    is faster than `numpy.linalg.svd` from dim = 400 on; plain SVD is what its users do.
    """

    def __init__(self, rank: int, *, by_gram: bool) -> None:
        self._rank = rank
        self._factors = _factors_by_gram if by_gram else _factors_by_svd
        self._past: Projection | None = None

    def partial_fit(self, block: Array) -> None:
        """Decompose the block, truncate it to rank as LsiModel does, merge it."""
        new = projection(*self._factors(block, self._rank), rank=self._rank)
        if self._past is None:
            self._past = new
        else:
            self._past.merge(new)

    def basis(self) -> Array:
        """Return the projection's basis."""
        return self._past.u


class Batch:
    """`numpy.linalg.svd` of all rows, centered: O(n dim) memory, the optimum by definition."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._blocks: list[Array] = []

    def partial_fit(self, block: Array) -> None:
        """Keep the rows."""
        self._blocks.append(block)

    def basis(self) -> Array:
        """Decompose all that was kept."""
        X = np.concatenate(self._blocks)
        X -= X.mean(axis=0)
        _, _, right = np.linalg.svd(X, full_matrices=False)
        return right[: self._rank].T


class OfAllRows(Batch):
    """A library's function of all rows and the rank: O(n dim) memory."""

    def __init__(self, rank: int, components: Callable[[Array, int], Array]) -> None:
        super().__init__(rank)
        self._components = components

    def basis(self) -> Array:
        """Return the components as columns."""
        return self._components(np.concatenate(self._blocks), self._rank).T


def covariance_eigh(X: Array, rank: int) -> Array:
    """scikit-learn's PCA by eigenvectors of the covariance: its fastest for many rows."""
    return PCA(rank, svd_solver="covariance_eigh").fit(X).components_


def by_fbpca(X: Array, rank: int) -> Array:
    """Facebook's randomized PCA (Li, Szlam, Stanton & Tygert 2017), two power iterations."""
    return fbpca.pca(X, k=rank, raw=False, n_iter=2)[2]


def by_faiss(X: Array, rank: int) -> Array:
    """Faiss's PCAMatrix, which takes float32."""
    faiss.omp_set_num_threads(1)
    matrix = faiss.PCAMatrix(X.shape[1], rank)
    matrix.train(X.astype(np.float32))
    rows = faiss.vector_to_array(matrix.A).reshape(rank, X.shape[1])
    # Orthonormal in float32; the residual is computed in float64.
    return np.linalg.qr(rows.T.astype(np.float64))[0].T


class Gathered:
    """A rival whose first call has to bring so many rows: those that come before it wait."""

    def __init__(self, rival: Rival, least: int) -> None:
        self._rival, self._least = rival, least
        self._waiting: list[Array] = []

    def partial_fit(self, block: Array) -> None:
        """Learn a block, or keep it until there are enough rows for the first call."""
        if not self._least:
            self._rival.partial_fit(block)
            return
        self._waiting.append(block)
        if sum(map(len, self._waiting)) >= self._least:
            self._least = 0
            self._rival.partial_fit(np.concatenate(self._waiting))
            self._waiting.clear()

    def basis(self) -> Array:
        """Return the rival's."""
        return self._rival.basis()


def projection(U: Array, s: Array, *, rank: int) -> Projection:
    """Return a gensim Projection of known factors U (dim, k), s (k,)."""
    made = Projection(len(U), rank)
    made.u, made.s = U, s
    return made


def _factors_by_svd(block: Array, rank: int) -> tuple[Array, Array]:
    U, s, _ = np.linalg.svd(block.T, full_matrices=False)
    return U[:, :rank].copy(), s[:rank]


def _factors_by_gram(block: Array, rank: int) -> tuple[Array, Array]:
    lam, V = np.linalg.eigh(block @ block.T)
    s = np.sqrt(lam[::-1][:rank])
    return block.T @ (V[:, ::-1][:, :rank] / s), s

"""Scatter: the whole (dim, dim) scatter, exact, where `budget` has room for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from submerge._linalg import EPS, EPS_SINGLE, LEAST_SINGLE, MOST_SINGLE, Array, Directions, Storage
from submerge.pca import expectation, sparse_rows
from submerge.pca.block import Blend, Digest, Totals
from submerge.pca.whole_scatter import WholeScatter

FEW = 50  # rows that float32 sums in one go


class Scatter:
    """The exact scatter about the mean; nothing is ever dropped from it.

    total : (dim, dim), of rows absorbed; `lacking` and `gapped` stand beside it.
    room, gaps : (block_size, dim), or (patience, dim) with gaps; guesses in it.
    prior : The model that guessed, while some channel never came.
    """

    def __init__(
        self,
        dim: int,
        block_size: int,
        patience: int,
        dtype: npt.DTypeLike = np.float64,
        *,
        center: bool = True,
    ) -> None:
        self.total: Array = np.zeros((dim, dim))
        self.center, self.lacking = center, dict[bytes, WholeScatter]()
        self.room: Storage = np.empty((block_size, dim), dtype)
        self._patience = patience
        self.gaps: expectation.Mask | None = None
        self.gapped = False
        self.prior: expectation.Estimate | None = None
        self._sparse: tuple[Any, Array] | None = None

    @property
    def is_expected(self) -> bool:
        """Whether what is held has gaps that are filled when it is read."""
        return self.gaps is not None or bool(self.lacking)

    def write(self, rows: Storage, mean: Array, *, at: int) -> None:
        """Put rows (n, dim) into the room as its rows from `at` on."""
        end = at + len(rows)
        if end > len(self.room):
            larger = np.empty((max(end, self._patience), self.room.shape[1]), self.room.dtype)
            larger[:at] = self.room[:at]
            self.room = larger
            if self.gaps is not None:
                marked = np.zeros(larger.shape, dtype=bool)
                marked[:at] = self.gaps[:at]
                self.gaps = marked
        if self.room.dtype.char == rows.dtype.char == "f":
            _subtract(rows, mean, out=self.room[at:end])
        else:
            np.subtract(rows, mean, out=self.room[at:end], casting="same_kind")

    def bring(self, rows: Any, mean: Array) -> None:
        """Make sparse rows the next block, in place of the room; the mean is that of the past."""
        self._sparse = rows, mean

    def mark(self, gaps: expectation.Guesses, *, at: int, came: bool) -> None:
        """Note which values were guessed in rows from `at` on; `came`: no channel is missing."""
        if self.gaps is None and not gaps.mask.any():
            return
        if self.gaps is None:
            self.gaps, self.gapped = np.zeros(self.room.shape, dtype=bool), True
        self.gaps[at : at + len(gaps.mask)] = gaps.mask
        self.prior = None if came or gaps.model is None else expectation.known_by(gaps.model)

    def restore(self, total: Array, *, wide: bool) -> None:
        """Replace the memory by a saved one; `wide` if its waiting rows are float64."""
        self.total = total.copy()
        if wide:
            # Earlier versions kept rows of float32 engines in float64: those go on like that.
            self.room = np.empty(self.room.shape)

    def fade(self, factor: float) -> None:
        """Weigh the past by `factor`."""
        self.total *= factor
        faded = {key: part.faded(factor) for key, part in self.lacking.items()}
        self.lacking = {key: part for key, part in faded.items() if part.weight > expectation.TINY}

    def directions(self, k: int) -> Directions:
        """Decompose the past alone."""
        return self._directions(self.total, k)

    def look(self, blend: Blend, k: int) -> Digest:
        """Summarise past and block, without gaps, and change neither."""
        total, drift, energies = self._with_block(blend)
        return Digest(self._directions(total, k), drift, energies)

    def whole(self, schema: str, past: Totals, blend: Blend | None) -> WholeScatter:
        """Summarise past and block, if there is one, without changing either."""
        if self.is_expected:
            group = self._sorted(schema, past, blend)
            rounds = expectation.rounds_to_look(group)
            return expectation.estimate([group], prior=self.prior, rounds=rounds)[1][0]
        if blend is None:
            return WholeScatter(schema, self.total.copy(), *past)
        total, drift, energies = self._with_block(blend)
        after = past.after(blend, Digest(self._directions(total, 0), drift, energies))
        return WholeScatter(schema, total, *after)

    def absorb_gaps(self, schema: str, past: Totals, blend: Blend) -> Totals:
        """Make past and a block with gaps the new past; return its totals."""
        group = self._sorted(schema, past, blend)
        if len(group.rare):
            rounds = expectation.rounds_for(group, expectation.LEARN)
            known = expectation.estimate([group], prior=self.prior, rounds=rounds)[0][0]
            group = group.without_rare(known)
        sums = dict(group.bounded.sums)
        self.gaps, held = None, sums.pop(expectation.complete_rows(len(self.total)), None)
        self.lacking = sums
        if held is None:
            return past
        self.total = held.scatter.copy()
        return Totals(
            held.mean, held.weight, held.energy, held.spectral_bound, held.channel_energies
        )

    def _sorted(self, schema: str, past: Totals, blend: Blend | None) -> expectation.GappedRows:
        """Return past and block by what rows lack, and rows with rare gaps."""
        dim = len(self.total)
        none = WholeScatter(schema, self.total.copy(), *past)
        sums = ({expectation.complete_rows(dim): none} if past.weight else {}) | self.lacking
        if blend is not None:
            sums = {key: part.faded(blend.past) for key, part in sums.items()}
        group = expectation.GappedRows(sums, expectation.RareRows.none(dim), schema, self.center)
        if blend is None:
            return group
        n, weights = len(blend.ages.roots), blend.ages.weights
        mask = np.zeros((n, dim), dtype=bool) if self.gaps is None else self.gaps[:n]
        rows = self.room[:n].astype(np.float64) + past.mean
        return group.with_rows(rows, mask, weights)

    def _with_block(self, blend: Blend) -> tuple[Array, Array, Array]:
        """Return the scatter of past and block, the block's drift, and its channels' energies."""
        block = self.room[: len(blend.ages.roots)].copy()
        drift, product = _multiply(block, blend)
        del block
        total = blend.past * self.total
        total += product
        return total, drift, _energies(product)

    def absorb(self, blend: Blend, k: int) -> Digest:
        """Make past and block the new past; `k` = 0 skips the decomposition."""
        drift, product = self._scatter_of_block(blend)
        if blend.past != 1.0:
            self.fade(blend.past)
        self.total += product
        rows, sigma, _, guarded = self._directions(self.total, k)
        # Directions beyond k are still held, so none is dropped.
        return Digest(Directions(rows, sigma, 0.0, guarded), drift, _energies(product))

    def _scatter_of_block(self, blend: Blend) -> tuple[Array, Storage]:
        """Return the drift and the scatter of the block, which is then spent."""
        if self._sparse is not None:
            (rows, mean), self._sparse = self._sparse, None
            return sparse_rows.scatter_of(rows, blend, mean)
        return _multiply(self.room[: len(blend.ages.roots)], blend)

    def _directions(self, scatter: Array, k: int) -> Directions:
        dim = len(scatter)
        if k == 0:
            return Directions(np.empty((0, dim)), np.empty(0), 0.0, False)
        lam, vectors = np.linalg.eigh(scatter)
        lam, vectors = lam[::-1], vectors[:, ::-1]
        noise = dim * EPS if self.room.dtype == np.float64 else EPS_SINGLE
        kept = min(k, int(np.count_nonzero(lam > noise * lam[0])))
        dropped = max(0.0, float(lam[kept])) if kept < dim else 0.0
        return Directions(
            np.ascontiguousarray(vectors[:, :kept].T), np.sqrt(lam[:kept]), dropped, False
        )


def _multiply(block: Storage, blend: Blend) -> tuple[Array, Storage]:
    """Center and weigh the block in place; return its drift, and its scatter."""
    ages, single = blend.ages, block.dtype == np.float32
    if single:
        shares = ages.shares.astype(np.float32)
        # Float32 sums of few rows, added in float64.
        parts = [shares[i : i + FEW] @ block[i : i + FEW] for i in range(0, len(block), FEW)]
        drift = np.asarray(np.sum(parts, axis=0, dtype=np.float64))
    else:
        drift = ages.shares @ block
    if blend.pull:
        block -= (blend.pull * drift).astype(block.dtype, copy=False)
    if blend.past != 1.0:
        block *= ages.roots.astype(block.dtype, copy=False)[:, None]
    # The same array twice: NumPy then calls syrk, which takes half of the products.
    if not single:
        return drift, block.T @ block
    with np.errstate(over="ignore", invalid="ignore"):
        product: Storage = block.T @ block
    energy = product.diagonal().sum(dtype=np.float64)
    # Rows that are all alike, as of idle sensors, need no more memory than others.
    if not LEAST_SINGLE < energy < MOST_SINGLE and block.any():
        wide = block.astype(np.float64)
        product = wide.T @ wide
    return drift, product


def _subtract(rows: Storage, mean: Array, *, out: Storage) -> None:
    """Write rows less the mean: float32 less float64 in two steps of float32, which are faster."""
    rounded = mean.astype(np.float32)
    np.subtract(rows, rounded, out=out)
    # What rounding took off the mean. The first step is exact for rows close to it.
    out -= (mean - rounded).astype(np.float32)


def _energies(product: Storage) -> Array:
    """Return a copy of the diagonal."""
    return product.diagonal().astype(np.float64)

"""Rows with gaps: what they add to a scatter is what they hold on average, given all rows.

The fixed point of expectation and maximisation over all rows is the covariance of maximum
likelihood (Dempster, Laird and Rubin, 1977; Little and Rubin, Statistical Analysis with Missing
Data, chapters 7 and 11). How sums are kept apart by what rows lack, and why: docs/decisions/0063.

The result is positive semi-definite, and its diagonal is the channels' energies. The certificates
of `Subspace` are about complete rows: with gaps, "exact" becomes "expected".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array, Storage
from submerge.errors import ShapeError
from submerge.pca.budget import COVARIANCES, most_sums
from submerge.pca.merging import merge_whole
from submerge.pca.subspace import Subspace
from submerge.pca.whole_scatter import WholeScatter

Mask = npt.NDArray[np.bool_]

Sums = Mapping[bytes, WholeScatter]
"""Sums of rows by the channels that they lack (`lacking`), with zeros at these."""

ROUNDS, FEWEST_ROUNDS = 60, 3  # most rounds, and fewest where `rounds_for` has little room

LOOK, LEARN = 5e7, 5e8
"""Products of one look at rows that wait, and of their learning: a second of a small machine."""

CLOSE = 1e-7
"""Rounds end where no correlation changes by more: a channel may be known to 1e-5 by the others."""

OFTEN, LEAST = 32, 8
"""Rows of one block are a sum of their own where they are one in so many, and so many at least."""

TINY = float(np.finfo(float).tiny)

FAINT = 1e-12  # share of all weight below which a sum is forgotten
LEAST_NOISE = 1e-9  # added to each channel's variance, as a share of it: near-copies are no copies
FAR = 64.0  # a model says nothing of channels that vary so many times as much as in its rows


class Guesses(NamedTuple):
    """Which values of rows were filled.

    mask : (n, dim), True where a value is a guess
    model : what it was guessed by, if it is known; it stands in for channels that never came
    """

    mask: Mask
    model: Subspace | None = None

    def of(self, rows: Storage) -> Guesses:
        """Return these gaps, if they are of rows of that shape."""
        if self.mask.shape != rows.shape:
            raise ShapeError("gaps", expected=f"{rows.shape}", got=self.mask.shape)
        return self


class Estimate(NamedTuple):
    """Mean (dim,) and covariance (dim, dim) of rows; of which channels values came, (dim,)."""

    mean: Array
    covariance: Array
    came: Mask


class RareRows(NamedTuple):
    """Rows with gaps that few others have: values and gaps (n, dim), weights (n,)."""

    values: Array
    mask: Mask
    weights: Array

    @classmethod
    def none(cls, dim: int) -> RareRows:
        """Return no rows."""
        return cls(np.empty((0, dim)), np.empty((0, dim), dtype=bool), np.empty(0))

    def __len__(self) -> int:
        return len(self.values)

    def and_rows(self, more: RareRows) -> RareRows:
        """Return both."""
        return RareRows(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


class GappedRows(NamedTuple):
    """Sums of rows and rare rows beside them, about one mean, or about zero if not `center`."""

    sums: Sums
    rare: RareRows
    schema: str
    center: bool = True

    def with_rows(self, rows: Array, mask: Mask, weights: Array) -> GappedRows:
        """Return it with rows and gaps (n, dim) and weights (n,), and some new sums: `bounded`."""
        none, room = complete_rows(rows.shape[1]), most_sums(rows.shape[1])
        gapped, packed = mask.any(axis=1), np.packbits(mask, axis=1)
        alike = {} if gapped.all() else {none: np.flatnonzero(~gapped).tolist()}
        for i in np.flatnonzero(gapped).tolist():
            alike.setdefault(packed[i].tobytes(), []).append(i)
        sums, rare = dict(self.sums), np.zeros(len(rows), dtype=bool)
        for key in sorted(alike, key=lambda key: (-len(alike[key]), key)):
            some = np.array(alike[key])
            if key not in sums and key != none:
                if room <= 0 or len(some) < max(LEAST, len(rows) / OFTEN):
                    rare[some] = True
                    continue
                room -= 1
            new = self._sum(key, rows[some], weights[some])
            sums[key] = merge_whole(sums[key], new) if key in sums else new
        more = RareRows(rows[rare], mask[rare], weights[rare])
        return self._replace(sums=sums, rare=self.rare.and_rows(more))

    def _sum(self, key: bytes, rows: Array, weights: Array) -> WholeScatter:
        if key != complete_rows(rows.shape[1]):
            rows = rows * ~absent(key, rows.shape[1])
        return WholeScatter.of_rows(rows, self.schema, weights, center=self.center)

    def and_rows(self, more: GappedRows) -> GappedRows:
        """Return both."""
        sums = dict(self.sums)
        for key, part in more.sums.items():
            sums[key] = merge_whole(sums[key], part) if key in sums else part
        return self._replace(sums=sums, rare=self.rare.and_rows(more.rare))

    @property
    def bounded(self) -> GappedRows:
        """The same with at most `most_sums` sums that have gaps: the lightest are filled."""
        total = sum(part.weight for part in self.sums.values())
        sums = {key: part for key, part in self.sums.items() if part.weight > FAINT * total}
        dim = self.rare.values.shape[1]
        gapped = sorted(sums.keys() - {complete_rows(dim)}, key=lambda key: (sums[key].weight, key))
        if len(gapped) <= most_sums(dim):
            return self._replace(sums=sums)
        known = estimate([self])[0][0]
        never = lacking(~known.came)
        light, scaled = [key for key in gapped if key != never], _Scaled.of(known)
        for key in light[: len(gapped) - most_sums(dim)]:
            part, gone = sums.pop(key), absent(key, dim)
            new = _with_absent(part, gone, gone & known.came, scaled, self.center)
            left = lacking(gone & ~known.came)
            sums[left] = merge_whole(sums[left], new) if left in sums else new
        return self._replace(sums=sums)

    def without_rare(self, known: Estimate) -> GappedRows:
        """Return it with rare gaps filled by what is known, but for those that a sum has too."""
        left, sums = np.ones(len(self.rare), dtype=bool), dict(self.sums)
        never = self.rare.mask & ~known.came
        keys = sums.keys() | {lacking(each) for each in (never if never.any() else never[:1])}
        for key in sorted(keys, key=lambda key: (-absent(key, len(known.mean)).sum(), key)):
            gone = absent(key, len(known.mean))
            some = left & (self.rare.mask | ~gone).all(axis=1)
            left &= ~some
            if some.any():
                values, mask, weights = self.rare
                rows = RareRows(values[some], mask[some], weights[some])
                new = self._rare_sum(key, rows, known)
                sums[key] = merge_whole(sums[key], new) if key in sums else new
        return self._replace(sums=sums, rare=RareRows.none(len(known.mean)))

    def _rare_sum(self, key: bytes, rows: RareRows, known: Estimate) -> WholeScatter:
        """Return the sum of rows, with gaps in the channels that the key says are there filled."""
        there = np.flatnonzero(~absent(key, len(known.mean)))
        mean, values = known.mean[there] if self.center else 0.0, rows.values.copy()
        C = known.covariance[np.ix_(there, there)]
        filled, some = _expected(values[:, there] - mean, rows.mask[:, there], rows.weights, C)
        values[:, there], added = filled + mean, np.zeros_like(known.covariance)
        added[np.ix_(there, there)] = some
        whole = self._sum(key, values, rows.weights)
        return _with(whole, whole.mean, added)

    def filled(self, known: Estimate) -> WholeScatter:
        """Return the scatter of all rows, with gaps filled by what is known."""
        rare = self._replace(sums={}).without_rare(known).sums  # all at once: one inverse
        found = _filled(self.sums, known, self.center) + _filled(rare, known, self.center)
        return merge_whole(*found)


def known_by(model: Subspace) -> Estimate:
    """Return what a model knows of rows: U diag(lambda) U' and a noise, by channel where known."""
    rows = np.asarray(model.basis, dtype=np.float64) * np.sqrt(model.explained_variance)
    C = rows @ rows.T
    held = C.diagonal().copy()
    if model.channel_energies is None or not model.weight:
        rest = model.frobenius_bound / (model.weight or 1.0) / model.dim
        np.fill_diagonal(C, held + rest)
    else:
        np.fill_diagonal(C, np.maximum(held, model.channel_energies / model.weight))
    return Estimate(model.mean, np.asarray(C), np.ones(model.dim, dtype=bool))


def rounds_to_look(group: GappedRows) -> int:
    """Return how many rounds a look gets."""
    (sums, rare, *_), rounds = group, rounds_for(group, LOOK)
    none = sums.get(complete_rows(rare.values.shape[1]))
    rest = sum(part.weight for part in sums.values()) + float(rare.weights.sum())
    if rounds > FEWEST_ROUNDS or none is None or none.weight <= max(2 * none.dim, rest / 2):
        return rounds
    far = FAR * none.scatter.diagonal() / none.weight
    away = np.where(rare.mask, 0.0, rare.values - none.mean) ** 2
    # Filled once by rows without gaps, where these outweigh all others, is closer to the end of all
    # rounds than three rounds from each channel's own are.
    return 0 if (away <= far).all() else rounds


def rounds_for(group: GappedRows, products: float) -> int:
    """Return how many rounds a number of products is enough for."""
    n, dim = group.rare.values.shape
    each = n * dim**2 + (1 + len(group.sums)) * dim**3
    return max(FEWEST_ROUNDS, min(ROUNDS, int(products / each)))


def lacking(mask: Mask) -> bytes:
    """Return the key of the sum of rows that lack these channels (dim,)."""
    return np.packbits(mask).tobytes()


def complete_rows(dim: int) -> bytes:
    """Return the key of the sum of rows without gaps."""
    return lacking(np.zeros(dim, dtype=bool))


def absent(key: bytes, dim: int) -> Mask:
    """Return which channels a key says are absent."""
    return np.unpackbits(np.frombuffer(key, np.uint8), count=dim).astype(bool)


def estimate(
    groups: Sequence[GappedRows], *, prior: Estimate | None = None, rounds: int = ROUNDS
) -> tuple[list[Estimate], list[WholeScatter]]:
    """Return what is known of the rows of each group, and the scatter of all of them.

    groups : They have means of their own and one covariance.
    prior : For channels that never came.
    rounds : O(dim^3) for each sum, and O(n dim^2 + sum m_i^3) for n rare rows, m_i gaps in row i.
    """
    seen = _Seen.of(groups)
    known, dim, came = _start(groups, seen), len(seen.weights), seen.weights > 0
    own = _Seen.of([group._replace(sums={}) for group in groups])
    spread = np.where(own.weights > 0, own.variances, known[0].covariance.diagonal())
    whole = []
    for group, each, mean in zip(groups, known, own.means, strict=True):
        # Sums begin at what rows without gaps say, rare rows at each channel's own mean and
        # variance: where readings reach a range that was never seen, what was learnt before is
        # wrong by any factor.
        first = Estimate(np.where(own.weights > 0, mean, each.mean), np.diag(spread), came)
        ready = group.without_rare(first) if rounds else group
        whole.append(ready.filled(each))
    alone = np.where(came, np.maximum(2 * dim / np.maximum(seen.weights, 1.0), 1), 1)
    shrink = np.outer(alone**-0.5, alone**-0.5)
    np.fill_diagonal(shrink, 1.0)
    C: Array | None = None
    for turn in range(rounds + 1):
        pooled = merge_whole(*whole, center="own")
        before, C = C, pooled.scatter / pooled.weight
        means = [each.mean for each in whole]
        if prior is not None and came.any() and not came.all():
            C, means = _extended(C, means, came, prior)
        known = [Estimate(mean, C * shrink, came) for mean in means]
        if turn == rounds or _is_close(C, before):
            break
        whole = [group.filled(each) for group, each in zip(groups, known, strict=True)]
    return known, whole


class _Seen(NamedTuple):
    """What was seen of channels: weights (dim,), means by group, variances within groups (dim,)."""

    weights: Array
    means: list[Array]
    variances: Array

    @classmethod
    def of(cls, groups: Sequence[GappedRows]) -> _Seen:
        weights, means, squares = [], [], []
        for sums, rare, *_ in groups:
            each = [_moments(key, part) for key, part in sums.items()]
            there = np.where(rare.mask, 0.0, rare.weights[:, None])
            n, values = there.sum(axis=0), rare.values
            origin = values[0] if len(rare) else np.zeros(values.shape[1])
            mean = origin + (there * (values - origin)).sum(axis=0) / np.maximum(n, TINY)
            each.append((n, mean, (there * (values - mean) ** 2).sum(axis=0)))
            counts, m, q = (np.array(some) for some in zip(*each, strict=True))
            total = counts.sum(axis=0)
            mean = m[0] + (counts * (m - m[0])).sum(axis=0) / np.maximum(total, TINY)
            means.append(np.where(total > 0, mean, 0.0))
            weights.append(total)
            squares.append((q + counts * (m - mean) ** 2).sum(axis=0))
        total = np.maximum(np.sum(weights, axis=0), TINY)
        middle = np.sum([n * m for n, m in zip(weights, means, strict=True)], axis=0) / total
        came = np.sum(weights, axis=0) > 0
        means = [np.where((n == 0) & came, middle, m) for n, m in zip(weights, means, strict=True)]
        return cls(np.sum(weights, axis=0), means, np.sum(squares, axis=0) / total)


def _moments(key: bytes, part: WholeScatter) -> tuple[Array, Array, Array]:
    """Return weights, means and squared distances of the channels of a sum; 0 for absent ones."""
    there = ~absent(key, part.dim)
    return np.where(there, part.weight, 0.0), part.mean, np.where(there, part.scatter.diagonal(), 0)


def _start(groups: Sequence[GappedRows], seen: _Seen) -> list[Estimate]:
    none = complete_rows(len(seen.weights))
    whole = [sums[none] for sums, *_ in groups if none in sums and sums[none].weight > 0]
    C = np.diag(seen.variances)
    if whole and sum(each.weight for each in whole) > 2 * len(C):
        pooled = merge_whole(*whole, center="own")
        C = pooled.scatter / pooled.weight
    return [Estimate(mean, C, seen.weights > 0) for mean in seen.means]


def _filled(sums: Sums, known: Estimate, center: bool) -> list[WholeScatter]:
    """Return sums with what they lack, as the conditional mean and covariance say it."""
    scaled, found = _Scaled.of(known), []
    for key, part in sums.items():
        gone = absent(key, part.dim)
        found.append(_with_absent(part, gone, gone, scaled, center))
    return found


class _Scaled(NamedTuple):
    """An estimate in the units of channels: mean, units and sizes (dim,), correlations."""

    mean: Array
    unit: Array
    size: Array
    R: Array

    @classmethod
    def of(cls, known: Estimate) -> _Scaled:
        unit = _unit(known.covariance)
        R = known.covariance / np.outer(unit, unit) + LEAST_NOISE * np.eye(len(unit))
        return cls(known.mean, unit, _size(known.covariance), R)


def _with_absent(
    part: WholeScatter, absent: Mask, gone: Mask, known: _Scaled, center: bool
) -> WholeScatter:
    """Return a sum with those of its absent channels filled that are `gone`."""
    if not gone.any():
        return part
    i, j = np.flatnonzero(~absent), np.flatnonzero(gone)
    there, across = i[:, None], (i[:, None], j)  # as `np.ix_`, which is slow
    slopes = np.linalg.solve(known.R[there, i], known.R[across])
    V = known.R[j[:, None], j] - known.R[j[:, None], i] @ slopes
    slopes = slopes / known.unit[there] * known.unit[j]
    mean = part.mean.copy()
    if center:
        mean[j] = known.mean[j] + (part.mean - known.mean)[i] @ slopes
    added, new = np.zeros((part.dim, part.dim)), part.scatter[there, i] @ slopes
    added[across], added[j[:, None], i] = new, new.T
    V = part.weight * V * np.outer(known.size[j], known.size[j])
    added[j[:, None], j] = slopes.T @ new + (V + V.T) / 2
    return _with(part, mean, added)


def _with(part: WholeScatter, mean: Array, added: Array) -> WholeScatter:
    """Return a sum with another mean, and with more scatter."""
    energies, more = part.channel_energies, added.diagonal()
    return replace(
        part,
        held=part.scatter + added,
        mean=mean,
        energy=part.energy + float(more.sum()),
        channel_energies=None if energies is None else energies + more,
    )


def _extended(
    C: Array, means: list[Array], came: Mask, prior: Estimate
) -> tuple[Array, list[Array]]:
    """Return covariance and means in which channels that never came follow by a prior."""
    gone, P = ~came, prior.covariance
    unit = _unit(P)
    R = P / np.outer(unit, unit) + LEAST_NOISE * np.eye(len(C))
    # What a model says by a channel that stood still is wrong by any factor once it moves.
    excess = np.maximum(0.0, C.diagonal() / unit**2 - FAR * R.diagonal())
    inner = (R + np.diag(excess))[np.ix_(came, came)]
    slopes = np.linalg.solve(inner, R[np.ix_(came, gone)]) / unit[came][:, None] * unit[gone]
    across, C = C[np.ix_(came, came)] @ slopes, C.copy()
    C[np.ix_(came, gone)], C[np.ix_(gone, came)] = across, across.T
    left = P[np.ix_(gone, gone)] - slopes.T @ P[np.ix_(came, gone)]
    C[np.ix_(gone, gone)] = slopes.T @ across + (left + left.T) / 2
    found = [mean.copy() for mean in means]
    for mean in found:
        mean[gone] = prior.mean[gone] + (mean - prior.mean)[came] @ slopes
    return C, found


def _is_close(C: Array, before: Array | None) -> bool:
    if before is None:
        return False
    unit = _unit(C)
    return bool((np.abs(C - before) <= CLOSE * np.outer(unit, unit)).all())


def _size(C: Array) -> Array:
    """Return the standard deviations of channels, (dim,)."""
    return np.asarray(np.sqrt(np.maximum(C.diagonal(), 0.0)))


def _unit(C: Array) -> Array:
    """Return what channels are divided by, (dim,): 1 for one that never varied."""
    size = _size(C)
    return np.where(size > 0, size, 1.0)


def _expected(rows: Array, mask: Mask, weights: Array, C: Array) -> tuple[Array, Array]:
    """Return rows (n, dim) about their mean with gaps filled, and sum_i w_i V_i."""
    # With K = C^-1, V = K_mm^-1 and the conditional mean is mean_m - V K_mo (x_o - mean_o).
    dim, unit = len(C), _unit(C)
    K = np.linalg.inv(C / np.outer(unit, unit) + LEAST_NOISE * np.eye(dim))
    rows = np.where(mask, 0.0, rows / unit)
    pulls, added, counts = rows @ K, np.zeros(dim * dim), mask.sum(axis=1)
    for count in np.unique(counts[counts > 0]):
        alike = np.flatnonzero(counts == count)
        step = max(1, COVARIANCES // int(count) ** 2)
        for which in (alike[i : i + step] for i in range(0, len(alike), step)):
            gaps = np.nonzero(mask[which])[1].reshape(len(which), -1)
            V = np.linalg.inv(K[gaps[:, :, None], gaps[:, None, :]])
            pull = np.take_along_axis(pulls[which], gaps, axis=1)
            rows[which[:, None], gaps] = -np.einsum("nij,nj->ni", V, pull)
            places = gaps[:, :, None] * dim + gaps[:, None, :]
            V *= weights[which, None, None]
            added += np.bincount(places.ravel(), V.ravel(), minlength=dim * dim)
    size = _size(C)
    total = added.reshape(dim, dim) * np.outer(size, size)
    return rows * unit, (total + total.T) / 2

"""disLR: the leading directions of all rows in the points' span, merged up any tree.

A row's coordinates C (n, m) are those of `Landmarks`. docs/jobs.md has three ways to merge them: by
ranks, where pairs of parents keep 2k rows of both; by sketches, as in the paper; exact, by adding
the whole scatter (federated NY-KPCA). Rows and energies count exactly in all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from submerge._linalg import EPS, Array, signs
from submerge.features import Landmarks
from submerge.jobs.arrays import Arrays, added
from submerge.jobs.kinds.kpca.leverage import packed, summed, triangle_of, unpacked
from submerge.kernel.nystrom import Covariance, check_finite, chunks, outside_span, pooled
from submerge.pca.merging import merge
from submerge.pca.subspace import Subspace, oriented

SCHEMA = "coordinates"
"""What the subspaces here are of: they never leave the job."""

ROUNDED = 1e-12
"""Least singular value of a direction, over the largest and over the mean's."""


class LeadingAxes(NamedTuple):
    """The answer of disLR: orthonormal axes (m, r) in the points' coordinates, largest first."""

    axes: Array
    eigenvalues: Array
    mean: Array  # (m,), zeros unless centered
    inside: float  # squared distances from the mean
    outside: float  # squared distances from the span


class Coordinates(NamedTuple):
    """Rows (n, m) in the points' span; their features' squared distances from it, summed."""

    inside: Array
    outside: float

    @classmethod
    def of(cls, rows: Array, map_: Landmarks) -> Coordinates:
        """Project rows (n, d). O(n m^2)."""
        parts, outside = [np.empty((0, len(map_.points)))], 0.0
        for part in chunks(rows):
            C = map_.lift(part)
            outside += float(outside_span(part, C, map_.kernel).sum())
            parts.append(C)
        found = np.concatenate(parts)
        check_finite(map_.kernel, found, outside)
        return cls(found, outside)


def ranks_up(at: Coordinates, rank: int, *, center: bool) -> Arrays:
    """Return a factor (rank or fewer, m) of the coordinates, and their exact sums."""
    C = at.inside
    mean = C.mean(axis=0) if center and len(C) else np.zeros(C.shape[1])
    C = C - mean
    _, sigma, V = np.linalg.svd(np.linalg.qr(C, mode="r"), full_matrices=False)
    solid = sigma > _floor(sigma, len(C), mean)
    sigma, V = sigma[solid], V[solid]
    dropped = float(sigma[rank] ** 2) if len(sigma) > rank else 0.0
    sums = np.array([len(C), float(np.vdot(C, C)), at.outside, dropped])
    found = {"factor": V[:rank] * sigma[:rank, None], "sums": sums}
    return found | ({"mean": mean} if center else {})


def merged_ranks(ups: Sequence[Arrays], rank: int) -> Arrays:
    """Return the factor of all rows behind several."""
    if len(ups) == 1:
        return ups[0]
    whole = merge(*map(_subspace, ups), rank=rank)
    sums = [whole.weight, whole.energy, sum(float(up["sums"][2]) for up in ups)]
    found = {
        "factor": np.ascontiguousarray((whole.basis * whole.sigma).T),
        "sums": np.array([*sums, whole.spectral_bound]),
    }
    return found | ({"mean": whole.mean} if "mean" in ups[0] else {})


def _subspace(up: Arrays) -> Subspace:
    factor = up["factor"]
    sigma = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    weight, energy, _, dropped = up["sums"].tolist()
    mean = up["mean"] if "mean" in up else np.zeros(factor.shape[1])
    return oriented(
        factor / sigma[:, None],
        sigma,
        schema=SCHEMA,
        mean=mean.copy(),
        weight=weight,
        energy=energy,
        spectral_bound=dropped,
    )


def found_in_ranks(up: Arrays, k: int) -> LeadingAxes:
    whole = _subspace(up)
    solid = whole.sigma[:k] > _floor(whole.sigma, whole.weight, whole.mean)
    axes, sigma = np.array(whole.basis[:, :k][:, solid]), whole.sigma[:k][solid]
    return LeadingAxes(axes, sigma**2, whole.mean, whole.energy, float(up["sums"][2]))


def sketch_up(at: Coordinates, columns: int, *, center: bool, seed: int) -> Arrays:
    """Return the triangle of random sums of the rows, of all rows if there are no more."""
    C = at.inside
    square = float(np.vdot(C, C))
    sums = {"sums": np.array([len(C), square, at.outside])}
    if center:
        sums["mean"] = C.sum(axis=0)
        # A column of ones is summed as well: the mean is subtracted later.
        C = np.hstack([C, np.ones((len(C), 1))])
    if len(C) > columns:
        C = summed(C, columns, seed=seed)
    return sums | {"triangle": packed(triangle_of([C], C.shape[1]))}


def merged_sketches(ups: Sequence[Arrays], m: int, *, center: bool) -> Arrays:
    """Return the triangle of all sums behind several, and their sums added."""
    width = m + center
    R = triangle_of([unpacked(up["triangle"], width) for up in ups], width)
    return {**added(ups), "triangle": packed(R)}


def found_in_sketch(up: Arrays, k: int, m: int, *, center: bool) -> LeadingAxes:
    """Return the leading directions of the sums; eigenvalues are estimates."""
    n, square, outside = up["sums"].tolist()
    R, mean = unpacked(up["triangle"], m + center), np.zeros(m)
    if center:
        mean = up["mean"] / n
        R = R[:, :-1] - R[:, -1:] * mean
    _, sigma, V = np.linalg.svd(R, full_matrices=False)
    r = min(k, int(np.count_nonzero(sigma > _floor(sigma, n, mean))))
    return LeadingAxes(
        _signed(V[:r].T), sigma[:r] ** 2, mean, square - n * float(mean @ mean), outside
    )


def exact_up(at: Coordinates) -> Arrays:
    """Return the scatter of the coordinates, packed, their mean and sums."""
    C = at.inside
    mean = C.mean(axis=0) if len(C) else np.zeros(C.shape[1])
    C = C - mean
    return _covariance_up(Covariance(len(C), mean, C.T @ C, at.outside))


def merged_exact(ups: Sequence[Arrays]) -> Arrays:
    """Return the scatter of all rows behind several, exactly."""
    some = [covariance_of(up) for up in ups if up["sums"][0] > 0]
    return _covariance_up(pooled(*some)) if some else ups[0]


def _covariance_up(whole: Covariance) -> Arrays:
    sums = np.array([float(whole.count), whole.outside])
    return {"scatter": packed(whole.scatter), "mean": whole.mean, "sums": sums}


def covariance_of(up: Arrays) -> Covariance:
    upper = unpacked(up["scatter"], len(up["mean"]))
    scatter = upper + np.triu(upper, 1).T
    return Covariance(int(up["sums"][0]), up["mean"], scatter, float(up["sums"][1]))


def found_in_exact(up: Arrays, k: int, *, center: bool) -> LeadingAxes:
    whole = covariance_of(up)
    about = whole.about(center=center)
    eigenvalues, V = np.linalg.eigh(about)
    eigenvalues, V = eigenvalues[::-1][:k], V[:, ::-1][:, :k]
    mean = whole.mean if center else np.zeros(len(about))
    floor = _floor(np.sqrt(np.maximum(eigenvalues, 0.0)), whole.count, mean) ** 2
    solid = eigenvalues > max(len(about) * EPS * float(eigenvalues[0]), floor)
    axes = _signed(V[:, solid])
    return LeadingAxes(axes, eigenvalues[solid], mean, float(np.trace(about)), whole.outside)


def _floor(sigma: Array, n: float, mean: Array) -> float:
    """Return what a singular value exceeds that is more than rounding: of the mean, too."""
    return ROUNDED * max(float(sigma.max(initial=0.0)), float(np.sqrt(n * float(mean @ mean))))


def _signed(axes: Array) -> Array:
    """Return columns with the largest entry of each positive."""
    return np.ascontiguousarray(axes * signs(np.ascontiguousarray(axes.T)))


NAMES = {"factor": "readings", "sums": "readings_sums", "mean": "readings_mean"}
"""What travels: a factor, its sums and mean, under names of their own."""


def rank_of(k: int, width: int) -> int:
    """Return how many directions a model shows of the readings, as clients do without a setting."""
    return min(k, max(1, width // 2))


def readings_up(rows: Array, rank: int) -> dict[str, Array]:
    """Return a factor of rows (n, d), of twice the rank."""
    up = ranks_up(Coordinates(rows, 0.0), 2 * rank, center=True)
    return {NAMES[name]: array for name, array in up.items()}


def merged_readings(ups: Sequence[Arrays], rank: int) -> dict[str, Array]:
    """Return the factor of all rows behind several."""
    merged = merged_ranks([factor_of(up) for up in ups], 2 * rank)
    return {NAMES[name]: array for name, array in merged.items()}


def factor_of(up: Arrays) -> dict[str, Array]:
    """Return the factor of the readings, as `dis_lr` names it."""
    return {name: up[own] for name, own in NAMES.items()}


def without_readings(up: Arrays) -> Arrays:
    return {name: array for name, array in up.items() if name not in NAMES.values()}


def residuals_of(rows: Array, axes: Array, mean: Array) -> Array:
    """Return the squared distances of rows (n, d) from directions (d, r) through a mean: (n,)."""
    off = rows - mean
    if axes.shape[0] == axes.shape[1]:
        return np.zeros(len(rows))
    off -= (off @ axes) @ axes.T
    return np.asarray(np.einsum("ij,ij->i", off, off))


def answered_readings(found: LeadingAxes) -> Mapping[str, Array]:
    return {
        "readings_axes": found.axes,
        "readings_mean": found.mean,
        "readings_eigenvalues": found.eigenvalues,
        "readings_energy": np.array([found.inside]),
    }

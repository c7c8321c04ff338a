"""Summaries of features for several gammas as arrays, as the job `cluster` sends and merges them.

    count     (1,)               rows behind them
    means     (g, dim)           of the features, float64
    energies  (g,)               squared distances to the means
    sigmas    (g, rank)          singular values, descending; 0 where there is no direction
    bases     (g, dim, rank)     directions, float32; columns of zeros where there is none

Their size is that of a node with a thousand times the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from submerge.errors import PeerError
from submerge.jobs.arrays import Arrays, expect
from submerge.jobs.kinds.cluster_scores import LONGEST_FEATURES, OFF, check_basis, check_mean
from submerge.pca.merging import merge
from submerge.pca.subspace import Subspace

SCHEMA = "features"
"""Schema of the subspaces: those of one gamma only ever meet each other."""

MOST_ROWS = 2.0**52


def packed(summaries: Sequence[Subspace], rank: int) -> Arrays:
    """Return summaries of the same rows, one for each gamma, as arrays."""
    g, dim = len(summaries), summaries[0].dim
    sigmas = np.zeros((g, rank))
    bases = np.zeros((g, dim, rank), dtype=np.float32)
    for i, each in enumerate(summaries):
        held = min(each.rank, rank)
        sigmas[i, :held] = each.sigma[:held]
        bases[i, :, :held] = each.basis[:, :held]
    return {
        "count": np.array([summaries[0].weight]),
        "means": np.array([each.mean for each in summaries]),
        "energies": np.array([each.energy for each in summaries]),
        "sigmas": sigmas,
        "bases": bases,
    }


def unpacked(arrays: Arrays) -> list[Subspace]:
    """Return the summaries, one for each gamma."""
    found = []
    for i, sigma in enumerate(arrays["sigmas"]):
        held = int(np.count_nonzero(sigma))
        found.append(
            Subspace(
                SCHEMA,
                arrays["bases"][i, :, :held],
                sigma[:held],
                arrays["means"][i],
                weight=float(arrays["count"][0]),
                energy=float(arrays["energies"][i]),
                spectral_bound=0.0,
            )
        )
    return found


def merged(ups: Sequence[Arrays]) -> Arrays:
    """Return the summaries of all rows behind several, gamma by gamma, in order."""
    rank = ups[0]["sigmas"].shape[1]
    by_gamma = zip(*(unpacked(up) for up in ups), strict=True)
    return packed([merge(*parts, rank=rank) for parts in by_gamma], rank)


def check_summaries(up: Arrays, g: int, dim: int, rank: int) -> None:
    """Refuse what is no summary of features.

    Raises
    ------
    PeerError
    """
    shapes: dict[str, tuple[int | None, ...]] = {"count": (1,), "means": (g, dim)}
    shapes |= {"energies": (g,), "sigmas": (g, rank), "bases": (g, dim, rank)}
    expect(up, shapes, single=("bases",))
    count = float(up["count"][0])
    if not 0 <= count < MOST_ROWS or count != round(count):
        raise PeerError("a count of rows is a whole number", kind="range")
    for mean, energy, sigma, basis in zip(
        up["means"], up["energies"], up["sigmas"], up["bases"], strict=True
    ):
        check_mean(mean)
        check_basis(basis)
        most = (1.0 + OFF) * float(energy) + OFF * count * LONGEST_FEATURES * (count > 0)
        if not 0 <= energy <= LONGEST_FEATURES * count * (1.0 + OFF):
            raise PeerError("features of so many rows have no such energy", kind="range")
        if (sigma < 0).any() or (np.diff(sigma) > 0).any() or float(sigma @ sigma) > most:
            raise PeerError("singular values descend, within the energy", kind="range")
        if np.count_nonzero(sigma) != np.count_nonzero(np.abs(basis).max(axis=0, initial=0.0)):
            raise PeerError("each direction has its singular value", kind="range")

"""ClusterMembership: to which cluster a row belongs, by the answer of a job.

The answer comes from above, so everything is checked, in `MOST_BYTES` at most. A row with a gap,
filled or not, has no cluster: where it lies is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from submerge._linalg import Array
from submerge.errors import PeerError, ShapeError, UsageError
from submerge.jobs.arrays import Arrays, expect
from submerge.jobs.job import Job
from submerge.jobs.kinds.cluster_scores import KernelScores, check_basis, check_scores, map_of
from submerge.jobs.kinds.kpca import answer as kpca
from submerge.jobs.points import LARGEST_READING
from submerge.kernel.kmeans_rounds import nearest

MOST_BYTES = 1 << 20
"""Bytes of arrays that are kept: 512 features and 250 clusters, or 1000 centers of 128 channels."""

NO_CLUSTER = -1
"""Stands for the cluster of a row that has none."""

OF_POINTS = ("points", "axes", "mean", "kernel")
USED = {"kmeans": (), "cluster": ("map", "mean", "basis"), "kpca": OF_POINTS, "nystrom": OF_POINTS}
"""Arrays of answers that are kept, beside centers and limits of distances."""

KINDS_WITH_CLUSTERS = tuple(USED)


class RowClusters(NamedTuple):
    """Clusters of n rows (n,), from 0, `NO_CLUSTER` with a gap, and distances to centers."""

    numbers: npt.NDArray[np.intp]
    distances: Array
    over: Array  # the largest share of rows held out whose limit it exceeds; 0 for none


@dataclass(frozen=True, slots=True, eq=False)
class ClusterMembership:
    """Centers (k, width), or of scores (k, directions), for rows of one schema."""

    job: str
    fingerprint: str
    width: int
    centers: Array
    scores: KernelScores | None
    levels: Array  # shares (m,) of rows held out within `limits`, ascending
    limits: Array
    nbytes: int

    @classmethod
    def of(cls, job: Job, answer: Arrays) -> ClusterMembership:
        """Return what is kept of an answer; UsageError without clusters, PeerError if bad."""
        if job.kind not in KINDS_WITH_CLUSTERS:
            raise UsageError(f"{', '.join(USED)} have clusters, got a job of kind {job.kind}")
        used = ("centers", "distance_levels", "distance_limits", *USED[job.kind])
        if missing := [name for name in used if name not in answer]:
            raise PeerError(f"the answer of {job.kind} has no {missing[0]}", kind="shape")
        size = sum(answer[name].nbytes for name in used)
        if "points" in used:
            size += 8 * len(np.atleast_1d(answer["points"])) ** 2  # their kernel's inverse root
        if size > MOST_BYTES:
            raise PeerError(
                f"clusters are kept up to {MOST_BYTES} bytes, got {size}", kind="oversize"
            )
        read = _scores if job.kind == "cluster" else _on_points
        scores = None if job.kind == "kmeans" else read(job, answer)
        width = job.width if scores is None else scores.basis.shape[1]
        rest = {name: answer[name] for name in used[:3]}
        m = len(rest["distance_levels"]) if rest["distance_levels"].ndim else None
        expect(rest, {"centers": (None, width), "distance_levels": (m,), "distance_limits": (m,)})
        centers, levels, limits = (rest[name] for name in rest)
        if not len(centers):
            raise PeerError("clusters have at least one center", kind="shape")
        if not _ascends(levels, most=1.0) or not _ascends(limits, most=np.inf):
            raise PeerError("levels and limits ascend", kind="range")
        return cls(job.id, job.fingerprint, job.width, centers, scores, levels, limits, size)

    def assign(self, rows: Array, gaps: npt.NDArray[np.bool_] | None = None) -> RowClusters:
        """Return the clusters of rows (n, width), scaled as the job's; gaps have none."""
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ShapeError("rows", expected=f"(n, {self.width})", got=rows.shape)
        whole = (np.abs(rows) <= LARGEST_READING).all(axis=1)  # NaN is not
        if gaps is not None:
            whole &= ~gaps.any(axis=1)
        numbers = np.full(len(rows), NO_CLUSTER, dtype=np.intp)
        distances = np.full(len(rows), np.nan)
        if whole.any():
            found = rows[whole]
            labels, squares = nearest(
                found if self.scores is None else self.scores(found), self.centers
            )
            numbers[whole], distances[whole] = labels, np.sqrt(squares)
        passed = (distances[:, None] > self.limits).sum(axis=1)  # NaN passes none
        return RowClusters(numbers, distances, np.append(0.0, self.levels)[passed])


def _scores(job: Job, answer: Arrays) -> KernelScores:
    """Return the checked scores of an answer of `cluster`."""
    features = map_of(answer["map"])
    try:
        dim = features.dim(job.width)
    except UsageError as error:
        raise PeerError(str(error), kind="shape") from error
    if answer["basis"].ndim != 2 or not answer["basis"].shape[1]:
        raise PeerError("a basis has two axes, and one direction or more", kind="shape")
    check_scores(answer, dim, answer["basis"].shape[1])
    return KernelScores(features, answer["mean"], answer["basis"])


def _on_points(job: Job, answer: Arrays) -> KernelScores:
    """Return the checked scores of an answer of kernel PCA with clusters."""
    shapes = {"points": (None, job.width), "axes": (None, None), "mean": (None,), "kernel": (4,)}
    expect({name: answer[name] for name in OF_POINTS}, shapes, single=("points",))
    axes, mean, centers = answer["axes"], answer["mean"], answer["centers"]
    more = (centers.shape[1] if centers.ndim == 2 else 0) - axes.shape[1]
    if more < 0 or not len(answer["points"]) == len(axes) == len(mean):
        raise PeerError("directions and centers are of the points", kind="shape")
    check_basis(axes)
    try:
        features = kpca.map_of(answer)
        _ = features.whitening  # now: it may overflow
    except UsageError as error:
        raise PeerError(str(error), kind="range") from error
    # Of directions that the rows do not have all scores are 0.
    return KernelScores(features, mean, np.pad(axes, ((0, 0), (0, more))))


def _ascends(values: Array, *, most: float) -> bool:
    """Return whether values are positive, ascend, and end at `most`."""
    return bool((values > 0).all() and (values <= most).all() and (np.diff(values) >= 0).all())

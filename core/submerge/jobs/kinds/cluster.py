"""ClusterJob: spectral clustering of all rows of a fleet: kernel scores that merge, then k-means.

Its phases are in docs/jobs.md, the mathematics in `submerge.kernel.spectral`. No row travels,
and no score of fewer than five (`KMeansJob`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError, UsageError
from submerge.features import RandomFourier
from submerge.features.weights import Kind
from submerge.jobs.arrays import Arrays, check_counts, expect, off_by
from submerge.jobs.job import Settings
from submerge.jobs.kind import (
    AnswerArray,
    JobAnswer,
    JobSetting,
    OfSums,
    PhaseDown,
    check_known,
    number_of,
    whole_of,
)
from submerge.jobs.kinds.cluster_scores import (
    LONGEST_FEATURES,
    OFF,
    KernelScores,
    check_basis,
    check_mean,
    check_scores,
    spec_numbers,
)
from submerge.jobs.kinds.kmeans import OF_DISTANCES, GroupsOfRows, KMeansJob
from submerge.jobs.kinds.kpca.settings import kernel_setting, one_of
from submerge.jobs.masks import MASKED
from submerge.jobs.points import MOST_HELD, JobPoints, check_squares, seed_of
from submerge.jobs.roster import MOST_MEMBERS
from submerge.kernel.spectral import FACTORS, SPARE, directions, eigengap, maps_around, summary_of
from submerge.pca.merging import merge
from submerge.pca.subspace import Subspace
from submerge.schema import Schema
from submerge.stats.moments import Moments, pooled

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


def check_summaries(up: Arrays, g: int, dim: int, rank: int, clients: int) -> None:
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
        off = off_by(OFF, clients)
        most = (1.0 + off) * float(energy) + off * count * LONGEST_FEATURES * (count > 0)
        whole = energy + count * float(mean @ mean)
        if energy < 0 or not whole <= LONGEST_FEATURES * count * (1.0 + off):
            raise PeerError("features of so many rows have no such energy", kind="range")
        if (sigma < 0).any() or (np.diff(sigma) > 0).any() or float(sigma @ sigma) > most:
            raise PeerError("singular values descend, within the energy", kind="range")
        if np.count_nonzero(sigma) != np.count_nonzero(np.abs(basis).max(axis=0, initial=0.0)):
            raise PeerError("each direction has its singular value", kind="range")


MOST_SPECTRAL, MOST_DIM = 128, 4096
"""Clusters and features: three summaries then stay below 7 MB."""

KERNELS = ("gaussian", "laplace", "matern")

MOST_GAMMA = 1e100


class ClusterState(NamedTuple):
    """What the root knows between rounds: the part of the answer that is found, and k-means'."""

    found: Arrays
    of_kmeans: Any


class ClusterJob(OfSums):
    """Spectral clustering of all rows of a fleet, by kernel scores."""

    listed = (
        JobSetting("clusters", "whole", f"How many clusters, k, 1 to {MOST_SPECTRAL}."),
        JobSetting("kernel", "text", f"One of {', '.join(KERNELS)}.", "gaussian"),
        JobSetting("gamma", "number", "The kernel's scale.", "the widest eigengap of three"),
        JobSetting("nu", "number", "Of a Matern kernel, 1.5 or 2.5.", "1.5"),
        JobSetting("features", "whole", f"Random features, at most {MOST_DIM}.", "512"),
        JobSetting("map", "text", f"Their kind: {', '.join(get_args(Kind))}.", "orthogonal"),
        *(each for each in KMeansJob.listed[1:] if each is not MASKED),
    )
    answers = (
        AnswerArray("map", "The feature map's spec: the bytes of its text."),
        AnswerArray("mean", "Of the features, (features,)."),
        AnswerArray("basis", "The directions that are used, (features, k - 1)."),
        AnswerArray("gammas", "Scales of the kernel that were tried."),
        AnswerArray("gaps", "The eigengap of each: that with the widest was taken."),
        AnswerArray("centers", "Each cluster's mean score, (k, k - 1)."),
        AnswerArray("counts", "Rows that are nearest to each, (k,)."),
        AnswerArray("cost", "The sum of squared distances of scores, (1,)."),
        AnswerArray("held_out", "The number of rows held out, and their cost, (2,)."),
        *OF_DISTANCES,
    )

    def __init__(self, settings: Settings, width: int) -> None:
        check_known(settings, (each.name for each in self.listed))
        if "clusters" not in settings:
            raise UsageError("cluster needs the setting clusters, got none: add clusters=2")
        self._k = whole_of(settings, "clusters", 0, least=1, most=MOST_SPECTRAL)
        self._map = _map_of(settings)
        self._width, self._dim = width, self._map.dim(width)
        self._rank = min(self._k + SPARE, self._dim)
        own = {each.name for each in KMeansJob.listed} | {"seed"}
        of_kmeans = {name: value for name, value in settings.items() if name in own}
        self._kmeans = KMeansJob(of_kmeans, directions(self._k))

    def first(self) -> tuple[Any, PhaseDown]:
        """Ask for moments; or for summaries, if gamma is known."""
        state = ClusterState({}, None)
        if self._map.settled:
            return state, PhaseDown("summaries", {"gammas": np.array([self._map.kernel.gamma])})
        return state, PhaseDown("spread", {})

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        """Return moments, summaries, or what k-means asks of the scores, which it remembers."""
        if down.phase == "spread":
            return None, _sums(Moments.of(points.rows) if len(points.rows) else None, self._width)
        if down.phase == "summaries":
            schemas = [Schema(self._width, features=each) for each in self._maps(down)]
            found = [summary_of(points.rows, each, n_clusters=self._k) for each in schemas]
            return None, packed(found, self._rank)
        if down.phase == "seed":
            scores = KernelScores(self._maps(down)[0], down.arrays["mean"], down.arrays["basis"])
            of_scores = points._replace(rows=scores(points.rows), held_out=scores(points.held_out))
            memory = GroupsOfRows.of(of_scores)
        return self._kmeans.contribute(memory, down, points, node)

    def bytes_for(self, rows: int) -> int:
        """Return that of rows and summaries; features are held of some rows at once."""
        features = self._dim * (6 * self._rank + 256)
        return 8 * (4 * rows * self._width + features) + self._kmeans.bytes_for(rows)

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Pool moments, merge summaries, or do as k-means does."""
        if down.phase == "spread":
            parts = [_moments(up) for up in ups if up["count"][0] > 0]
            return _sums(pooled(*parts) if parts else None, self._width)
        if down.phase == "summaries":
            return merged(ups)
        return self._kmeans.merge(down, ups)

    def spread(self, down: PhaseDown, up: Arrays) -> Array | None:
        """Return the variance that gamma follows from."""
        known = down.phase == "spread" and up["count"][0] > 0
        return _moments(up).variance.sum(keepdims=True) if known else None

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        """Try gammas around that of the spread; take one of them; do as k-means does."""
        if down.phase in ("spread", "summaries") and not up["count"][0] > 0:
            raise UsageError("clusters need one row or more, and no participant has one")
        if down.phase == "spread":
            spread = float(_moments(up).variance.sum())
            maps = maps_around(self._map, spread, FACTORS)
            gammas = np.array([each.kernel.gamma for each in maps])
            return state, PhaseDown("summaries", {"gammas": gammas})
        if down.phase == "summaries":
            return self._take(down, up)
        result = self._kmeans.next(state.of_kmeans, down, up)
        if isinstance(result, JobAnswer):
            return JobAnswer({**state.found, **result.arrays})
        of_kmeans, after = result
        return ClusterState(state.found, of_kmeans), after

    def check_down(self, down: PhaseDown) -> None:
        """Refuse other phases, gammas that no kernel has, and maps and centers of other shapes."""
        arrays = down.arrays
        if down.phase == "spread":
            expect(arrays, {})
        elif down.phase == "summaries":
            expect(arrays, {"gammas": (None,)})
            if not 1 <= len(arrays["gammas"]) <= len(FACTORS):
                raise PeerError(f"1 to {len(FACTORS)} gammas", kind="range")
            _check_gammas(arrays["gammas"])
        elif down.phase == "seed":
            rest = {name: each for name, each in arrays.items() if name not in ("mean", "basis")}
            expect(rest, {"gammas": (1,)})
            _check_gammas(arrays["gammas"])
            check_scores(arrays, self._dim, directions(self._k))
        elif down.phase in ("lloyd", "measure"):
            self._kmeans.check_down(down)
        else:
            raise PeerError(f"cluster has no phase {down.phase[:40]!r}")

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Refuse arrays that no child of this version sends in the phase, of rows that it has."""
        if down.phase not in ("spread", "summaries"):
            self._kmeans.check_up(down, up, clients)
            return
        if down.phase == "spread":
            expect(up, {"count": (1,), "mean": (self._width,), "m2": (self._width,)})
            check_squares(float(up["count"][0]), up["mean"], up["m2"], clients)
        else:
            check_summaries(up, len(down.arrays["gammas"]), self._dim, self._rank, clients)
        check_counts(up["count"], MOST_HELD * clients)

    def _maps(self, down: PhaseDown) -> list[RandomFourier]:
        return [self._map.settled_at(gamma) for gamma in down.arrays["gammas"].tolist()]

    def _take(self, down: PhaseDown, up: Arrays) -> tuple[ClusterState, PhaseDown]:
        """Take the gamma with the widest eigengap, the first of equals; send its map down."""
        summaries = unpacked(up)
        gaps = np.array([eigengap(each, n_clusters=self._k) for each in summaries])
        best, gammas = int(gaps.argmax()), down.arrays["gammas"]
        chosen = self._map.settled_at(float(gammas[best]))
        scores = KernelScores.of(chosen, summaries[best], n_clusters=self._k)
        found = {"map": spec_numbers(chosen), "gammas": gammas, "gaps": gaps, **scores.arrays}
        asked = {"gammas": gammas[best : best + 1], **scores.arrays}
        return ClusterState(found, self._kmeans.first()[0]), PhaseDown("seed", asked)


def _map_of(settings: Settings) -> RandomFourier:
    """Return the map that is set; its gamma may be open."""
    features = whole_of(settings, "features", 512, least=2, most=MOST_DIM)
    kind = one_of(settings, "map", get_args(Kind))
    number_of(settings, "gamma", 0.0, most=MOST_GAMMA)
    return RandomFourier(kernel_setting(settings, KERNELS), features, kind, seed_of(settings))


def _sums(moments: Moments | None, width: int) -> Arrays:
    """Return moments as arrays; None is those of no row."""
    if moments is None:
        return {"count": np.zeros(1), "mean": np.zeros(width), "m2": np.zeros(width)}
    return {"count": np.array([float(moments.count)]), "mean": moments.mean, "m2": moments.m2}


def _moments(arrays: Arrays) -> Moments:
    return Moments(int(arrays["count"][0]), arrays["mean"], arrays["m2"])


def _check_gammas(gammas: Array) -> None:
    if not ((gammas > 0) & (gammas <= MOST_GAMMA)).all():
        raise PeerError("gammas are positive", kind="range")

"""KernelPcaJob: disKPCA as a kind of job: points by what is missed, directions in their span.

Its rounds are in docs/jobs.md, "Kernel PCA by a fleet"; with `clusters` those of k-means follow,
of the rows' scores (Balcan and others, Figures 5 and 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError, UsageError
from submerge.features import Landmarks
from submerge.jobs.arrays import (
    LARGEST_NUMBER,
    OFF,
    Arrays,
    added,
    check_at_most,
    check_counts,
    expect,
    off_by,
)
from submerge.jobs.job import Settings
from submerge.jobs.kind import JobAnswer, PhaseDown, check_known
from submerge.jobs.kinds.kmeans import GroupsOfRows, KMeansJob
from submerge.jobs.kinds.kpca import dis_lr, leverage, remainder
from submerge.jobs.kinds.kpca.answer import ANSWERS, answered
from submerge.jobs.kinds.kpca.points import SLACK, own_squares, residuals
from submerge.jobs.kinds.kpca.settings import LISTED, KpcaSettings
from submerge.jobs.kinds.kpca.stages import KnownPoints, RowsOffered, Shapes, stage_of
from submerge.jobs.points import LARGEST_READING, MOST_HELD, NO_ONE_SHARES, JobPoints, key
from submerge.jobs.roster import MOST_MEMBERS
from submerge.kernel.nystrom import check_finite

LARGEST_SQUARE = LARGEST_NUMBER / (MOST_HELD * MOST_MEMBERS)
"""Of a row's features, whatever the kernel: sums over all rows that there are may travel."""

PHASES = ("count", "factor", "project", "measure")
"""Besides those of the choices."""

OF_KMEANS = "kmeans-"
"""Begins the phases of k-means."""

NOT_NYSTROM = ("sample", "features", "sketch", "sketched_by", "merge", "columns")


class RowsCounted(NamedTuple):
    """What the root knows from the first round on."""

    rows: float
    held_out: float
    nodes: float
    sharing: float


class RootState(NamedTuple):
    """What the root knows between rounds."""

    counts: RowsCounted = RowsCounted(0.0, 0.0, 0.0, 0.0)
    points: int = 0
    found: dis_lr.LeadingAxes | None = None
    readings: dis_lr.LeadingAxes | None = None
    answer: Arrays | None = None  # without clusters
    of_kmeans: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Seen(KnownPoints):
    """What has gone down; the triangle (t, t) is of leverage, None where there is none yet."""

    of: KpcaSettings
    triangle: Array | None = None

    def _news(self, arrays: Arrays) -> dict[str, Any]:
        if "triangle" not in arrays:
            return {}
        return {"triangle": leverage.unpacked(arrays["triangle"], self.of.sketch)}

    @property
    def map(self) -> Landmarks:
        points = np.empty((0, 1)) if self.points is None else self.points
        return Landmarks(self.kernel, points)

    def knows(self, stage: int) -> bool:
        if stage == 2:
            return self.points is not None
        return self.limit > 0 and (self.of.sample != "leverage" or self.triangle is not None)

    def embedded(self, rows: Array) -> Array:
        """Return the sketched features (n, t) of rows (n, d), that leverage is taken from."""
        with np.errstate(over="ignore", invalid="ignore"):
            E = np.asarray(self.of.map_of(self.kernel).lift(rows), dtype=np.float64)
        check_finite(self.kernel, E)
        return E

    def scores(self, stage: int, rows: Array) -> Array:
        if stage == 2:
            found = residuals(rows, self.map)
        elif self.of.sample == "uniform":
            found = np.ones(len(rows))
        elif self.of.sample == "leverage" and self.triangle is not None:
            found = leverage.scores(self.embedded(rows), self.triangle)
        else:
            found = own_squares(rows, self.kernel)
        check_finite(self.kernel, found)
        return found

    def slack(self, stage: int, rows: Array, scores: Array) -> Array:
        squares = own_squares(rows, self.kernel)
        # Also where all rows count alike: others compute their kernel with these.
        check_finite(self.kernel, squares)
        if stage == 2:
            return np.asarray(SLACK * squares)
        if self.of.sample == "leverage" and self.triangle is not None:
            return leverage.slack(self.embedded(rows), self.triangle, scores)
        return np.asarray(SLACK * scores)


class KernelPcaJob:
    """Kernel PCA over a fleet."""

    listed = LISTED
    answers = ANSWERS

    def __init__(self, settings: Settings, width: int) -> None:
        self._of = KpcaSettings.of(settings)
        self._rank = dis_lr.rank_of(self._of.components, width)
        self._seen = Seen(self._of, width, self._of.kernel)
        of_kmeans = {"clusters": self._of.clusters or 1, "seed": self._of.seed}
        self._kmeans = KMeansJob(of_kmeans, self._of.components)

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        if down.phase.startswith(OF_KMEANS):
            if "axes" in down.arrays:
                memory = _scored(memory, points, down.arrays["axes"], down.arrays["mean"])
            return self._kmeans.contribute(memory, _of_kmeans(down), points, node)
        if down.phase == "count":
            here = RowsOffered.of(points, self._seen.after(down))
            return here, _counted(here, points.may_share)
        return _given(memory, down, points.may_share, node)

    def bytes_for(self, rows: int) -> int:
        """Return that of coordinates on the points, and of matrices over these, as they travel."""
        of, m = self._of, self._of.points
        embedded = 3 * rows * of.features if of.sample == "leverage" else 0
        clusters = self._kmeans.bytes_for(rows) if of.clusters else 0
        return 8 * (4 * rows * self._seen.width + (2 * rows + 8 * m) * m + embedded) + clusters

    def points_in(self, down: PhaseDown, up: Arrays) -> int:
        return len(up["points"]) if down.phase.startswith("points") else 0

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Keep the smallest keys, put points together, or merge factors."""
        of, phase = self._of, down.phase
        if phase == "count":
            return added(ups)
        if phase.startswith(OF_KMEANS):
            return self._kmeans.merge(_of_kmeans(down), ups)
        if phase == "factor":
            triangles = [leverage.unpacked(up["triangle"], of.sketch) for up in ups]
            return {"triangle": leverage.packed(leverage.triangle_of(triangles, of.sketch))}
        if stage_of(phase):
            return self._seen.merged(phase, ups)
        if phase == "measure":
            return remainder.merged_sketches(ups)
        own = dis_lr.merged_readings(ups, self._rank) if of.readings else {}
        return {**own, **self._merged_projections(down, ups)}

    def _merged_projections(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        of, ups = self._of, [dis_lr.without_readings(up) for up in ups]
        if of.merge == "ranks":
            return dis_lr.merged_ranks(ups, 2 * of.components)
        if of.merge == "exact":
            return dis_lr.merged_exact(ups)
        m = int(down.arrays["size"][0])
        return dis_lr.merged_sketches(ups, m, center=of.center)

    def spread(self, down: PhaseDown, up: Arrays) -> Array | None:
        """Return the variance that gamma follows from."""
        if down.phase != "count" or self._of.kernel.gamma is not None:
            return None
        rows = max(1.0, float(up["counts"][0]))
        mean = up["sums"] / rows
        return np.maximum(up["squares"] / rows - float(mean @ mean), 0.0)

    def first(self) -> tuple[Any, PhaseDown]:
        down = PhaseDown("count", {})
        self._seen = self._seen.after(down)
        return RootState(), down

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        result = self._next(state, down, up)
        if not isinstance(result, JobAnswer):
            self._seen = self._seen.after(result[1])
        return result

    def _next(
        self, state: RootState, down: PhaseDown, up: Arrays
    ) -> tuple[RootState, PhaseDown] | JobAnswer:
        phase = down.phase
        if phase == "count":
            return self._opened(up)
        if phase == "factor":
            limit = self._seen.limit_down(1, state.counts.sharing)
            return state, PhaseDown("keys-1", {**limit, **up})
        if phase.startswith("keys"):
            return state, self._seen.rows_wanted(phase, up)
        if phase.startswith("points"):
            return self._with_points(state, phase, up)
        if phase == "measure":
            return self._answer(state, remainder.limits(up))
        if phase.startswith(OF_KMEANS):
            return self._clustered(state, down, up)
        return self._projected(state, up)

    def _projected(self, state: RootState, up: Arrays) -> tuple[RootState, PhaseDown] | JobAnswer:
        """Find the directions; ask how far rows that were held out lie from them."""
        of = self._of
        if of.merge == "ranks":
            found = dis_lr.found_in_ranks(up, of.components)
        elif of.merge == "sketch":
            found = dis_lr.found_in_sketch(up, of.components, state.points, center=of.center)
        else:
            found = dis_lr.found_in_exact(up, of.components, center=of.center)
        if not len(found.eigenvalues):
            raise UsageError("kernel PCA needs rows that differ, and all rows are alike")
        own = dis_lr.found_in_ranks(dis_lr.factor_of(up), self._rank) if of.readings else None
        state = state._replace(found=found, readings=own)
        if not state.counts.held_out:
            return self._answer(state, {})
        variances = found.eigenvalues / state.counts.rows
        arrays = {"axes": found.axes, "variances": variances}
        arrays |= {"mean": found.mean} if of.center else {}
        if own is not None:
            arrays |= {"readings_axes": own.axes, "readings_mean": own.mean}
        return state, PhaseDown("measure", arrays)

    def _answer(self, state: RootState, limits: Arrays) -> tuple[RootState, PhaseDown] | JobAnswer:
        """Return the answer; or ask for clusters of the scores first."""
        seen, found = self._seen, state.found
        if seen.points is None or found is None:
            raise UsageError("an answer comes after the last round")
        counts = np.array(state.counts)
        own = {} if state.readings is None else dis_lr.answered_readings(state.readings)
        answer = answered(seen.kernel, seen.points, found, counts, {**own, **limits})
        if not self._of.clusters:
            return JobAnswer(answer)
        # Of directions that the rows do not have all scores are 0.
        more = self._of.components - found.axes.shape[1]
        arrays = {"axes": np.pad(found.axes, ((0, 0), (0, more))), "mean": found.mean}
        state = state._replace(answer=answer, of_kmeans=self._kmeans.first()[0])
        return state, PhaseDown(f"{OF_KMEANS}seed", arrays)

    def _clustered(
        self, state: RootState, down: PhaseDown, up: Arrays
    ) -> tuple[RootState, PhaseDown] | JobAnswer:
        result = self._kmeans.next(state.of_kmeans, _of_kmeans(down), up)
        if isinstance(result, JobAnswer):
            clusters = dict(result.arrays)
            clusters["cluster_counts"] = clusters.pop("counts")
            return JobAnswer({**(state.answer or {}), **clusters})
        of_kmeans, after = result
        after = after._replace(phase=f"{OF_KMEANS}{after.phase}")
        return state._replace(of_kmeans=of_kmeans), after

    def _opened(self, up: Arrays) -> tuple[RootState, PhaseDown]:
        """Settle gamma; ask for the triangle, or for the first keys."""
        of, counts = self._of, RowsCounted(*up["counts"].tolist())
        if not counts.rows:
            raise UsageError("kernel PCA needs one row or more, and no participant has one")
        if not counts.sharing:
            raise UsageError(NO_ONE_SHARES)
        gamma = of.kernel.gamma
        if gamma is None:
            spread = self.spread(PhaseDown("count", {}), up)
            if spread is None or not spread[0] > 0:
                raise UsageError("gamma follows from how rows differ, and all are alike: give one")
            gamma = of.kernel.auto(float(spread[0]))
        state = RootState(counts)
        settled = {"gamma": np.array([gamma])}
        if of.sample == "leverage":
            return state, PhaseDown("factor", settled)
        return state, PhaseDown("keys-1", {**settled, **self._seen.limit_down(1, counts.sharing)})

    def _with_points(self, state: RootState, phase: str, up: Arrays) -> tuple[RootState, PhaseDown]:
        """Choose by what these points miss, or project on all."""
        m = state.points + len(up["points"])
        state = state._replace(points=m)
        if not m:
            raise UsageError("kernel PCA needs points, and every row's kernel is 0")
        down = self._seen.next_keys(phase, up, state.counts.sharing)
        if down is None:
            down = PhaseDown("project", {"points": up["points"], "size": np.array([float(m)])})
        return state, down

    def check_down(self, down: PhaseDown) -> None:
        """Refuse other phases, and arrays of another shape; remember what they hold."""
        seen, of, width = self._seen, self._of, self._seen.width
        phase, arrays, t = down.phase, down.arrays, of.sketch
        clusters = of.clusters and phase.startswith(OF_KMEANS)
        if phase not in PHASES and not seen.has(phase) and not clusters:
            raise PeerError(f"kpca has no phase {phase[:40]!r}")
        if clusters and phase != f"{OF_KMEANS}seed":
            self._kmeans.check_down(_of_kmeans(down))
            self._seen = seen.after(down)
            return
        by_leverage = of.sample == "leverage"
        shapes: Shapes = seen.shapes_down(phase) if stage_of(phase) else {}
        if phase == "factor" or (phase == "keys-1" and not by_leverage):
            shapes |= {"gamma": (1,)}
        if phase == "keys-1" and by_leverage:
            shapes |= {"triangle": (t * (t + 1) // 2,)}
        if phase == "project":
            shapes |= {"points": (None, width), "size": (1,)}
        if phase == "measure":
            shapes |= {"axes": (None, None), "variances": (None,)}
            shapes |= {"mean": (None,)} if of.center else {}
            if of.readings:
                shapes |= {"readings_axes": (width, None), "readings_mean": (width,)}
        if clusters:
            m = arrays["mean"].size if "mean" in arrays else 0
            shapes = {"axes": (m, of.components), "mean": (m,)}
        expect(arrays, shapes, single=("points",))
        seen.check_down(arrays)
        if phase == "measure":
            m, r = arrays["axes"].shape
            fits = arrays["variances"].shape == (r,) and (
                "mean" not in arrays or len(arrays["mean"]) == m
            )
            if not fits:
                raise PeerError(f"a variance each for {r} directions of {m}", kind="shape")
            if not (arrays["variances"] > 0).all():
                raise PeerError("variances are positive", kind="range")
        self._seen = seen.after(down)

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Refuse arrays that no child of this version sends in the phase, of rows that it has."""
        seen, of, width = self._seen, self._of, self._seen.width
        phase, t, rows = down.phase, of.sketch, MOST_HELD * clients
        if phase == "count":
            open_: Shapes = {"sums": (width,), "squares": (1,)} if of.kernel.gamma is None else {}
            expect(up, open_ | {"counts": (4,)})
            counts = up["counts"]
            check_counts(counts[:2], rows)
            check_counts(counts[2:], 2 * clients)
            if open_:
                check_at_most("sums", up["sums"], counts[0] * LARGEST_READING, clients)
                most = counts[0] * width * LARGEST_READING**2
                check_at_most("squares", up["squares"], most, clients)
                least = float(up["sums"] @ up["sums"])
                if up["squares"][0] * counts[0] * (1.0 + off_by(OFF, clients)) < least:
                    raise PeerError("squares are no less than those of the mean", kind="range")
        elif phase == "factor":
            expect(up, {"triangle": (t * (t + 1) // 2,)})
            _check_triangle(up["triangle"], t, LARGEST_NUMBER / MOST_MEMBERS * clients, clients)
        elif stage_of(phase):
            seen.check_up(down, up, clients)
        elif phase.startswith(OF_KMEANS):
            self._kmeans.check_up(_of_kmeans(down), up, clients)
        elif phase == "measure":
            remainder.check_sketches(up, remainder.names_of(readings=of.readings), rows)
        else:
            if of.readings:
                _check_readings(of, width, up, clients)
                up = dis_lr.without_readings(up)
            square = LARGEST_SQUARE
            if seen.phase and seen.kernel.gamma is not None:
                farthest = np.full((1, width), LARGEST_READING)
                square = min(square, float(own_squares(farthest, seen.kernel)[0]))
            _check_projected(of, int(down.arrays["size"][0]), up, clients, square)


class NystromJob(KernelPcaJob):
    """NY-KPCA over a fleet: uniform points, and the exact covariance in their span."""

    listed = tuple(each for each in LISTED if each.name not in NOT_NYSTROM)

    def __init__(self, settings: Settings, width: int) -> None:
        check_known(settings, (each.name for each in self.listed))
        super().__init__({**settings, "sample": "uniform", "merge": "exact"}, width)


def _counted(here: RowsOffered[Seen], may_share: int) -> Arrays:
    """Return how many rows there are, and sums that settle gamma if that is open."""
    rows = here.rows
    shares = len(rows) > 0 and may_share > 0
    up = {"counts": np.array([len(rows), len(here.held_out), 1.0, shares], dtype=np.float64)}
    if here.known.kernel.gamma is None:
        square = np.array([float(np.vdot(rows, rows))])
        up |= {"sums": rows.sum(axis=0), "squares": square}
    return up


def _given(
    here: RowsOffered[Seen], down: PhaseDown, may_share: int, node: str
) -> tuple[RowsOffered[Seen], Arrays]:
    """Return the memory for later rounds, and what a round asks for."""
    if stage_of(down.phase):
        return here.gives(down, may_share, node)
    seen = here.known.after(down)
    here = here._replace(known=seen)
    if down.phase == "factor":
        return here, _factor(seen, here.rows, node)
    if down.phase == "project":
        return here, {**_projections(seen, here.rows, node), **_own_readings(seen.of, here.rows)}
    arrays = down.arrays
    axes, variances = arrays["axes"], arrays["variances"]
    mean = arrays["mean"] if "mean" in arrays else np.zeros(len(axes))
    found = remainder.statistics(here.held_out, seen.map, axes, mean, variances)
    if seen.of.readings:
        of_readings = arrays["readings_axes"], arrays["readings_mean"]
        found[remainder.READINGS] = dis_lr.residuals_of(here.held_out, *of_readings)
    return here, remainder.sketches_up(found)


def _of_kmeans(down: PhaseDown) -> PhaseDown:
    return down._replace(phase=down.phase.removeprefix(OF_KMEANS))


def _scored(here: RowsOffered[Seen], points: JobPoints, axes: Array, mean: Array) -> GroupsOfRows:
    """Return the scores (n, components) of the rows by group, and of those held out."""
    # As it travels: products of another memory order differ in their last digits.
    lift, axes = here.known.map.lift, np.ascontiguousarray(axes)
    rows, held_out = ((lift(each) - mean) @ axes for each in (here.rows, here.held_out))
    return GroupsOfRows.of(points._replace(rows=rows, held_out=held_out))


def _factor(seen: Seen, rows: Array, node: str) -> Arrays:
    """Return the triangle of the embedded rows: of sums of them, as in the paper, or of all."""
    of, embedded = seen.of, seen.embedded(rows)
    if of.merge == "sketch":
        seed = key(of.seed, node, "leverage")
        embedded = leverage.summed(embedded, of.columns, seed=seed)
    return {"triangle": leverage.packed(leverage.triangle_of([embedded], of.sketch))}


def _own_readings(of: KpcaSettings, rows: Array) -> Arrays:
    """Return the rows' own directions, if they are asked for."""
    if not of.readings:
        return {}
    return dis_lr.readings_up(rows, dis_lr.rank_of(of.components, rows.shape[1]))


def _projections(seen: Seen, rows: Array, node: str) -> Arrays:
    """Return the directions of the rows in the points' span."""
    of, at = seen.of, dis_lr.Coordinates.of(rows, seen.map)
    if of.merge == "ranks":
        return dis_lr.ranks_up(at, 2 * of.components, center=of.center)
    if of.merge == "exact":
        return dis_lr.exact_up(at)
    seed = key(of.seed, node, "projection")
    return dis_lr.sketch_up(at, of.columns, center=of.center, seed=seed)


def _check_readings(of: KpcaSettings, width: int, up: Arrays, clients: int) -> None:
    if not set(dis_lr.NAMES.values()) <= set(up):
        raise PeerError("the readings' directions are missing", kind="shape")
    factor = dis_lr.factor_of(up)
    expect(factor, {"factor": (None, width), "mean": (width,), "sums": (4,)})
    _check_factor(factor["factor"], 2 * dis_lr.rank_of(of.components, width))
    _check_of_rows(factor, clients, width * LARGEST_READING**2)


def _check_projected(of: KpcaSettings, m: int, up: Arrays, clients: int, square: float) -> None:
    """Refuse other factors, sketches and scatters of coordinates (n, m)."""
    mean: Shapes = {"mean": (m,)} if of.center or of.merge == "exact" else {}
    if of.merge == "exact":
        expect(up, mean | {"scatter": (m * (m + 1) // 2,), "sums": (2,)})
    elif of.merge == "sketch":
        width = m + of.center
        expect(up, mean | {"triangle": (width * (width + 1) // 2,), "sums": (3,)})
    else:
        expect(up, mean | {"factor": (None, m), "sums": (4,)})
        _check_factor(up["factor"], 2 * of.components)
    _check_of_rows(up, clients, square)


def _check_triangle(numbers: Array, t: int, most: float, clients: int) -> None:
    """Refuse a triangle with a column longer than `most`: that of several is no longer than all."""
    columns = np.sqrt(np.square(leverage.unpacked(numbers, t)).sum(axis=0))
    check_at_most("triangles", columns, most, clients)


def _check_of_rows(up: Arrays, clients: int, square: float) -> None:
    """Refuse what no rows of squared length `square` each sum to; sums of shares may merge."""
    if (up["sums"] < 0).any():
        raise PeerError("counts and energies are not negative", kind="range")
    check_counts(up["sums"][:1], MOST_HELD * clients)
    n, *energies = up["sums"].tolist()
    mean = float(np.square(up["mean"]).sum()) if "mean" in up else 0.0
    whole = sum(energies[:2])
    if "triangle" in up:  # sums of rows, signed, and of ones; their mean is a sum as well
        check_at_most("means", mean, n * energies[0], clients)
        most = n * max(1.0, float(np.sqrt(square)))
        t = math.isqrt(2 * len(up["triangle"]))
        _check_triangle(up["triangle"], t, most, clients)
    else:
        whole += n * mean
    if "factor" in up:
        # What was dropped is no part of the factor: both together grow as the energy does.
        held = np.square(up["factor"]).sum() + up["sums"][3:]
        check_at_most("energies", held, energies[0], clients)
    elif "scatter" in up:
        trace = float(np.trace(leverage.unpacked(up["scatter"], len(up["mean"]))))
        check_at_most("scatters", up["scatter"], trace, clients)
        whole += trace
    check_at_most("energies", whole, n * square, clients)


def _check_factor(factor: Array, most: int) -> None:
    """Refuse a factor whose rows are zero, or at no right angles."""
    sigma = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    if len(factor) > most or not (sigma > 0).all():
        raise PeerError(f"a factor has at most {most} rows, none of them zero", kind="range")
    unit = factor / sigma[:, None]
    if (np.abs(unit @ unit.T - np.eye(len(unit))) > OFF).any():
        raise PeerError("the rows of a factor are at right angles", kind="range")

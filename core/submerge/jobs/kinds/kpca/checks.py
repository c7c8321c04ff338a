"""Checks of what travels in a job of kernel PCA: other shapes, and what no rows lead to."""

from __future__ import annotations

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError
from submerge.jobs.arrays import LARGEST_NUMBER, OFF, Arrays, check_at_most, check_counts, expect
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds.kpca import dis_lr, leverage, points, remainder
from submerge.jobs.kinds.kpca.participant import Seen
from submerge.jobs.kinds.kpca.settings import KpcaSettings
from submerge.jobs.kinds.kpca.stages import Shapes, stage_of
from submerge.jobs.points import LARGEST_READING, MOST_HELD

PHASES = ("count", "factor", "project", "measure")
"""Besides those of the choices."""


def check_down(seen: Seen, down: PhaseDown) -> None:
    """Refuse other phases, and arrays of another shape."""
    of, width = seen.of, seen.width
    phase, arrays, t = down.phase, down.arrays, of.sketch
    if phase not in PHASES and not seen.has(phase):
        raise PeerError(f"kpca has no phase {phase[:40]!r}")
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
        rank = {"readings_axes": (width, None), "readings_mean": (width,)} if of.readings else {}
        shapes |= rank
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


def check_up(seen: Seen, down: PhaseDown, up: Arrays, clients: int) -> None:
    """Refuse arrays that no child of this version sends."""
    of, width = seen.of, seen.width
    phase, t, rows = down.phase, of.sketch, MOST_HELD * clients
    if phase == "count":
        open_: Shapes = {"sums": (width,), "squares": (1,)} if of.kernel.gamma is None else {}
        expect(up, open_ | {"counts": (4,)})
        counts = up["counts"]
        check_counts(counts[:2], rows)
        check_counts(counts[2:], 2 * clients)
        if open_:
            check_at_most("sums", up["sums"], counts[0] * LARGEST_READING)
            check_at_most("squares", up["squares"], counts[0] * width * LARGEST_READING**2)
            if up["squares"][0] * counts[0] * (1.0 + OFF) < float(up["sums"] @ up["sums"]):
                raise PeerError("squares are no less than those of the mean", kind="range")
    elif phase == "factor":
        expect(up, {"triangle": (t * (t + 1) // 2,)})
    elif stage_of(phase):
        seen.check_up(down, up, clients)
    elif phase == "measure":
        remainder.check_sketches(up, remainder.names_of(readings=of.readings), rows)
    else:
        if of.readings:
            _check_readings(of, width, up, rows)
            up = dis_lr.without_readings(up)
        square = LARGEST_NUMBER
        if seen.phase and seen.kernel.gamma is not None:
            farthest = np.full((1, width), LARGEST_READING)
            square = min(square, float(points.own_squares(farthest, seen.kernel)[0]))
        _check_projected(of, int(down.arrays["size"][0]), up, rows, square)


def _check_readings(of: KpcaSettings, width: int, up: Arrays, rows: int) -> None:
    if not set(dis_lr.NAMES.values()) <= set(up):
        raise PeerError("the readings' directions are missing", kind="shape")
    factor = dis_lr.factor_of(up)
    expect(factor, {"factor": (None, width), "mean": (width,), "sums": (4,)})
    _check_factor(factor["factor"], 2 * dis_lr.rank_of(of.components, width))
    _check_of_rows(factor, rows, width * LARGEST_READING**2)


def _check_projected(of: KpcaSettings, m: int, up: Arrays, rows: int, square: float) -> None:
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
    _check_of_rows(up, rows, square)


def _check_of_rows(up: Arrays, rows: int, square: float) -> None:
    """Refuse what `rows` rows, of squared length `square` each, cannot sum to; sums may merge."""
    if (up["sums"] < 0).any():
        raise PeerError("counts and energies are not negative", kind="range")
    check_counts(up["sums"][:1], rows)
    n, *energies = up["sums"].tolist()
    mean = float(np.square(up["mean"]).sum()) if "mean" in up else 0.0
    whole = sum(energies[:2])
    if "triangle" in up:  # sums of rows, signed, and of ones; their mean is a sum as well
        check_at_most("means", mean, n * energies[0])
        check_at_most("triangles", up["triangle"], n * max(1.0, np.sqrt(square)))
    else:
        whole += n * mean
    if "factor" in up:
        check_at_most("energies", np.square(up["factor"]).sum(), energies[0])
        check_at_most("energies", up["sums"][3:], energies[0])
    elif "scatter" in up:
        trace = float(np.trace(leverage.unpacked(up["scatter"], len(up["mean"]))))
        check_at_most("scatters", up["scatter"], trace)
        whole += trace
    check_at_most("energies", whole, n * square)


def _check_factor(factor: Array, most: int) -> None:
    """Refuse a factor whose rows are zero, or at no right angles."""
    sigma = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    if len(factor) > most or not (sigma > 0).all():
        raise PeerError(f"a factor has at most {most} rows, none of them zero", kind="range")
    unit = factor / sigma[:, None]
    if (np.abs(unit @ unit.T - np.eye(len(unit))) > OFF).any():
        raise PeerError("the rows of a factor are at right angles", kind="range")
